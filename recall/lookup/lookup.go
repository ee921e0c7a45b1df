// Package lookup finds in a log what package recall ranks: the index lists the entries that have any of a query's stems,
// the rarest stems first; those that may be worth it are read with their neighbours, and ranked.
//
// The cost follows the hits: for each stem at most the newest maxHits entries count, and at most Request.Candidates are
// read. Entries that are not indexed yet are read from the log, at most the newest maxUnindexed.
//
// Never found are hidden and redacted entries, system messages, and the groups of tool calls and their results.
package lookup

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/recall"
	"github.com/continuo-log/continuo/recall/reorder"
	"github.com/continuo-log/continuo/recall/vector"
)

// Scope is what is searched.
type Scope string

// The scopes: the conversation with what it was forked from; all conversations of its user; all of its project.
const (
	Conversation Scope = "conversation"
	User         Scope = "user"
	Project      Scope = "project"
)

// Scopes lists the scopes.
func Scopes() []Scope { return []Scope{Conversation, User, Project} }

// The bounds of one search.
const (
	lookedUp     = 32    // stems that are looked up
	counted      = 12    // the rarest of them that count
	maxHits      = 2_000 // of one stem
	maxOfProject = 500   // of one stem, in the other conversations of a project: they are far apart
	maxSignals   = 100   // entries that are found because of their form
	maxUnindexed = 2_000
	reach        = 2 // neighbours on each side
	// fewestDocuments is how many entries other conversations and memories have at least, for the rarity of words.
	fewestDocuments = 200
	// importPatience bounds how long a request without Patience indexes entries that it would not see otherwise: those of an
	// import that the background index has not reached yet.
	importPatience = time.Second
	maxWaiting     = 64 // other conversations that are looked at for such entries
	// DefaultCandidates is the default of Request.Candidates.
	DefaultCandidates = 800
)

// Finder finds entries.
type Finder struct {
	Log *continuo.Log
	// Store is the index. Default nil: entries are read from the log.
	Store index.Store
	// Common remembers terms that many entries of a conversation have. Default nil: they are looked up each time.
	Common *CommonTerms
	// Lists remembers which entries have the terms that were looked up. Default nil: all are looked up each time.
	Lists *TermLists
	// Entries keeps candidates. Default nil: all are read from the log each time.
	Entries *Entries
	// Analyzer remembers the words of entries. Default nil: they are analyzed each time.
	Analyzer *recall.Analyzer
	// Vectors finds entries by embeddings, for requests that ask for it. Default nil: by their words alone.
	Vectors *vector.Finder
	// Reranker reorders the first entries where a caller asks for it. Default nil: the words' order stands.
	Reranker *reorder.Merger
}

// Request says what to look for, and where.
type Request struct {
	Text         string
	Conversation continuo.Conversation
	Scope        Scope // default Conversation
	// To is the newest seq of the conversation that is searched. Default 0: its newest.
	To int64
	// Candidates bounds how many entries are read and ranked. Default DefaultCandidates.
	Candidates int
	// Vectors also compares the entries by embeddings, where the Finder can: a request to another server, which turns do not
	// wait for. Default false.
	Vectors bool
	// Patience bounds how long missing entries are indexed first. Default 0: not at all.
	Patience time.Duration
	// LeastWeight says that the candidates are of use only if one of the searched conversation that May accepts has this
	// weight: where the index shows that none has, Find returns nothing, and reads no entries. Default 0: always of use.
	LeastWeight int64
	May         func(seq int64) bool
	// Extra are ranked with the found entries. Default none.
	Extra []Item
	// ForUser bounds the scope Project to conversations of the user of Conversation, and of no user.
	ForUser bool
}

// Item is a found entry.
type Item struct {
	Entry *continuo.Entry
	// Owner is the conversation that the entry was read from: the searched one, or another one in the scope.
	Owner  *continuo.Conversation
	Score  recall.Scored
	Words  []string // of the query, that the entry has
	Weight int64    // of these words; see recall.Match
	Tokens int
	// Reranked is the place that the reranker gave the entry, from 1; 0 for an entry that it was not asked about.
	Reranked int
	// Weigher weighs parts of the text.
	Weigher *recall.Weigher
}

// place is the position of an entry.
type place struct {
	conversation string // that it is read from
	seq          int64
}

// Find returns the candidates, the most valuable first.
func (f Finder) Find(ctx context.Context, request Request) ([]Item, error) {
	corpus, items, err := f.Corpus(ctx, request)
	if err != nil || corpus == nil {
		return nil, err
	}
	ranked := corpus.Rank(request.Text)
	found := make([]Item, len(ranked))
	for i, scored := range ranked {
		found[i] = items[scored.Index]
		found[i].Score = scored
	}
	return found, nil
}

