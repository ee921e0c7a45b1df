package recalls

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/recall"
	"github.com/continuo-log/continuo/recall/lookup"
	"github.com/continuo-log/continuo/window"
)

// View is what the view recall shows: the entries that a query needs most, as one text.
type View struct {
	Text   string
	Items  []window.PlanItem
	Size   continuo.Size
	Ranker string // see continuo.Recall
}

// ViewRequest asks for a View.
type ViewRequest struct {
	lookup.Request
	Tokens  int // 0: no limit
	Counter continuo.Counter
	// Passages shows of entries of more than 80 tokens the 40 that the query needs most, so that more entries fit. Default
	// false: entries are shown whole.
	Passages bool
}

// The sizes of passages in the view recall, in tokens.
const (
	viewLongEntry = 80
	viewPassage   = 40
)

// View fills a budget with the entries that a query needs most, whatever their probability.
func (r *Recalls) View(ctx context.Context, request ViewRequest) (*View, error) {
	ctx = forOwner(ctx, &request.Conversation)
	if request.Scope == lookup.User || request.Scope == lookup.Project {
		facts, err := r.related(ctx, request.Conversation, request.Text)
		if err != nil {
			return nil, fmt.Errorf("recall: %w", err)
		}
		request.Extra = facts
	}
	items, err := r.finder.Find(ctx, request.Request)
	if err != nil {
		return nil, fmt.Errorf("recall: %w", err)
	}
	request.order(items)
	ranker := r.finder.Rerank(ctx, head(request.Text, maxQuery), items, func(*lookup.Item) bool { return true })
	taken, err := r.takePresent(ctx, &request, items)
	if err != nil {
		return nil, err
	}
	text := inBlock(taken)
	count := request.Counter.Count
	for request.Tokens > 0 && len(taken) > 0 && count(text) > request.Tokens { // times of day were not counted
		taken = taken[:len(taken)-1]
		text = inBlock(taken)
	}
	shown := &View{Text: text, Ranker: ranker}
	for _, one := range taken {
		shown.Items = append(shown.Items, itemOf(&one, request.Conversation))
	}
	slices.SortFunc(shown.Items, func(a, b window.PlanItem) int { return cmp.Compare(a.Seq, b.Seq) })
	shown.Size = continuo.Size{Messages: 1, Chars: utf8.RuneCountInString(text), Tokens: count(text)}
	return shown, nil
}

// takePresent takes the first entries that no client has deleted.
func (r *Recalls) takePresent(ctx context.Context, request *ViewRequest, items []lookup.Item) ([]chosenEntry, error) {
	for {
		taken := request.take(items, r.finder.Analyzer)
		deleted, err := r.deleted(ctx, taken)
		if err != nil || len(deleted) == 0 {
			return taken, err
		}
		items = slices.DeleteFunc(items, func(item lookup.Item) bool { return deleted[placeOf(&item)] })
	}
}

// inBlock is the text of a view with some entries.
func inBlock(taken []chosenEntry) string {
	ordered := slices.Clone(taken)
	inOrder(ordered)
	return block(ordered, "", "")
}

// order puts the entries in the order of their value as they are shown: whole, or as passages.
func (r *ViewRequest) order(items []lookup.Item) {
	if !r.Passages {
		return
	}
	for i := range items {
		if isLong(&items[i]) {
			items[i].Score.Value = items[i].Score.ValueOf(viewPassage)
		}
	}
	slices.SortStableFunc(items, func(a, b lookup.Item) int { return cmp.Compare(b.Score.Value, a.Score.Value) })
}

// fewestTokens is how many tokens of its size a text has at least when it is shown: empty lines are left out.
func fewestTokens(size int) int { return size / 2 }

// take takes the first entries, or passages of them, as far as they fit.
func (r *ViewRequest) take(items []lookup.Item, analyzer *recall.Analyzer) (taken []chosenEntry) {
	left, count := r.Tokens, r.Counter.Count
	isFull := func(tokens int) bool { return r.Tokens > 0 && tokens > left }
	stamps := map[string]bool{}
	for i := range items {
		one := chosenEntry{Item: items[i], passage: r.Passages && isLong(&items[i])}
		size := items[i].Tokens
		if one.passage {
			size = viewPassage
		}
		if isFull(fewestTokens(size)) {
			continue
		}
		one.text = one.Entry.Content.String()
		if one.passage {
			one.text = Passage(analyzer, one.text, r.Text, viewPassage*charsPerToken)
		}
		size = count(line(&one))
		stamp := one.Owner.ID + stampAfter(nil, &one)
		if !stamps[stamp] {
			var before *chosenEntry
			if len(taken) > 0 {
				before = &taken[0]
			}
			size += count(stampAfter(before, &one) + "\n")
		}
		if isFull(size) {
			continue
		}
		left -= size
		stamps[stamp] = true
		taken = append(taken, one)
	}
	return taken
}

func isLong(item *lookup.Item) bool { return item.Tokens > viewLongEntry }

func itemOf(one *chosenEntry, conversation continuo.Conversation) window.PlanItem {
	match := &window.RecallMatch{Score: one.Score.Probability(), Words: one.Words, Passage: one.passage}
	if one.Owner.ID != conversation.ID {
		match.ConversationID = one.Owner.ID
	}
	size := continuo.Size{Messages: 1, Chars: one.Entry.Chars, Tokens: one.Entry.Tokens}
	return window.PlanItem{
		Seq: one.Entry.Seq, Role: one.Entry.Role, Verdict: window.Recalled, Reason: window.ReasonRecall, Before: &size, After: &size, Recall: match,
	}
}
