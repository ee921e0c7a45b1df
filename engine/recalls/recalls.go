// Package recalls shows a model earlier entries that a message needs and that its request would not show. Before a turn
// appends its message, Recall plans the request, looks for what the plan leaves out, and makes a hidden entry with a block of
// it, which is appended in the commit of the message. So requests only grow at the end, and earlier requests stay the same
// when the ranking changes. A role of a crew has no message: it is shown what those that are new to it need (role.go).
package recalls

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	crewview "github.com/continuo-log/continuo/crew/view"
	"github.com/continuo-log/continuo/recall"
	"github.com/continuo-log/continuo/recall/lookup"
	"github.com/continuo-log/continuo/token"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// Recalls finds what requests need.
type Recalls struct {
	finder  lookup.Finder
	options Options
	facts   Facts
}

// Facts has what is known of users.
type Facts interface {
	// Related returns the facts of a conversation's user that hold and have a word of a text, as entries of the memory.
	Related(ctx context.Context, conversation continuo.Conversation, text string) ([]lookup.Item, error)
}

// SetFacts has facts recalled too, before the first turn.
func (r *Recalls) SetFacts(facts Facts) { r.facts = facts }

// Options configures recalls.
type Options struct {
	// Threshold is the probability, in millionths, below which an entry is not recalled. Default DefaultThreshold.
	Threshold int
	// Scope is where turns look. Conversations of other users are never searched: the scope Project has those of the user and
	// those of nobody. Default lookup.Conversation.
	Scope  lookup.Scope
	Logger *slog.Logger
}

// The defaults, and the bounds of one recall.
const (
	DefaultThreshold = 150_000
	statementOdds    = 4   // what a message that asks nothing recalls has the threshold's odds times this
	turnCandidates   = 100 // entries that are ranked before a turn
	longEntry        = 300 // tokens above which only a passage of an entry is shown
	passageTokens    = 100
	maxQuery         = 4_000 // characters of a message that are looked for
	maxStoredQuery   = 300
	maxItems         = 20 // of one block
	maxTerms         = 40 // of a message: a longer one says itself what it is about
	// leastWeight is how much one entry must have in common with a message, in units of 1/65536: greetings and thanks have
	// less, two rare words of a long conversation more. See leastOf for questions in short ones.
	leastWeight   = 5 << 16
	charsPerToken = 4
	leastTokens   = 40 // below which no block is made
)

// ViewPatience bounds how long missing entries are indexed before the view recall is built.
const ViewPatience = 2 * time.Second

// New makes recalls. Without an index nothing is recalled.
func New(finder lookup.Finder, options Options) *Recalls {
	options.Threshold = cmp.Or(options.Threshold, DefaultThreshold)
	options.Scope = cmp.Or(options.Scope, lookup.Conversation)
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	if finder.Analyzer == nil {
		finder.Analyzer = &recall.Analyzer{}
	}
	return &Recalls{finder: finder, options: options}
}

// Finder finds and ranks the candidates.
func (r *Recalls) Finder() lookup.Finder { return r.finder }

// Recall is part of [turn.Recaller].
func (r *Recalls) Recall(ctx context.Context, runner *turn.Runner, snapshot *continuo.Snapshot, message continuo.Content) *continuo.Entry {
	source := turn.Source{Context: ctx, Log: r.finder.Log, Conversation: snapshot.Conversation, Snapshot: snapshot}
	var entry *continuo.Entry
	var err error
	switch view, isRole := runner.View.(crewview.View); {
	case isRole:
		entry, err = r.forRole(ctx, runner, &view, turn.Ahead{Source: source})
	case !message.IsNull(): // a step's cue asks nothing
		entry, err = r.recall(ctx, runner, source, message)
	}
	if err == nil && entry != nil {
		err = r.finder.Log.NoteRecall(ctx, snapshot.Conversation, entry)
	}
	if err != nil {
		entry = nil
	}
	if err != nil && ctx.Err() == nil {
		r.options.Logger.WarnContext(ctx, "recall_failed", "conversation_id", snapshot.Conversation.ID, "error", err.Error())
	}
	return entry
}