// Corpus returns the candidates, prepared for the ranking, and the same ones as items. The corpus is nil where there are
// none.
func (f Finder) Corpus(ctx context.Context, request Request) (*recall.Corpus, []Item, error) {
	request.Scope = cmp.Or(request.Scope, Conversation)
	request.Candidates = cmp.Or(request.Candidates, DefaultCandidates)
	if request.To == 0 {
		request.To = request.Conversation.LastSeq
	}
	terms := recall.Terms(request.Text)
	terms = terms[:min(len(terms), lookedUp)]
	lookUp := []index.Term{fulltext.SignalsTerm()}
	for _, term := range terms {
		lookUp = append(lookUp, term.Index())
	}
	if ok, err := f.isProbable(ctx, request, lookUp[1:]); err != nil || !ok {
		return nil, nil, err
	}
	hits, err := f.hits(ctx, request, lookUp)
	if err != nil || !request.isUseful(hits) {
		return nil, nil, err
	}
	near, err := f.near(ctx, &request)
	if err != nil {
		return nil, nil, err
	}
	chosen, statistics := choose(request, terms, hits, near)
	items, err := f.read(ctx, request, chosen, hits.unindexed)
	if items = append(items, request.Extra...); err != nil || len(items) == 0 {
		return nil, nil, err
	}
	countExtra(&statistics, terms, request.Extra)
	documents := make([]recall.Document, len(items))
	for i := range items {
		documents[i] = document(&items[i])
		documents[i].Near = near.Of(items[i].Owner, items[i].Entry.Seq)
	}
	statistics.Documents = max(statistics.Documents, int64(len(items)))
	corpus := f.analyzer().Corpus(statistics, documents)
	weigher := corpus.Weigher(request.Text)
	for i, match := range corpus.Matches(request.Text) {
		items[i].Words, items[i].Weight, items[i].Weigher = match.Words, match.Weight, weigher
	}
	return corpus, items, nil
}

func (f Finder) analyzer() *recall.Analyzer {
	if f.Analyzer == nil {
		return &recall.Analyzer{}
	}
	return f.Analyzer
}

// hits looks terms up. Those of other conversations are found where they are indexed.
func (f Finder) hits(ctx context.Context, request Request, terms []index.Term) (found, error) {
	isNarrow := request.Scope == Conversation || f.Store == nil
	if request.Patience > 0 {
		if err := f.catchUp(ctx, &request, isNarrow); err != nil && ctx.Err() != nil {
			return found{}, err // otherwise entries are read from the log
		}
	}
	own, err := f.own(ctx, &request, terms)
	if err == nil && request.Patience == 0 && lag(own.unindexed) > maxUnindexed { // after an import
		if err := (index.Searcher{Log: f.Log, Store: f.Store}).CatchUp(ctx, request.Conversation, importPatience); err != nil && ctx.Err() != nil {
			return found{}, err
		}
		own, err = f.own(ctx, &request, terms)
	}
	if err != nil || isNarrow || request.Scope == User && request.Conversation.UserID == "" { // of nobody: only the conversation itself
		return own, err
	}
	if request.Patience == 0 {
		if err := f.catchUpOthers(ctx, &request); err != nil && ctx.Err() != nil {
			return found{}, err
		}
	}
	query := index.HitQuery{ProjectID: request.Conversation.ProjectID, Terms: terms, Limit: maxOfProject}
	if request.Scope == User {
		query.UserID, query.Limit = request.Conversation.UserID, maxHits
	}
	lists, err := f.Store.AnyHits(ctx, query)
	for i := range lists {
		for _, hit := range lists[i] {
			if !request.isOwn(hit) {
				own.terms[i].others = append(own.terms[i].others, hit)
			}
		}
	}
	return own, err
}

// isOwn reports whether a hit is in the searched conversation, or in the part of another one that it begins with.
func (r *Request) isOwn(hit index.Hit) bool {
	return hit.ConversationID == r.Conversation.ID || slices.ContainsFunc(r.Conversation.Lineage, func(s continuo.Segment) bool {
		return s.ConversationID == hit.ConversationID && hit.Seq <= s.Through
	})
}

// countExtra adds entries that are ranked besides those that were looked up to the statistics.
func countExtra(statistics *recall.Statistics, terms []recall.Term, extra []Item) {
	if len(extra) == 0 {
		return
	}
	statistics.Documents += int64(len(extra))
	for i := range extra {
		for _, term := range recall.Terms(extra[i].Entry.Content.String()) {
			if slices.ContainsFunc(terms, func(t recall.Term) bool { return t.Stem == term.Stem }) {
				statistics.Counts[term.Stem]++
			}
		}
	}
}

func itemOf(entry *continuo.Entry, owner *continuo.Conversation) Item {
	return Item{Entry: entry, Owner: owner, Tokens: recall.TokensOf(entry)}
}

// Recallable reports whether an entry may be recalled: a message with a text that a person or a model wrote.
func Recallable(entry *continuo.Entry) bool {
	switch {
	case entry.Hidden, entry.Redacted != nil, entry.IsCollapsed, entry.HasCalls(), entry.Error != nil:
		return false
	case entry.Role != continuo.User && entry.Role != continuo.Assistant:
		return false
	}
	return strings.TrimSpace(entry.Content.String()) != ""
}

// document is an item as the ranker reads it.
func document(item *Item) recall.Document {
	entry := item.Entry
	return recall.Document{
		ConversationID: item.Owner.ID, Seq: entry.Seq, Role: entry.Role, Speaker: recall.SpeakerOf(entry), At: entry.CreatedAt,
		Text: strings.Join(fulltext.TextsOf(entry), "\n"), Tokens: item.Tokens,
	}
}
