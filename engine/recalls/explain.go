package recalls

import (
	"context"
	"errors"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	crewview "github.com/continuo-log/continuo/crew/view"
	"github.com/continuo-log/continuo/recall"
	"github.com/continuo-log/continuo/recall/lookup"
	"github.com/continuo-log/continuo/turn"
)

// Outcome is what became of a message or an entry.
type Outcome string

// The outcomes. Those from SwitchedOff to TooLittle are of messages, the others of entries.
const (
	Recalled       Outcome = "recalled"
	SwitchedOff    Outcome = "switched_off"    // the view recalls nothing, or there is no index
	NoQuestion     Outcome = "no_question"     // only stop words, or commands to a client
	TooLong        Outcome = "too_long"        // a long text says itself what it is about
	AllShown       Outcome = "all_shown"       // the request leaves nothing out
	NoRoom         Outcome = "no_room"         // for a block, or for one more entry
	TooLittle      Outcome = "too_little"      // in common with the message
	Shown          Outcome = "shown"           // by the request anyway
	BelowThreshold Outcome = "below_threshold" // not probable enough
	NotRecallable  Outcome = "not_recallable"  // hidden, redacted, deleted, a call, a result or a system message
	NotFound       Outcome = "not_found"       // none of the rarest words, or too many entries have more
)

// Explanation says what a turn with a message would recall, and why.
type Explanation struct {
	Query string `json:"query"`
	// View is the view of the turn.
	View string `json:"view"`
	// Outcome is recalled, or why nothing is recalled for the message.
	Outcome Outcome `json:"outcome" enum:"recalled,switched_off,no_question,too_long,all_shown,no_room,too_little"`
	// Ranker identifies the ranking, and the reranker's model or that it failed.
	Ranker string `json:"ranker"`
	// Threshold is the probability, in millionths, below which an entry is not recalled for this message. A twentieth
	// of it is enough for one that has half of the words of a question, by rarity.
	Threshold int `json:"threshold"`
	// Tokens is how many tokens the block may have.
	Tokens int `json:"tokens"`
	// Candidates is how many entries were ranked.
	Candidates int `json:"candidates"`
	// Entries are the first of the ranking, or the one that was asked for.
	Entries []ExplainedEntry `json:"entries"`

	bar bar
}

// ExplainedEntry says why an entry is recalled or not.
type ExplainedEntry struct {
	// ConversationID is the entry's conversation, where it is not the one that was asked about.
	ConversationID string `json:"conversation_id,omitempty"`
	Seq            int64  `json:"seq"`
	// Rank is the place in the ranking, from 1; 0 for an entry that is not ranked.
	Rank    int     `json:"rank"`
	Outcome Outcome `json:"outcome" enum:"recalled,no_room,too_little,shown,below_threshold,not_recallable,not_found"`
	// Reranked is the place that the reranker gave the entry, from 1; 0 where it was not asked about it.
	Reranked int `json:"reranked,omitempty"`
	// Score is the probability that the message needs the entry, in millionths.
	Score int `json:"score"`
	// Words are the words of the message that the entry has, in some form.
	Words []string `json:"words"`
	// Features are what the score is made of, what counts most first: their sum is the logarithm of the odds.
	Features []recall.Part `json:"features"`
}

// ExplainRequest says what to explain.
type ExplainRequest struct {
	Seq   int64 // of one entry; 0: the first of the ranking
	Limit int   // of entries; default 10
}

const explainedEntries = 10