// Ahead returns what would be appended if a message was sent, with what is recalled: before the message, or, for a role of a
// crew, after it. The entries have their seqs and sizes.
func (r *Recalls) Ahead(ctx context.Context, runner *turn.Runner, conversation continuo.Conversation, message continuo.Content) ([]continuo.Entry, error) {
	source := turn.Source{Context: ctx, Log: r.finder.Log, Conversation: conversation}
	next := conversation.LastSeq + 1
	said := continuo.Entry{Role: continuo.User, Content: message}
	if view, isRole := runner.View.(crewview.View); isRole {
		ahead := []continuo.Entry{placed(runner, said, next)}
		recalled, err := r.forRole(ctx, runner, &view, turn.Ahead{Source: source, More: ahead})
		if err == nil && recalled != nil {
			ahead = append(ahead, placed(runner, *recalled, next+1))
		}
		return ahead, err
	}
	recalled, err := r.recall(ctx, runner, source, message)
	if err != nil || recalled == nil {
		return []continuo.Entry{placed(runner, said, next)}, err
	}
	return []continuo.Entry{placed(runner, *recalled, next), placed(runner, said, next+1)}, nil
}

// placed is an entry that is not appended yet, as it would be in the log.
func placed(runner *turn.Runner, entry continuo.Entry, seq int64) continuo.Entry {
	counter, _ := token.ForModel(runner.Model.Info().Name)
	size := continuo.Measure(entry.Content, nil, counter)
	entry.Seq, entry.Chars, entry.Tokens, entry.Tokenizer = seq, size.Chars, size.Tokens, counter.Name()
	return entry
}

func (r *Recalls) recall(ctx context.Context, runner *turn.Runner, source turn.Source, message continuo.Content) (*continuo.Entry, error) {
	query := head(message.String(), maxQuery)
	var facts []lookup.Item
	if !runner.NoMemory {
		var err error
		if facts, err = r.related(ctx, source.Conversation, query); err != nil {
			return nil, err
		}
	}
	isNarrow := r.options.Scope == lookup.Conversation && len(facts) == 0
	least := leastOf(source.Conversation, query, isNarrow)
	if isNarrow && r.finder.IsCommon(source.Conversation, query, least) { // before the request is planned
		return nil, nil
	}
	room, outcome, err := r.room(ctx, runner, source, message, query)
	if err != nil || room == nil || outcome == AllShown && isNarrow {
		return nil, err
	}
	room.least = least
	items, err := r.finder.Find(ctx, r.request(source.Conversation, query, facts, room))
	if err != nil {
		return nil, err
	}
	chosen, ranker, err := r.chooseReranked(ctx, items, room, query)
	if err != nil || len(chosen) == 0 {
		return nil, err
	}
	return entryOf(query, source.Conversation, r.options.Scope, ranker, chosen, inWindow), nil
}

// forOwner charges requests to other servers to the owner of a conversation, and to the key of the context.
func forOwner(ctx context.Context, conversation *continuo.Conversation) context.Context {
	return continuo.WithOwner(ctx, conversation.ProjectID, conversation.UserID)
}

// chooseReranked chooses entries, in the order of the words and then in that of the reranker. Whether anything is recalled the
// words alone decide: it is asked for few messages. The items are left in the order that counts.
func (r *Recalls) chooseReranked(ctx context.Context, items []lookup.Item, room *room, query string) (chosen []chosenEntry, ranker string, err error) {
	chosen, err = r.choosePresent(ctx, items, room, query)
	if err != nil || !room.hasEnough(chosen) {
		return nil, recall.Version, err
	}
	if r.finder.Reranker == nil {
		return chosen, recall.Version, nil
	}
	words := slices.Clone(items)
	ranker = r.finder.Rerank(forOwner(ctx, &room.conversation), query, items, room.may)
	again, err := r.choosePresent(ctx, items, room, query)
	if err != nil || !room.hasEnough(again) {
		copy(items, words)
		return chosen, recall.Version, err
	}
	return again, ranker, nil
}

