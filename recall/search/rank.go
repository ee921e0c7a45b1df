package search

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/recall"
	"github.com/continuo-log/continuo/recall/reorder"
	"github.com/continuo-log/continuo/recall/vector"
)

// candidates are the places that may match, and what is known of them.
type candidates struct {
	*places
	statistics recall.Statistics
	unindexed  []continuo.Range
	cut        bool // a term has more entries than were listed
}

// rank reads and ranks what a query finds.
func (s Searcher) rank(ctx context.Context, request index.Request, query fulltext.Loose, at cursor) (Ranking, error) {
	terms := recall.Terms(query.Text)
	terms = terms[:min(len(terms), lookedUp)]
	isQuestion := len(query.Required) == 0 && isQuestion(terms)
	found, err := s.candidates(ctx, request, query, terms, isQuestion, at)
	if err != nil {
		return Ranking{}, err
	}
	reader := reader{Searcher: s, ctx: ctx, request: request, query: query, isQuestion: isQuestion}
	reader.owners = index.Owners{Log: s.Log, Scope: continuo.Scope{ProjectID: request.ProjectID, UserID: request.UserID}, Kinds: request.Kinds}
	if isQuestion && s.Vectors != nil {
		compared, err := s.compared(ctx, request)
		if err != nil {
			return Ranking{}, err
		}
		reader.near = s.Vectors.Find(ctx, query.Text, compared)
		found.addNear(request, reader.near)
	}
	ranking := Ranking{More: found.cut}
	if err := reader.unindexed(found.unindexed, &ranking); err != nil {
		return Ranking{}, err
	}
	if err := reader.candidates(found, &ranking); err != nil {
		return Ranking{}, err
	}
	ranking.Found = reader.ranked(found.statistics)
	if isQuestion && len(at.Shown) == 0 { // later pages have the others in the order of the words
		s.rerank(ctx, query.Text, ranking.Found)
	}
	return ranking, nil
}

// compared are the conversations whose entries are compared by embeddings: the searched one, or those that have changed last.
func (s Searcher) compared(ctx context.Context, request index.Request) ([]continuo.Conversation, error) {
	if request.Conversation != nil {
		return []continuo.Conversation{*request.Conversation}, nil
	}
	return s.Log.Conversations(ctx, continuo.ConversationQuery{ProjectID: request.ProjectID, UserID: request.UserID, Labels: request.Labels, Limit: maxCompared})
}

// rerank reorders the first entries.
func (s Searcher) rerank(ctx context.Context, query string, found []Found) {
	if s.Reranker == nil {
		return
	}
	first := slices.Clone(found[:min(len(found), reorder.MaxTexts)])
	texts := make([]string, len(first))
	for i := range first {
		texts[i] = rankedText(first[i].Texts(), first[i].Match)
	}
	for i, index := range s.Reranker.Merge(ctx, query, texts).Merged {
		found[i] = first[index]
	}
}

// isQuestion reports whether a query has more words than one that names what it looks for. Of a script without spaces two
// pairs of characters count as a word.
func isQuestion(terms []recall.Term) bool {
	halves := 0
	for _, term := range terms {
		if halves += 2; term.Wide {
			halves--
		}
	}
	return halves > 2*shortQuery
}

