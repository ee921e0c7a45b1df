package turn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/turn"
)

func TestATurnThatIsCancelledDuringACall(t *testing.T) {
	for _, cause := range []error{nil, turn.ErrInterrupted} {
		h := onDisk(t, newHouse(t, asks("slow {}"), textAnswer("fine")))
		ctx, cancel := context.WithCancelCause(context.Background())
		h.runner.Tools = tool.Set{echo{name: "slow", begin: func() { cancel(cause) }}}
		last, err := h.run(ctx, turn.Input{Message: continuo.Text("go")})
		all := h.entries()
		newest := all[len(all)-1]
		if err != nil || newest.Error == nil {
			t.Errorf("cause %v: last %v, err %v; the newest of %d entries is %s, error %v", cause, last.Kind, err, len(all), newest.Role, newest.Error)
		}
	}
}

func TestAHiddenCallThatIsOpen(t *testing.T) {
	h := newHouse(t, textAnswer("fine"))
	hidden := continuo.Entry{Role: continuo.Assistant, Hidden: true, ToolCalls: []continuo.ToolCall{continuo.FunctionCall("c", "f", "{}")}}
	if _, err := h.log.Append(t.Context(), h.conversation.ID, []continuo.Entry{hidden}, continuo.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	last, err := h.run(context.Background(), turn.Input{Message: continuo.Text("go")})
	if err != nil || last.Kind != turn.Finished {
		t.Errorf("%v %v", last.Kind, err)
	}
}

// TestAnAnswerThatCannotBeKeptAtOnceIsNotLost has the store refuse one append, and the log one answer.
func TestAnAnswerThatCannotBeKeptAtOnceIsNotLost(t *testing.T) {
	tooMany := []any{model.Delta{Text: "the answer"}}
	for i := range 4097 {
		tooMany = append(tooMany, model.Delta{ToolCall: &model.ToolCallDelta{Index: i, ID: fmt.Sprint("c", i), Name: "echo", Arguments: "{}", Done: true}})
	}
	for name, c := range map[string]struct {
		answer []any
		fails  int // appends of answers
		want   continuo.FailureReason
	}{
		"the store once":  {textAnswer("the answer"), 1, ""},
		"the store twice": {textAnswer("the answer"), 2, continuo.ReasonInterrupted},
		"a rule":          {tooMany, 0, continuo.ReasonUpstream},
	} {
		t.Run(name, func(t *testing.T) {
			store := &steppedStore{Store: storetest.NewMemory()}
			h := newHouse(t, c.answer)
			h.over(store)
			store.append = func(batch continuo.Batch) error {
				if len(batch.Entries) > 0 && batch.Entries[0].Role == continuo.Assistant && c.fails > 0 {
					c.fails--
					return continuo.ErrFull
				}
				return nil
			}
			journal := h.begin(context.Background())
			if err := h.runner.Run(journal, turn.Input{Message: continuo.Text("go")}); err != nil && !errors.Is(err, continuo.ErrFull) {
				t.Fatal(err)
			}
			if _, err := h.keeper.RecoverAll(context.Background()); err != nil {
				t.Fatal(err)
			}
			got := h.entries()[1]
			if got.Content.String() != "the answer" || got.Round == nil || (got.Error == nil) != (c.want == "") || got.Error != nil && got.Error.Reason != c.want {
				t.Errorf("entry 2: %.300q, error %v", got.Content.String(), got.Error)
			}
		})
	}
}

// TestATurnThatCannotBeClosedCompletelyIsClosedAnyway: otherwise its conversation would be busy for ever.
func TestATurnThatCannotBeClosedCompletelyIsClosedAnyway(t *testing.T) {
	deep := json.RawMessage(`{"x":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`)
	var tooMany []any
	for i := range 4099 {
		tooMany = append(tooMany, model.Delta{ToolCall: &model.ToolCallDelta{Index: i, ID: fmt.Sprint("c", i), Name: "echo", Arguments: "{}", Done: true}})
	}
	for name, answer := range map[string][]any{
		"too many calls": tooMany,
		"a deep extra":   {model.Delta{ToolCall: &model.ToolCallDelta{ID: "a", Name: "echo", Arguments: "{}", Extra: deep, Done: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t, append(append([]any{model.Delta{Text: "Half"}}, answer...), hang))
				last, _ := h.killed(turn.Input{Message: continuo.Text("go")})
				if last.Kind != turn.Failed || last.Entry.Content.String() != "Half" || last.Entry.Error.Reason != continuo.ReasonInterrupted {
					t.Errorf("last event: %+v", last)
				}
			})
		})
	}
}

// TestABrokenExtraDoesNotHangTheTurn gives what no JSON can hold.
func TestABrokenExtraDoesNotHangTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, []any{model.Delta{Text: "Hm"}, model.Delta{ToolCall: &model.ToolCallDelta{ID: "a", Name: "echo", Arguments: "{}", Extra: json.RawMessage(`{`), Done: true}}, model.Delta{Finish: "tool_calls"}})
		last, err := h.run(context.Background(), turn.Input{Message: continuo.Text("go")})
		if err != nil || last.Kind != turn.Failed || last.Entry.Content.String() != "Hm" {
			t.Errorf("%+v, %v", last, err)
		}
	})
}