// choosePresent chooses entries that no client has deleted.
func (r *Recalls) choosePresent(ctx context.Context, items []lookup.Item, room *room, query string) ([]chosenEntry, error) {
	for {
		chosen := r.choose(items, room, query)
		deleted, err := r.deleted(ctx, chosen)
		if err != nil || len(deleted) == 0 {
			return chosen, err
		}
		maps.Copy(room.deleted, deleted)
	}
}

// deleted are the places of entries that a client has deleted. It is asked of few: an index does not know it.
func (r *Recalls) deleted(ctx context.Context, chosen []chosenEntry) (map[place]bool, error) {
	seqs, owners := map[string][]int64{}, map[string]continuo.Conversation{}
	for i := range chosen {
		owner := *chosen[i].Owner
		owners[owner.ID], seqs[owner.ID] = owner, append(seqs[owner.ID], chosen[i].Entry.Seq)
	}
	places := map[place]bool{}
	for id, owner := range owners {
		deleted, err := r.finder.Log.Deleted(ctx, owner, seqs[id])
		if err != nil {
			return nil, fmt.Errorf("recall: %w", err)
		}
		for _, seq := range deleted {
			places[place{id, seq}] = true
		}
	}
	return places, nil
}

// related are the facts that may be recalled.
func (r *Recalls) related(ctx context.Context, conversation continuo.Conversation, query string) ([]lookup.Item, error) {
	if r.facts == nil || r.finder.Store == nil {
		return nil, nil
	}
	return r.facts.Related(ctx, conversation, query)
}

// request is what a turn looks for.
func (r *Recalls) request(conversation continuo.Conversation, query string, facts []lookup.Item, room *room) lookup.Request {
	return lookup.Request{
		Text: query, Conversation: conversation, Scope: r.options.Scope, ForUser: true, Candidates: turnCandidates, LeastWeight: room.least,
		May: room.leftOut.has, Extra: facts,
	}
}

// place is the position of an entry.
type place struct {
	conversation string
	seq          int64
}

// room is what a request leaves to a recall.
type room struct {
	conversation continuo.Conversation
	leftOut      leftOut
	recalled     map[place]bool // by a block that is still shown or by the profile
	deleted      map[place]bool // by a client, as far as it was asked for
	said         map[place]bool // by entries that are taken: where they were written
	tokens       int
	items        int
	bar          bar
	least        int64 // what one entry must have in common with the message; see leastOf
}

// take makes entries part of the block.
func (r *room) take(chosen []chosenEntry) {
	for i := range chosen {
		one := &chosen[i]
		r.tokens -= one.size
		r.items--
		r.recalled[placeOf(&one.Item)] = true
		r.said[place{one.Entry.ConversationID, one.Entry.Seq}] = true
	}
}

// may reports whether a request shows an entry nowhere else.
func (r *room) may(item *lookup.Item) bool {
	at := placeOf(item)
	if r.recalled[at] || r.deleted[at] {
		return false
	}
	if at.conversation == r.conversation.ID {
		return r.leftOut.has(at.seq)
	}
	return !slices.ContainsFunc(sourcesOf(item), r.shows)
}

// shows reports whether a request shows an entry that was written somewhere.
func (r *room) shows(at place) bool {
	isOwn := at.conversation == r.conversation.ID || slices.ContainsFunc(r.conversation.Lineage, func(s continuo.Segment) bool {
		return s.ConversationID == at.conversation && at.seq <= s.Through
	})
	return isOwn && !r.leftOut.has(at.seq)
}

// placeOf is the position of an entry, by the conversation that it was read from.
func placeOf(item *lookup.Item) place { return place{item.Owner.ID, item.Entry.Seq} }