// candidates looks the terms of a query up.
func (s Searcher) candidates(ctx context.Context, request index.Request, query fulltext.Loose, terms []recall.Term, isQuestion bool, at cursor) (*candidates, error) {
	found := &candidates{places: newPlaces(), statistics: recall.Statistics{Counts: map[string]int64{}}}
	if len(query.Required) > 0 && len(query.Words) == 0 { // nothing but conditions: the order is that of the index
		return found, s.require(ctx, request, query, at, found)
	}
	var lookUp []index.Term
	for _, term := range terms {
		lookUp = append(lookUp, term.Index())
	}
	longer := len(lookUp)
	if !isQuestion || len(terms) == 0 {
		lookUp = append(lookUp, query.Words...)
	}
	lists, err := s.anyOf(ctx, request, lookUp, at, found)
	if err != nil || len(lookUp) == 0 {
		return found, err
	}
	documents := found.statistics.Documents
	for _, list := range lists {
		documents = max(documents, 2*int64(len(list)))
		found.cut = found.cut || len(list) == mostHits(&request)
	}
	found.statistics.Documents = documents
	byRarity := make([]int, 0, longer)
	for i := range longer {
		if len(lists[i]) > 0 {
			byRarity = append(byRarity, i)
		}
	}
	slices.SortStableFunc(byRarity, func(a, b int) int { return cmp.Compare(len(lists[a]), len(lists[b])) })
	for _, i := range byRarity[:min(len(byRarity), counted)] {
		n := int64(len(lists[i]))
		found.statistics.Counts[terms[i].Stem] = n
		found.add(request, lists[i], recall.Rarity(n, documents))
	}
	for _, list := range lists[longer:] {
		more := make([]index.Hit, 0, len(list))
		for _, hit := range list {
			if !found.has(placeOf(request, hit)) {
				more = append(more, hit)
			}
		}
		found.add(request, more, recall.Rarity(int64(len(list)), documents)/2)
	}
	if len(query.Required) > 0 {
		err = s.require(ctx, request, query, at, found)
	}
	return found, err
}

// require keeps the places that have all terms of the conditions, and adds those without a score. The index joins the terms:
// of words that many entries have, few may have all.
func (s Searcher) require(ctx context.Context, request index.Request, query fulltext.Loose, at cursor, found *candidates) error {
	lists, err := s.lookUp(ctx, request, query.Required, at, found, func(query index.HitQuery) ([][]index.Hit, error) {
		hits, err := s.Store.Hits(ctx, query)
		return [][]index.Hit{hits}, err
	}, s.strict().All)
	if err != nil {
		return err
	}
	found.cut = len(lists[0]) == mostHits(&request)
	found.keep(request, lists[0])
	return nil
}

// anyOf are the newest entries with each of some terms.
func (s Searcher) anyOf(ctx context.Context, request index.Request, terms []index.Term, at cursor, found *candidates) ([][]index.Hit, error) {
	if len(terms) == 0 {
		terms = []index.Term{fulltext.SignalsTerm()} // only for what is not indexed
	}
	return s.lookUp(ctx, request, terms, at, found, func(query index.HitQuery) ([][]index.Hit, error) {
		return s.Store.AnyHits(ctx, query)
	}, s.strict().Any)
}

// inConversation looks terms up in one conversation.
type inConversation func(ctx context.Context, conversation continuo.Conversation, terms []index.Term, from, to int64, limit int) (index.AnyResult, error)

// lookUp looks terms up in the project or in the conversation of a request.
func (s Searcher) lookUp(
	ctx context.Context, request index.Request, terms []index.Term, at cursor, found *candidates,
	inProject func(index.HitQuery) ([][]index.Hit, error), inOne inConversation,
) ([][]index.Hit, error) {
	if request.Conversation == nil {
		lists, err := inProject(index.HitQuery{ProjectID: request.ProjectID, UserID: request.UserID, Labels: request.Labels, Terms: terms, Limit: mostHits(&request)})
		if err != nil {
			return nil, fmt.Errorf("search: %w", err)
		}
		for i := range lists {
			if at.Newest > 0 {
				lists[i] = slices.DeleteFunc(lists[i], func(hit index.Hit) bool { return hit.Order > at.Newest })
			}
		}
		return lists, nil
	}
	to := int64(math.MaxInt64)
	for _, bound := range []int64{request.To, at.To} {
		if bound > 0 {
			to = min(to, bound)
		}
	}
	any, err := inOne(ctx, *request.Conversation, terms, max(request.From, 1), min(to, request.Conversation.LastSeq), mostHits(&request))
	found.unindexed = any.Unindexed
	found.statistics.Documents = max(found.statistics.Documents, request.Conversation.LastSeq)
	return any.Lists, err
}

// mostHits is how many entries with one term are looked up.
func mostHits(request *index.Request) int {
	if request.Conversation == nil && request.UserID == "" && len(request.Labels) == 0 {
		return maxOfProject
	}
	return maxHits
}

func placeOf(request index.Request, hit index.Hit) place {
	if request.Conversation != nil {
		return place{request.Conversation.ID, hit.Seq} // a fork has what it began with
	}
	return place{hit.ConversationID, hit.Seq}
}

