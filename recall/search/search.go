// Package search finds entries by a query and ranks them with package recall: those with the rarest words of the query
// first are read, at most maxRead, and ranked together, so that a question as it is asked finds what answers it. Quoted
// phrases, words with a star, exclusions, roles and ranges are conditions. What is beyond the ranked entries follows with
// the search of package fulltext/index: entries with all of the words, the newest first.
//
// Pitfalls. A query with more than shortQuery words is a question: entries beside a match may be found although they have
// none of the words. The ranking describes the entries that were read: a page after the first ranks the same ones again,
// and leaves out those whose marks its cursor has.
package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/recall"
	"github.com/continuo-log/continuo/recall/reorder"
	"github.com/continuo-log/continuo/recall/vector"
)

// Searcher searches a log with an index of it.
type Searcher struct {
	Log *continuo.Log
	// Store is the index. Default nil: only single conversations can be searched, by reading them from the log.
	Store index.Store
	// Vectors finds entries that answer a question by embeddings, too: of a conversation, or of those that have changed last. Default nil.
	Vectors *vector.Finder
	// Reranker reorders the first entries of the first page for a question. Default nil: the words' order stands.
	Reranker *reorder.Merger
}

// The bounds of a search.
const (
	shortQuery   = 3     // words; a longer query is a question
	lookedUp     = 32    // stems that are looked up
	counted      = 12    // the rarest of them that count
	maxHits      = 2_000 // of one term
	maxOfProject = 500   // of one term, in all of a project: they are of many conversations, which are far apart
	maxRead      = 240   // entries that are ranked
	maxOthers    = 2_000 // entries that are looked at for those that the filters let pass
	maxUnindexed = 2_000
	maxCompared  = 200 // conversations whose entries are compared by embeddings
)

// Found is a matching entry, or the matching title of a conversation.
type Found struct {
	index.Candidate
	// Match has the words of the query in the texts of the candidate. HasWords is false for an entry beside those with words.
	Match    fulltext.Match
	HasWords bool
	Score    recall.Scored

	hasAll bool // words of a short query
}

// Ranking is the result of a search before it is cut into pages.
type Ranking struct {
	Found []Found // the best first
	// More says that there may be more matches than those that were read.
	More bool
	// Previews is how many outputs, of which only a preview is searched, do not match and are not in the index.
	Previews int
}

func (s Searcher) strict() index.Searcher { return index.Searcher{Log: s.Log, Store: s.Store} }

// parse parses a query.
func parse(text string) (fulltext.Loose, error) {
	query, err := fulltext.ParseLoose(text, func(word string) bool { return !recall.IsSubject(word) })
	if err != nil {
		return query, fmt.Errorf("%w: %w", continuo.ErrInvalid, err)
	}
	return query, nil
}

// Check reports what is wrong with a query.
func Check(text string) error {
	_, err := parse(text)
	return err
}

// Search finds entries. An invalid request is continuo.ErrInvalid, an archived conversation continuo.ErrArchived.
func (s Searcher) Search(ctx context.Context, request index.Request) (index.Result, error) {
	query, err := parse(request.Query)
	if err != nil {
		return index.Result{}, err
	}
	at, err := parseCursor(request.Cursor, request.Fingerprint())
	if err != nil {
		return index.Result{}, err
	}
	result, err := s.strict().Prepare(ctx, &request)
	if err != nil {
		return index.Result{}, err
	}
	if !at.InRest {
		ranking, err := s.rank(ctx, request, query, at)
		if err != nil {
			return index.Result{}, err
		}
		at = at.after(request, ranking)
		unseen := slices.DeleteFunc(ranking.Found, func(f Found) bool { return at.has(f.ConversationID(), f.Hit.Seq) })
		for _, found := range unseen[:min(len(unseen), request.Limit)] {
			result.Items = append(result.Items, itemOf(&found))
			at.add(found.ConversationID(), found.Hit.Seq)
		}
		if len(unseen) > request.Limit {
			result.NextCursor = index.EncodeCursor(at)
			return result, nil
		}
		if !ranking.More {
			return result, nil
		}
		at.InRest = true
	}
	return s.rest(ctx, request, at, result)
}

// restPages bounds how many pages of the strict search, each of up to 2 000 entries that are looked at, are read for one page.
const restPages = 3

// rest fills a page with entries that have all words of the query and were not ranked.
func (s Searcher) rest(ctx context.Context, request index.Request, at cursor, result index.Result) (index.Result, error) {
	limit := request.Limit
	request.Skip = at.has
	for range restPages {
		request.Cursor, request.Patience, request.Limit = at.Rest, -1, limit-len(result.Items)
		if request.Limit == 0 {
			break
		}
		page, err := s.strict().Search(ctx, request)
		switch {
		case errors.Is(err, fulltext.ErrQuery): // too long: only the ranked entries are found
			return result, nil
		case err != nil:
			return result, err
		}
		for _, item := range page.Items {
			item.Score = 0
			result.Items = append(result.Items, item)
		}
		if at.Rest = page.NextCursor; at.Rest == "" {
			return result, nil
		}
	}
	result.NextCursor = index.EncodeCursor(at)
	return result, nil
}

// Rank ranks the entries of one conversation that a query finds.
func (s Searcher) Rank(ctx context.Context, request index.Request) (Ranking, error) {
	query, err := parse(request.Query)
	if err != nil {
		return Ranking{}, err
	}
	if _, err := s.strict().Prepare(ctx, &request); err != nil {
		return Ranking{}, err
	}
	return s.rank(ctx, request, query, cursor{})
}

// ConversationID is the conversation that the entry was found in.
func (f *Found) ConversationID() string { return f.Conversation.ID }

func itemOf(f *Found) index.Item {
	entry := &f.Entry
	item := index.Item{
		ConversationID: f.Conversation.ID, Key: f.Conversation.Key, Title: f.Conversation.Title, Seq: entry.Seq, Role: entry.Role,
		CreatedAt: entry.CreatedAt, Score: int64(max(1, f.Score.Probability())), Snippet: f.Match.Snippet(f.Texts(), 0),
	}
	if entry.Seq == 0 {
		item.CreatedAt = f.Conversation.CreatedAt
	}
	return item
}

// order is the order of matches: those with all words of a short query first, then the more probable, of equal ones the
// newer.
func order(a, b Found) int {
	if a.hasAll != b.hasAll {
		if a.hasAll {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(b.Score.Odds, a.Score.Odds), b.time().Compare(a.time()), cmp.Compare(a.Conversation.ID, b.Conversation.ID), cmp.Compare(b.Hit.Seq, a.Hit.Seq))
}

func (f *Found) time() time.Time {
	if f.Hit.Seq == 0 {
		return f.Conversation.CreatedAt
	}
	return f.Entry.CreatedAt
}