// sourcesOf are the entries that a fact was taken from; none of an entry that is no fact.
func sourcesOf(item *lookup.Item) (sources []place) {
	if item.Entry.Fact == nil {
		return nil
	}
	for _, source := range item.Entry.Fact.Sources {
		sources = append(sources, place{source.ConversationID, source.Seq})
	}
	return sources
}

// room plans the request of a message; nil where nothing can be recalled. The outcome is why nothing is recalled for it, whatever there is; "" where something
// may be. With AllShown there is room for entries of other conversations.
func (r *Recalls) room(ctx context.Context, runner *turn.Runner, source turn.Source, message continuo.Content, query string) (*room, Outcome, error) {
	share, isRole := shareOf(runner.View)
	if share == 0 || r.finder.Store == nil {
		return nil, SwitchedOff, nil
	}
	if outcome := notAsked(query); outcome != "" {
		return nil, outcome, nil
	}
	next := continuo.Entry{Role: continuo.User, Content: message, Seq: source.Conversation.LastSeq + 1}
	plan, err := planned(ctx, runner, turn.Ahead{Source: source, More: []continuo.Entry{next}})
	if err != nil || plan == nil {
		return nil, NoRoom, err
	}
	if isRole && plan.Role.Waiting > 0 {
		return nil, NoRoom, nil
	}
	found := roomIn(plan, source.Conversation, share)
	found.bar = r.barFor(query, 1)
	switch {
	case len(found.leftOut) == 0 && found.tokens >= leastTokens:
		return found, AllShown, nil
	case len(found.leftOut) == 0:
		return nil, AllShown, nil
	case found.tokens < leastTokens:
		return nil, NoRoom, nil
	}
	return found, "", nil
}

// shareOf is the share of a view's limits that recalled entries may take; 0 for a view without recalls.
func shareOf(view turn.View) (share float64, isRole bool) {
	switch view := view.(type) {
	case window.View:
		return view.RecallShare, false
	case crewview.View:
		return view.RecallShare, true
	}
	return 0, false
}

// notAsked says why nothing is recalled for a text, whatever there is; "" where something may be.
func notAsked(query string) Outcome {
	switch terms := len(recall.Terms(query)); {
	case terms == 0 || isCommand(query):
		return NoQuestion
	case terms > maxTerms:
		return TooLong
	}
	return ""
}

// planned plans a request with entries that are not appended yet; nil for one that does not fit: the turn reports that.
func planned(ctx context.Context, runner *turn.Runner, ahead turn.Ahead) (*window.Plan, error) {
	at := ahead.Conversation.LastSeq + int64(len(ahead.More))
	plan, _, err := runner.Plan(ctx, ahead.Conversation, ahead, at)
	if overflow := new(continuo.OverflowError); errors.As(err, &overflow) {
		return nil, nil
	}
	return plan, err
}

// roomIn is what a planned request leaves to a recall.
func roomIn(plan *window.Plan, conversation continuo.Conversation, share float64) *room {
	found := &room{
		conversation: conversation, leftOut: leftOutOf(plan), recalled: map[place]bool{}, deleted: map[place]bool{}, said: map[place]bool{},
		tokens: budget(plan, share), items: maxItems, least: leastWeight,
	}
	if shown := plan.Profile; shown != nil && shown.Entry != nil {
		for _, fact := range shown.Entry.Profile.Facts {
			found.recalled[place{shown.ConversationID, fact}] = true
		}
	}
	for _, block := range plan.Blocks() {
		for _, item := range block.Recall.Items {
			found.recalled[place{item.ConversationID, item.Seq}] = true
		}
	}
	return found
}

// hasEnough reports whether one of the entries has enough in common with the message.
func (r *room) hasEnough(chosen []chosenEntry) bool {
	return slices.ContainsFunc(chosen, func(one chosenEntry) bool { return one.Weight >= r.least })
}

