package recalls

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
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
	taken := request.take(items, r.finder.Analyzer)
	inOrder(taken)
	count := request.Counter.Count
	text := block(taken, "", "")
	for request.Tokens > 0 && len(taken) > 0 && count(text) > request.Tokens { // the estimate was too small
		last := 0
		for i := range taken {
			if taken[i].Score.Value < taken[last].Score.Value {
				last = i
			}
		}
		taken = slices.Delete(taken, last, last+1)
		text = block(taken, "", "")
	}
	shown := &View{Text: text, Ranker: ranker}
	for _, one := range taken {
		shown.Items = append(shown.Items, itemOf(&one, request.Conversation))
	}
	slices.SortFunc(shown.Items, func(a, b window.PlanItem) int { return cmp.Compare(a.Seq, b.Seq) })
	shown.Size = continuo.Size{Messages: 1, Chars: utf8.RuneCountInString(text), Tokens: count(text)}
	return shown, nil
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

// take takes the first entries, or passages of them, as far as they fit.
func (r *ViewRequest) take(items []lookup.Item, analyzer *recall.Analyzer) (taken []chosenEntry) {
	count, left := r.Counter.Count, r.Tokens
	stamps := map[string]bool{}
	for _, item := range items {
		one := chosenEntry{Item: item, passage: r.Passages && isLong(&item)}
		size := item.Tokens
		if one.passage {
			size = viewPassage / 2 // at least
		}
		size += count(strings.TrimSpace(label(&one)))
		stamp := item.Owner.ID + stampAfter(nil, &one)
		if !stamps[stamp] {
			size += stampTokens
		}
		if r.Tokens > 0 && size > left {
			continue
		}
		one.text = item.Entry.Content.String()
		if one.passage {
			one.text = Passage(analyzer, one.text, r.Text, viewPassage*charsPerToken)
			if size += count(one.text) - viewPassage/2; r.Tokens > 0 && size > left {
				continue
			}
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