func (c *candidates) add(request index.Request, hits []index.Hit, score int64) {
	for _, hit := range hits {
		c.places.add(placeOf(request, hit), score, hit.Order)
	}
}

// addNear adds the entries that vectors have found.
func (c *candidates) addNear(request index.Request, near vector.Near) {
	for at := range near {
		found := place{at.ConversationID, at.Seq}
		if request.Conversation != nil {
			found.conversation = request.Conversation.ID // a fork has what it began with
		}
		c.places.add(found, recall.Rarity(1, c.statistics.Documents), 0)
	}
}

// keep keeps the places of a list, and adds those without a score.
func (c *candidates) keep(request index.Request, list []index.Hit) {
	kept := newPlaces()
	for _, hit := range list {
		at := placeOf(request, hit)
		kept.add(at, c.score(at), hit.Order)
	}
	c.places = kept
}

// reader reads candidates and keeps those that the filters let pass.
type reader struct {
	Searcher
	ctx        context.Context
	request    index.Request
	query      fulltext.Loose
	isQuestion bool
	near       vector.Near
	owners     index.Owners
	read       []Found
}

// candidates reads until enough entries are read.
func (r *reader) candidates(found *candidates, ranking *Ranking) error {
	places := found.inOrder(r.isQuestion, maxOthers+maxRead)
	looked := 0
	for len(places) > 0 && len(r.read) < maxRead && looked < maxOthers {
		n := min(len(places), maxRead)
		batch := places[:n:n]
		places, looked = places[n:], looked+n
		if err := r.places(batch, found); err != nil {
			return err
		}
	}
	ranking.More = ranking.More || len(places) > 0
	return nil
}

// places reads some candidates.
func (r *reader) places(batch []place, found *candidates) error {
	owners, err := r.ownersOf(batch)
	if err != nil {
		return err
	}
	wanted, orders := make([]continuo.Place, 0, len(batch)), make([]int64, 0, len(batch))
	for _, at := range batch {
		switch owner := owners[at.conversation]; {
		case owner == nil:
		case at.seq == 0:
			r.keep(index.Candidate{Hit: index.Hit{ConversationID: owner.ID, Order: found.order(at)}, Conversation: *owner})
		default:
			wanted, orders = append(wanted, continuo.Place{Conversation: owner, Seq: at.seq}), append(orders, found.order(at))
		}
	}
	entries, err := r.Log.EntriesAt(r.ctx, wanted)
	if err != nil {
		return err
	}
	for i, entry := range entries {
		if owner := wanted[i].Conversation; entry != nil {
			r.keep(index.Candidate{Hit: index.Hit{ConversationID: owner.ID, Seq: entry.Seq, Order: orders[i]}, Conversation: *owner, Entry: *entry})
		}
	}
	return nil
}

// ownersOf finds the conversations of places, by their id, as far as they are searched.
func (r *reader) ownersOf(batch []place) (map[string]*continuo.Conversation, error) {
	if only := r.request.Conversation; only != nil {
		return map[string]*continuo.Conversation{only.ID: only}, nil
	}
	ids := make([]string, len(batch))
	for i, at := range batch {
		ids[i] = at.conversation
	}
	return r.owners.Find(r.ctx, ids)
}

// unindexed reads the newest entries that the index does not have.
func (r *reader) unindexed(ranges []continuo.Range, ranking *Ranking) error {
	left := maxUnindexed
	for _, one := range ranges {
		one.Backward = true
		for entry, err := range r.Log.ReadShared(r.ctx, *r.request.Conversation, one) {
			if err != nil {
				return err
			}
			if left--; left < 0 {
				ranking.More = true
				return nil
			}
			kept := len(r.read)
			r.keep(index.Candidate{Hit: index.Hit{ConversationID: r.request.Conversation.ID, Seq: entry.Seq}, Conversation: *r.request.Conversation, Entry: *entry})
			if entry.Output != nil && len(r.read) == kept && (r.request.Role == "" || r.request.Role == entry.Role) {
				ranking.Previews++
			}
		}
	}
	return nil
}