// leastOf is how much one entry must have in common with a message. In a conversation of less than some 220 entries no single
// word weighs leastWeight: there a question needs what a word weighs that one entry has. Narrow is a search of the conversation
// alone, without facts: in others words weigh more.
func leastOf(conversation continuo.Conversation, query string, isNarrow bool) int64 {
	if !isNarrow || !recall.Asks(query) {
		return leastWeight
	}
	return min(leastWeight, recall.Rarity(1, conversation.LastSeq))
}

// isCommand reports whether a message has only commands to a client, such as /model NAME or !ls: they ask nothing.
func isCommand(query string) bool {
	for line := range strings.Lines(query) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if len(line) < 2 || line[0] != '/' && line[0] != '!' || !unicode.IsLetter(rune(line[1])) {
			return false
		}
	}
	return true
}

// budget is how many tokens a new block may have.
func budget(plan *window.Plan, share float64) int {
	limit := plan.Limits.Tokens
	if chars := plan.Limits.Chars / charsPerToken; limit == 0 || chars > 0 && chars < limit {
		limit = chars
	}
	left := int(float64(limit) * share)
	for _, block := range plan.Blocks() {
		left -= block.Tokens
	}
	return left
}

// leftOut are the ranges of entries that a plan does not show in any form, in order.
type leftOut [][2]int64

// leftOutOf lists what a plan leaves out. A role is shown later what waits for its next turn; a view that shows a role only what
// is new leaves out the rest, unless the role's agent remembers it, or may not see it.
func leftOutOf(plan *window.Plan) (ranges leftOut) {
	for _, item := range plan.Items {
		isLeft := item.Verdict == window.Dropped && item.Reason != window.ReasonNextTurn || item.Verdict == window.Summarized
		if isLeft || item.Verdict == window.Excluded && item.Reason == window.ReasonSeen && !plan.Role.Remembers {
			ranges = append(ranges, [2]int64{item.Seq, max(item.Seq, item.Through)})
		}
	}
	return ranges
}

func (l leftOut) has(seq int64) bool {
	i, found := slices.BinarySearchFunc(l, seq, func(r [2]int64, seq int64) int { return cmp.Compare(r[0], seq) })
	return found || i > 0 && seq <= l[i-1][1]
}

// chosenEntry is an entry that is recalled.
type chosenEntry struct {
	lookup.Item
	text        string // as it is shown
	size        int    // in tokens, estimated
	passage     bool
	isElsewhere bool // it is of another conversation than the block
}

// choose takes the best entries that may be shown, at least the threshold, as far as they fit.
func (r *Recalls) choose(items []lookup.Item, room *room, query string) []chosenEntry {
	var taken []chosenEntry
	said := maps.Clone(room.said)
	tokens := room.tokens - blockTokens
	for i := range items {
		item := &items[i]
		if !room.bar.isCleared(item) || !room.may(item) || slices.ContainsFunc(sourcesOf(item), func(at place) bool { return said[at] }) {
			continue
		}
		one := chosenEntry{Item: *item, text: item.Entry.Content.String()}
		if item.Tokens > longEntry {
			hasLittle := func(weight int64) bool { return weight < leastWeight || 3*weight < 2*item.Weigher.Total }
			if hasLittle(item.Weight) { // so has each passage
				continue
			}
			one.text, one.passage = Passage(r.finder.Analyzer, one.text, query, passageTokens*charsPerToken), true
			if hasLittle(item.Weigher.Text(one.text)) {
				continue // a long text has a little of everything
			}
		}
		one.size = (utf8.RuneCountInString(one.text)+charsPerToken-1)/charsPerToken + lineTokens
		if one.size > tokens {
			continue
		}
		tokens -= one.size
		said[place{item.Entry.ConversationID, item.Entry.Seq}] = true
		if taken = append(taken, one); len(taken) >= room.items {
			break
		}
	}
	inOrder(taken)
	return taken
}