// Explain says what a turn with a message would recall, and why. It changes nothing.
func (r *Recalls) Explain(ctx context.Context, runner *turn.Runner, conversation continuo.Conversation, message continuo.Content, request ExplainRequest) (*Explanation, error) {
	source := turn.Source{Context: ctx, Log: r.finder.Log, Conversation: conversation}
	query := head(message.String(), maxQuery)
	needed := r.barFor(query, 1)
	made := &Explanation{Query: head(query, maxStoredQuery), Outcome: Recalled, Ranker: recall.Version, Threshold: needed.probability, Entries: []ExplainedEntry{}, bar: needed}
	facts, err := r.related(ctx, conversation, query)
	if err != nil {
		return nil, err
	}
	space, outcome, err := r.room(ctx, runner, source, message, query)
	if err != nil {
		return nil, err
	}
	isNarrow := r.options.Scope == lookup.Conversation && len(facts) == 0
	if _, isRole := runner.View.(crewview.View); space != nil && !isRole {
		space.least = leastOf(conversation, query, isNarrow)
	}
	switch {
	case outcome == AllShown && space != nil && !isNarrow:
		made.Tokens = space.tokens
	case outcome != "":
		made.Outcome, space = outcome, nil
	default:
		made.Tokens = space.tokens
	}
	corpus, items, err := r.finder.Corpus(ctx, lookup.Request{
		Text: query, Conversation: conversation, Scope: r.options.Scope, ForUser: true, Candidates: turnCandidates, Patience: ViewPatience, Extra: facts,
	})
	if err != nil {
		return nil, err
	}
	var ranked []recall.Scored
	if corpus != nil {
		ranked = corpus.Rank(query)
	}
	made.Candidates = len(ranked)
	ordered := make([]lookup.Item, len(ranked))
	for i, scored := range ranked {
		ordered[i] = items[scored.Index]
		ordered[i].Score = scored
	}
	chosen := map[place]bool{}
	if space != nil {
		if chosen, err = r.chosenPlaces(ctx, space, ordered, query, made); err != nil {
			return nil, err
		}
	}
	if view, isRole := runner.View.(crewview.View); isRole && len(chosen) > 0 { // the block must fit beside what is new
		said := placed(runner, continuo.Entry{Role: continuo.User, Content: message}, conversation.LastSeq+1)
		block, err := r.forRole(ctx, runner, &view, turn.Ahead{Source: source, More: []continuo.Entry{said}})
		if err != nil {
			return nil, err
		}
		if block == nil {
			made.Outcome, chosen = NoRoom, nil
		}
	}
	if request.Limit == 0 {
		request.Limit = explainedEntries
	}
	for i := range ordered {
		item := &ordered[i]
		isAsked := item.Entry.Seq == request.Seq && item.Owner.ID == conversation.ID
		if request.Seq == 0 && i >= request.Limit || request.Seq != 0 && !isAsked {
			continue
		}
		one := ExplainedEntry{
			Seq: item.Entry.Seq, Rank: i + 1, Reranked: item.Reranked,
			Outcome: made.outcomeOf(item, space, chosen[placeOf(item)]), Score: item.Score.Probability(),
			Words: append([]string{}, item.Words...), Features: corpus.Explain(query, item.Score.Index),
		}
		if item.Owner.ID != conversation.ID {
			one.ConversationID = item.Owner.ID
		}
		made.Entries = append(made.Entries, one)
	}
	if request.Seq != 0 && len(made.Entries) == 0 {
		err = r.explainUnranked(ctx, conversation, request.Seq, made)
	}
	return made, err
}

// chosenPlaces are the entries that the block would have. The items are left in the order that counts.
func (r *Recalls) chosenPlaces(ctx context.Context, space *room, ordered []lookup.Item, query string, made *Explanation) (map[place]bool, error) {
	chosen, ranker, err := r.chooseReranked(ctx, ordered, space, query)
	made.Ranker = ranker
	places := map[place]bool{}
	if len(chosen) == 0 {
		made.Outcome = TooLittle
	}
	for i := range chosen {
		places[placeOf(&chosen[i].Item)] = true
	}
	return places, err
}

func (e *Explanation) outcomeOf(item *lookup.Item, space *room, chosen bool) Outcome {
	switch {
	case chosen:
		return Recalled
	case space != nil && space.deleted[placeOf(item)]:
		return NotRecallable
	case !e.bar.isCleared(item):
		return BelowThreshold
	case e.Outcome == AllShown || space != nil && !space.may(item):
		return Shown
	case e.Outcome == TooLittle || item.Tokens > longEntry && space != nil:
		return TooLittle
	}
	return NoRoom
}

// explainUnranked says why an entry is not ranked.
func (r *Recalls) explainUnranked(ctx context.Context, conversation continuo.Conversation, seq int64, made *Explanation) error {
	if seq < 1 || seq > conversation.LastSeq {
		return fmt.Errorf("entry %d: %w: the conversation has the entries 1 to %d", seq, continuo.ErrBadRange, conversation.LastSeq)
	}
	one := ExplainedEntry{Seq: seq, Outcome: NotFound, Words: []string{}, Features: []recall.Part{}}
	for entry, err := range r.finder.Log.ReadShared(ctx, conversation, continuo.Range{From: seq, To: seq}) {
		if err != nil && !errors.Is(err, continuo.ErrNotFound) {
			return err
		}
		if err == nil && !lookup.Recallable(entry) {
			one.Outcome = NotRecallable
		}
	}
	made.Entries = append(made.Entries, one)
	return nil
}
