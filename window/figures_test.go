package window_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
	"github.com/continuo-log/continuo/window/windowtest"
)

// What a plan says of itself is what a count of its source, its log and its messages gives.
func TestThePlansFiguresAreTrue(t *testing.T) {
	random := rand.New(rand.NewPCG(15, 2))
	moved, cut := 0, 0
	for range 400 {
		l := talk(random)
		limits := window.Limits{Messages: random.IntN(12), Chars: random.IntN(3) * 900, Tokens: random.IntN(3) * 300}
		for _, name := range views {
			view := preset(t, name, limits)
			view.PreviewChars, view.ToolOutputChars = 40, 200
			in := window.Input{At: int64(len(l.List)), Counter: chars{}, Prompt: continuo.Size{Messages: 1, Chars: 40, Tokens: 10}}
			l.Rows = 0
			first, err := view.Build(l, in)
			if err != nil {
				t.Fatal(err)
			}
			checkFigures(t, l, first, in, limits)
			next := &entries{windowtest.Log{List: slices.Clone(l.List)}}
			next.answer("Well then.", first)
			next.User(words(random.IntN(60)))
			in.At = int64(len(next.List))
			second, err := view.Build(next, in)
			if err != nil {
				t.Fatal(err)
			}
			checkFigures(t, next, second, in, limits)
			if stays := second.Window.Epoch == first.Window.Epoch; stays == second.Moved {
				t.Errorf("%s: moved is %t, the epochs are %d and %d", name, second.Moved, first.Window.Epoch, second.Window.Epoch)
			}
			if second.Moved {
				moved++
			}
			cut += int(second.Totals.Previewed + second.Totals.Truncated)
		}
	}
	if moved == 0 || cut == 0 {
		t.Errorf("%d windows moved, %d outputs were cut", moved, cut)
	}
}

// checkFigures compares what a plan says with what its source has counted, and with its messages.
func checkFigures(t *testing.T, l *entries, plan *window.Plan, in window.Input, limits window.Limits) {
	t.Helper()
	totals := plan.Totals
	if totals.RowsRead != int64(l.Rows) {
		t.Errorf("%s: %d rows were read, the plan says %d", plan.View, l.Rows, totals.RowsRead)
	}
	if totals.PromptSize != in.Prompt || plan.At != in.At || totals.Entries != in.At || plan.Limits != continuo.Size(limits) {
		t.Errorf("%s: the plan says %+v of %+v", plan.View, plan, in)
	}
	var shown continuo.Size
	sizes := map[int64]continuo.Size{} // of the messages that show an entry
	for _, m := range plan.Messages {
		size := continuo.Measure(m.Content, m.ToolCalls, chars{})
		size.Messages, size.Tokens = 1, size.Tokens+window.MessageOverhead+8*len(m.ToolCalls)
		if size != m.Size {
			t.Errorf("%s: message %d is %+v, the plan says %+v", plan.View, m.Seq, size, m.Size)
		}
		shown = shown.Add(size)
		if m.Seq != 0 {
			sizes[m.Seq] = size
		}
	}
	if told := (continuo.Size{Messages: totals.Messages, Chars: totals.Chars, Tokens: totals.Tokens}); told != shown {
		t.Errorf("%s: shown are %+v, the plan says %+v", plan.View, shown, told)
	}
	counts, entries := map[window.Verdict]int64{}, int64(0)
	for _, item := range plan.Items {
		last := max(item.Seq, item.Through)
		counts[item.Verdict] += last - item.Seq + 1
		entries += last - item.Seq + 1
		checkItem(t, l, plan, item, sizes)
	}
	kept := counts[window.Kept] + counts[window.Previewed] + counts[window.Truncated]
	if entries != in.At || totals.Kept != kept || totals.Previewed != counts[window.Previewed] || totals.Truncated != counts[window.Truncated] ||
		totals.Dropped != counts[window.Dropped] || totals.Excluded != counts[window.Excluded] || kept != int64(len(sizes)) {
		t.Errorf("%s: the verdicts are %v on %d entries, the plan says %+v", plan.View, counts, entries, totals)
	}
}

// checkItem compares the sizes of an item with those of its entries, before and after.
func checkItem(t *testing.T, l *entries, plan *window.Plan, item window.PlanItem, sizes map[int64]continuo.Size) {
	t.Helper()
	var before continuo.Size
	for seq := item.Seq; seq <= max(item.Seq, item.Through); seq++ {
		entry := &l.List[seq-1]
		before = before.Add(continuo.Size{Messages: 1, Chars: entry.Chars, Tokens: entry.Tokens})
		size, isShown := sizes[seq]
		if isShown != (item.After != nil) || isShown && *item.After != size {
			t.Errorf("%s: entry %d is shown as %+v, the plan says %+v", plan.View, seq, size, item.After)
		}
	}
	if item.Before != nil && *item.Before != before {
		t.Errorf("%s: entries from %d are %+v, the plan says %+v", plan.View, item.Seq, before, *item.Before)
	}
}