// bar is how probable what a message recalls must be.
type bar struct {
	probability int   // in millionths
	messages    int64 // so many are looked for at once
	asks        bool  // the message is a question
}

// barFor is the bar of a message. Where several messages are looked for at once it is higher: one in twenty turns may recall what
// it does not need, not each message.
func (r *Recalls) barFor(query string, messages int) bar {
	asks, odds := recall.Asks(query), int64(messages)
	if !asks {
		odds *= statementOdds
	}
	probability := int64(r.options.Threshold)
	return bar{int(1_000_000 * odds * probability / (1_000_000 + (odds-1)*probability)), int64(messages), asks}
}

// The first entries of the reranker may be less probable by their words, and those with half of the words of a question, by
// rarity, may be much less: turns that need nothing seldom find such entries, and what the form of an entry says against it
// counts less than that.
const (
	lifted   = 3
	liftedBy = 3
	manyBy   = 20
)

// isCleared reports whether an entry is as probable as it must be.
func (b bar) isCleared(item *lookup.Item) bool {
	threshold := b.probability
	switch {
	case b.asks && b.hasMany(item):
		threshold /= manyBy
	case item.Reranked >= 1 && item.Reranked <= lifted:
		threshold /= liftedBy
	}
	return item.Score.Probability() >= threshold
}

// hasMany reports whether an entry lacks at most half of a message's words, by rarity, and of several messages its part of that.
func (b bar) hasMany(item *lookup.Item) bool {
	return item.Weight >= leastWeight && 2*b.messages*item.Weight >= (2*b.messages-1)*item.Weigher.Total
}

// inOrder puts facts first, and messages in the order of time.
func inOrder(taken []chosenEntry) {
	slices.SortFunc(taken, func(a, b chosenEntry) int {
		if a.Entry.Fact != nil || b.Entry.Fact != nil {
			return cmp.Or(cmp.Compare(a.isMessage(), b.isMessage()), cmp.Compare(a.Owner.ID, b.Owner.ID), cmp.Compare(a.Entry.Seq, b.Entry.Seq))
		}
		return cmp.Or(a.Entry.CreatedAt.Compare(b.Entry.CreatedAt), cmp.Compare(a.Owner.ID, b.Owner.ID), cmp.Compare(a.Entry.Seq, b.Entry.Seq))
	})
}

// isMessage is 0 for a fact and 1 for a message.
func (c *chosenEntry) isMessage() int {
	if c.Entry.Fact != nil {
		return 0
	}
	return 1
}

// entryOf makes the hidden entry of a recall.
func entryOf(query string, conversation continuo.Conversation, scope lookup.Scope, ranker string, taken []chosenEntry, between frame) *continuo.Entry {
	made := &continuo.Recall{Query: head(query, maxStoredQuery), Scope: string(scope), Ranker: ranker}
	begin := between.begin
	if !slices.ContainsFunc(taken, func(one chosenEntry) bool { return one.Owner.ID != conversation.ID }) {
		slices.SortFunc(taken, func(a, b chosenEntry) int { return cmp.Compare(a.Entry.Seq, b.Entry.Seq) })
	}
	for i := range taken {
		one := &taken[i]
		one.isElsewhere = one.Owner.ID != conversation.ID
		item := continuo.RecallItem{Seq: one.Entry.Seq, Passage: one.passage, Score: one.Score.Probability(), Words: one.Words}
		if one.isElsewhere {
			item.ConversationID = one.Owner.ID
			begin = between.beginElsewhere
		}
		made.Items = append(made.Items, item)
	}
	return &continuo.Entry{
		Role: continuo.System, Hidden: true, PartType: continuo.PartRecall, Recall: made,
		Content: continuo.Text(block(taken, begin, between.end)),
	}
}

// head is the beginning of a text, of at most so many characters.
func head(text string, most int) string {
	for i := range text {
		if most == 0 {
			return text[:i]
		}
		most--
	}
	return text
}
