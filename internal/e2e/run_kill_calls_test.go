package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

// callsOfRuns are the calls that are in the logs, by their notes: a model writes a note once.
type callsOfRuns struct {
	t     *testing.T
	calls map[string][]recordedCall
	again int // calls that were made again after an interruption
	cut   int // calls whose result says that they were interrupted
}

// recordedCall is a call with its result.
type recordedCall struct {
	call   continuo.ToolCall
	answer continuo.Entry
	result continuo.Entry
}

// isInterrupted reports whether the result says that it is not known what became of the call.
func (r recordedCall) isInterrupted() bool { return r.result.PartType == continuo.PartInterrupted }

// take takes the calls out of a log.
func (c *callsOfRuns) take(entries []continuo.Entry) {
	results := map[string]continuo.Entry{}
	for _, e := range entries {
		if e.Role == continuo.Tool {
			results[e.ToolCallID] = e
		}
	}
	for _, e := range entries {
		for _, call := range e.ToolCalls {
			var in struct{ Note string }
			if err := json.Unmarshal([]byte(call.Arguments), &in); err != nil || in.Note == "" {
				c.t.Errorf("entry %d has a call with the arguments %q", e.Seq, call.Arguments)
			}
			c.calls[in.Note] = append(c.calls[in.Note], recordedCall{call, e, results[call.ID]})
		}
	}
}

// check compares the calls with those that the tool server executed.
func (c *callsOfRuns) check(done []toolServerCall) {
	times := map[string]int{}
	for _, one := range done {
		times[one.note]++
		if len(c.calls[one.note]) == 0 {
			c.t.Errorf("%s %q was carried out, and stands in no log", one.tool, one.note)
		}
	}
	for note, calls := range c.calls {
		c.checkCall(note, calls, times[note])
	}
}

// checkCall checks what became of one call and of those that repeat it.
func (c *callsOfRuns) checkCall(note string, calls []recordedCall, times int) {
	first, last := calls[0], calls[len(calls)-1]
	for i, one := range calls {
		result := one.result.Content.String()
		if one.isInterrupted() {
			c.cut++
		} else if result != doneWord+note {
			c.t.Errorf("the call %q has the result %q", note, result)
		}
		if i > 0 && !calls[i-1].isInterrupted() {
			c.t.Errorf("the call %q has the result %q, and was made again", note, calls[i-1].result.Content.String())
		}
	}
	c.again += len(calls) - 1
	isEnter := strings.HasSuffix(first.call.Name, "enter")
	switch {
	case isEnter && (len(calls) > 1 || times > 1):
		c.t.Errorf("the call %q is not safe to repeat; it was carried out %d times and stands %d times in the log", note, times, len(calls))
	case first.answer.Error != nil && (len(calls) > 1 || times > 0):
		c.t.Errorf("the call %q of an answer that broke off was carried out %d times and stands %d times in the log", note, times, len(calls))
	case !last.isInterrupted() && times == 0:
		c.t.Errorf("the call %q has a result, and was never carried out", note)
	}
}

func (c *callsOfRuns) String() string {
	return fmt.Sprintf("%d calls, %d of them interrupted, %d made again", len(c.calls), c.cut, c.again)
}
