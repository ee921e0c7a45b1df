package match

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

// randomEntry is one of a few entries, so that histories have much in common.
func randomEntry(r *rand.Rand) continuo.Entry {
	text := continuo.Text(fmt.Sprint("text ", r.IntN(3)))
	switch r.IntN(8) {
	case 0:
		return continuo.Entry{Role: continuo.Assistant, Content: text}
	case 1:
		return continuo.Entry{Role: continuo.Assistant, ToolCalls: []continuo.ToolCall{continuo.FunctionCall(fmt.Sprint("c", r.IntN(3)), "f", `{"a":1}`)}}
	case 2:
		return continuo.Entry{Role: continuo.Tool, ToolCallID: fmt.Sprint("c", r.IntN(3)), Content: text}
	case 3:
		return continuo.Entry{Role: continuo.Assistant, Content: text, Error: &continuo.TurnError{}}
	case 4:
		return continuo.Entry{Role: continuo.User, Hidden: true, Content: text}
	case 5:
		return continuo.Entry{Role: continuo.User, Content: continuo.Text(" ")}
	}
	return continuo.Entry{Role: continuo.User, Content: text}
}

// Histories that grow, shrink and change have the same trail with and without those of others.
func TestTrailsAreInvisible(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	m := New(Options{})
	var history []continuo.Entry
	for round := range 2000 {
		switch r.IntN(6) {
		case 0:
			history = history[:r.IntN(len(history)+1)]
		case 1:
			if len(history) > 0 {
				history = slices.Clone(history)
				history[r.IntN(len(history))] = randomEntry(r)
			}
		case 2:
			history = append(slices.Clip(history), randomEntry(r))
		default:
			for range 20 {
				history = append(slices.Clip(history), randomEntry(r))
			}
		}
		first := newChain("p", fmt.Sprint(r.IntN(2)), "")
		got, want := m.trailOf(first, history), New(Options{}).trailOf(first, history)
		if !slices.Equal(got.positions, want.positions) || len(got.states) != len(history)+1 {
			t.Fatalf("round %d: the positions are %v, want %v", round, got.positions, want.positions)
		}
		for i := range want.states {
			a, b := got.states[i], want.states[i]
			if a.hash != b.hash || a.ids != b.ids || a.system != b.system || a.answered != b.answered || !slices.Equal(a.results, b.results) || a.cut != b.cut || (a.before == nil) != (b.before == nil) {
				t.Fatalf("round %d: the state after %d entries is %+v, want %+v", round, i, a, b)
			}
		}
		if len(history) > 300 {
			history = nil
		}
	}
	if m.trails.entries == 0 || m.trails.entries > maxTrailEntries {
		t.Errorf("%d entries are kept", m.trails.entries)
	}
}

// Each member that the hash looks at changes the mark.
func TestMarks(t *testing.T) {
	call := func(id, name, arguments string) []continuo.ToolCall {
		return []continuo.ToolCall{continuo.FunctionCall(id, name, arguments)}
	}
	seen := map[uint64]int{}
	for i, e := range []continuo.Entry{
		{},
		{Role: continuo.User},
		{Role: continuo.Assistant},
		{Role: continuo.User, Hidden: true},
		{Role: continuo.User, Error: &continuo.TurnError{}},
		{Role: continuo.User, Content: continuo.Text("a")},
		{Role: continuo.User, Content: continuo.Parts(continuo.TextPart("a"))},
		{Role: continuo.User, Content: continuo.Parts(continuo.TextPart("a"), continuo.TextPart(""))},
		{Role: continuo.Tool, ToolCallID: "a"},
		{Role: continuo.Tool, ToolCallID: "b"},
		{Role: continuo.Assistant, ToolCalls: call("a", "b", "c")},
		{Role: continuo.Assistant, ToolCalls: call("ab", "", "c")},
		{Role: continuo.Assistant, ToolCalls: call("a", "b", "d")},
		{Role: continuo.Assistant, ToolCalls: call("a", "d", "c")},
	} {
		mark := markOf(&e)
		if before, found := seen[mark]; found {
			t.Errorf("entries %d and %d have one mark", before, i)
		}
		seen[mark] = i
	}
}