// keep keeps a candidate that may be a match, or stands beside one.
func (r *reader) keep(candidate index.Candidate) {
	entry := &candidate.Entry
	seq := candidate.Hit.Seq
	switch {
	case r.request.Role != "" && entry.Role != r.request.Role && !r.isQuestion:
		return
	case r.request.From > 0 && seq < r.request.From, r.request.To > 0 && seq > r.request.To:
		return
	case asksOnly(entry):
		return
	}
	texts := candidate.Texts()
	if len(texts) == 0 {
		return
	}
	match, ok := r.query.Match(texts...)
	switch {
	case !ok && (!r.isQuestion || seq == 0 || !r.query.Allows(texts...)):
		return
	case !ok:
		match = fulltext.Beginning(texts...)
	}
	r.read = append(r.read, Found{Candidate: candidate, Match: match, HasWords: ok})
}

// asksOnly reports whether an entry says nothing but what a model searches for.
func asksOnly(entry *continuo.Entry) bool {
	return entry.HasCalls() && strings.TrimSpace(entry.Content.String()) == "" &&
		!slices.ContainsFunc(entry.ToolCalls, func(call continuo.ToolCall) bool { return !index.IsSearchCall(call.Name) })
}

// leastProbability is what an entry without a word of a question must have, in millionths.
const leastProbability = 2_000

// ranked ranks what was read.
func (r *reader) ranked(statistics recall.Statistics) []Found {
	slices.SortFunc(r.read, func(a, b Found) int {
		return cmp.Or(cmp.Compare(a.Conversation.ID, b.Conversation.ID), cmp.Compare(a.Hit.Seq, b.Hit.Seq))
	})
	documents := make([]recall.Document, len(r.read))
	for i := range r.read {
		documents[i] = documentOf(&r.read[i])
		documents[i].Near = r.near.Of(&r.read[i].Conversation, r.read[i].Hit.Seq)
	}
	statistics.Documents = max(statistics.Documents, int64(len(documents)))
	var ranked []Found
	for _, scored := range recall.Rank(r.query.Text, statistics, documents) {
		found := r.read[scored.Index]
		found.Score = scored
		if !found.HasWords && scored.Probability() < leastProbability || r.request.Role != "" && found.Entry.Role != r.request.Role {
			continue
		}
		ranked = append(ranked, found)
	}
	if all, err := fulltext.ParseQuery(r.query.Text); err == nil && !r.isQuestion {
		for i := range ranked {
			_, ranked[i].hasAll = all.Match(ranked[i].Texts()...)
		}
	}
	slices.SortFunc(ranked, order)
	return ranked
}

// documentOf is a candidate as the ranker reads it. Titles have no neighbours.
func documentOf(f *Found) recall.Document {
	texts := f.Texts()
	if f.Hit.Seq == 0 {
		return recall.Document{ConversationID: f.Conversation.ID + " title", Role: continuo.Assistant, At: f.Conversation.CreatedAt, Text: texts[0], Tokens: len(texts[0]) / 4}
	}
	return recall.Document{
		ConversationID: f.Conversation.ID, Seq: f.Hit.Seq, Role: f.Entry.Role, Speaker: recall.SpeakerOf(&f.Entry), At: f.Entry.CreatedAt,
		Text: rankedText(texts, f.Match), Tokens: recall.TokensOf(&f.Entry),
	}
}

// The bounds of the text of one entry that is ranked: of a longer one its beginning, and what stands around the words of
// the query.
const (
	maxText    = 6_000 // bytes
	headText   = 1_500
	aroundText = 200
)

func rankedText(texts []string, match fulltext.Match) string {
	size := 0
	for _, text := range texts {
		size += len(text)
	}
	if size <= maxText {
		return strings.Join(texts, "\n")
	}
	var b strings.Builder
	end := make([]int, len(texts)) // of what was written of each
	add := func(field, from, to int) {
		text := texts[field]
		from, to = max(from, end[field]), min(to, len(text))
		if from < to && b.Len() < maxText {
			b.WriteString(strings.ToValidUTF8(text[from:to], ""))
			b.WriteByte('\n')
			end[field] = to
		}
	}
	for field := range texts {
		add(field, 0, headText)
	}
	for _, hit := range match.Hits {
		add(hit.Field, hit.Start-aroundText, hit.End+aroundText)
	}
	return b.String()
}
