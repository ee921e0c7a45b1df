package turn

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/render"
	"github.com/continuo-log/continuo/tool"
)

// maxSideBySide bounds how many calls of one answer run concurrently.
const maxSideBySide = 16

// largestOutputs bounds the total output of one answer's calls, as a multiple of the largest single output (at least 1
// MiB).
const largestOutputs = 4

// callResult is the result of a call and how it was obtained.
type callResult struct {
	tool.Result
	outcome   string        // for the meter
	undecided bool          // it did not run: the turn ended before a person approved or denied it
	took      time.Duration // without the wait for a person's decision; 0 when it did not run
}

// answerCalls runs those of an answer's calls that are not the client's concurrently, unless the turn has reached its limit, and appends their results in
// call order, each as soon as the results before it are complete.
func (c *toolLoop) answerCalls(answer *continuo.Entry, overLimit bool) error {
	conversation := c.now()
	calls := c.serverCalls(answer)
	for _, call := range calls {
		c.journal.emit(Event{Kind: Called, Call: c.shown(call)})
	}
	room := &room{most: largestOutputs * max(int64(c.limits.OutputBytes), 1<<20)}
	results := make([]chan continuo.Entry, len(calls))
	for i, call := range calls {
		results[i] = make(chan continuo.Entry, 1)
		go func() {
			done := refused(ToolNotRun, "not run: the turn has reached its limit of rounds")
			if !overLimit {
				done = c.runTool(call, conversation)
			}
			done.Result = room.take(done.Result, c.limits.OutputBytes)
			results[i] <- c.resultOf(call, done)
		}()
	}
	var failed error
	for next := 0; next < len(results); {
		ready := completedResults(results[next:])
		next += len(ready)
		if failed == nil {
			failed = c.journal.retry(c.journal.ctx, func() error {
				_, err := c.append(ready, toolEvents, nil)
				return err
			})
		}
	}
	return failed
}

// shown returns a call as people see it: under the tool's own name, which policies use too.
func (c *toolLoop) shown(call continuo.ToolCall) *continuo.ToolCall {
	if found, ok := c.find(call.Name); ok {
		call.Name = found.Spec().Name
	}
	return &call
}

// completedResults waits for the first result and returns it with the completed results that directly follow it.
func completedResults(results []chan continuo.Entry) []continuo.Entry {
	ready := []continuo.Entry{<-results[0]}
	for _, result := range results[1:] {
		select {
		case entry := <-result:
			ready = append(ready, entry)
		default:
			return ready
		}
	}
	return ready
}

// room bounds the total size of the outputs of one answer's calls: many may wait in memory for a result before them.
type room struct {
	most int64
	held atomic.Int64 // in bytes
}

// take returns a result, or a failure where the result is too large.
func (r *room) take(result tool.Result, largest int) tool.Result {
	size := int64(len(result.Content))
	if size > int64(largest) {
		return tooLarge(len(result.Content), largest)
	}
	if r.held.Add(size) > r.most {
		r.held.Add(-size)
		return tool.Failure("the outputs of this answer's calls have more than %d bytes together, and nothing was kept of this one: ask for less, or in several answers", r.most)
	}
	return result
}

// toolEvents returns the ToolDone events of results.
func toolEvents(stored []continuo.Entry) []Event {
	var events []Event
	for i := range stored {
		if stored[i].Role == continuo.Tool {
			events = append(events, Event{Kind: ToolDone, Entry: &stored[i]})
		}
	}
	return events
}

// resultOf returns the entry that answers a call.
func (c *toolLoop) resultOf(call continuo.ToolCall, done callResult) continuo.Entry {
	result := done.Result
	result.Content = strings.ToValidUTF8(result.Content, "\uFFFD")
	entry := continuo.Entry{
		Role: continuo.Tool, ToolCallID: call.ID, Content: continuo.Text(result.Content), Outcome: strings.ToValidUTF8(result.Outcome, "\uFFFD"),
		ToolName: call.Name, DurationMS: done.took.Milliseconds(), PartType: "tool_result",
	}
	name := ""
	if found, ok := c.find(call.Name); ok {
		name = found.Spec().Name
		entry.ToolName = name
	}
	switch {
	case done.undecided:
		entry.PartType = continuo.PartUndecided
	case result.Failed:
		entry.PartType = continuo.PartToolError
	default:
		entry.OutputRef = result.File
	}
	c.journal.keeper.options.Meter.ToolCalled(name, done.outcome, done.took)
	return entry
}

// runTool runs the tool that a call names, if the policy or a person allows it.
func (c *toolLoop) runTool(call continuo.ToolCall, conversation continuo.Conversation) callResult {
	found, ok := c.find(call.Name)
	if problem, malformed := render.ExplainMalformed(call); malformed {
		return refused(ToolNotRun, "%s", problem)
	}
	if !ok {
		return refused(ToolNotRun, "there is no tool %s; offered were %v", call.Name, names(c.tools))
	}
	switch c.Policy.Decide(found.Spec().Name) {
	case tool.Deny:
		return refused(ToolDenied, "the tool %s is not allowed here", call.Name)
	case tool.Ask:
		if refusal := c.askPerson(call); refusal != nil {
			return *refusal
		}
	}
	done := c.runAllowed(found, call, conversation)
	c.journal.measure(StageTool, done.took)
	return done
}

// refused returns the result of a call that did not run.
func refused(outcome, format string, args ...any) callResult {
	return callResult{Result: tool.Failure(format, args...), outcome: outcome}
}

// askPerson waits for a person's decision on a call. It returns nil for an approved call, else the result for the
// model.
func (c *toolLoop) askPerson(call continuo.ToolCall) *callResult {
	defer c.clock.hold()()
	question := Event{Kind: Asked, Call: c.shown(call)}
	ctx := c.ctx
	if c.limits.Ask != AskWithoutLimit {
		question.Until = time.Now().Add(c.limits.Ask).UTC().Truncate(time.Millisecond)
		bounded, cancel := context.WithTimeout(c.ctx, c.limits.Ask)
		defer cancel()
		ctx = bounded
	}
	asked := c.journal.emitKept(question)
	meter, begin := c.journal.keeper.options.Meter, time.Now()
	meter.ApprovalRequested()
	decision, decided := c.journal.decision(ctx, asked)
	outcome := ApprovalDenied
	switch {
	case c.ctx.Err() != nil:
		outcome, decision = ApprovalCancelled, Decision{Reason: "the turn ended before anybody decided"}
	case !decided:
		outcome, decision = ApprovalExpired, Decision{Reason: fmt.Sprintf("no decision within %s", c.limits.Ask)}
	case decision.Allowed:
		outcome = ApprovalAllowed
	}
	meter.ApprovalDecided(outcome, time.Since(begin))
	c.journal.emit(Event{Kind: Decided, Call: c.shown(call), Decision: &decision})
	if decision.Allowed {
		// A stored call without a stored decision has certainly not run: recovery relies on this.
		if err := c.journal.retry(c.ctx, c.journal.flush); err != nil {
			refusal := refused(ToolNotRun, "not run: it was allowed, but that could not be stored")
			return &refusal
		}
		return nil
	}
	refusal := refused(ToolDenied, "not run: it was not allowed")
	refusal.undecided = outcome == ApprovalCancelled
	if decision.Reason != "" {
		refusal.Content += ": " + decision.Reason
	}
	return &refusal
}

// runAllowed runs a tool. A panic of the tool, or its failure to stop in time, becomes a failed result.
func (c *toolLoop) runAllowed(found tool.Tool, call continuo.ToolCall, conversation continuo.Conversation) (done callResult) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-c.ctx.Done():
	}
	if c.ctx.Err() != nil { // checked after the wait for a slot: a tool that ignores its context must not begin
		return refused(ToolCancelled, "not run: the turn ended before this call began")
	}
	begin, late := time.Now(), false
	done.Result, late = c.limits.run(c.ctx, found, tool.Call{Conversation: conversation, ID: call.ID, Arguments: call.Arguments, Since: c.Since})
	done.took = time.Since(begin)
	switch {
	case !done.Failed:
		done.outcome = ToolOK
	case c.ctx.Err() != nil:
		done.outcome = ToolCancelled
	case late:
		done.outcome = ToolTimeout
	default:
		done.outcome = ToolFailed
	}
	return done
}

// run runs a tool within the time for a call, and reports whether that has passed.
func (l Limits) run(ctx context.Context, found tool.Tool, call tool.Call) (result tool.Result, late bool) {
	limit := l.Tool
	if timed, ok := found.(tool.Timed); ok && timed.Timeout() > 0 {
		limit = timed.Timeout()
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	result = runOrAbandon(ctx, render.ToolName(found.Spec().Name), func() tool.Result { return found.Run(ctx, call) })
	return result, ctx.Err() != nil
}

// RunTool runs a tool outside a tool loop, within the limits of a call, and returns the entry with its result.
func RunTool(ctx context.Context, found tool.Tool, call tool.Call, limits Limits) continuo.Entry {
	limits = limits.orDefaults()
	begin := time.Now()
	result, _ := limits.run(ctx, found, call)
	if size := len(result.Content); size > limits.OutputBytes {
		result = tooLarge(size, limits.OutputBytes)
	}
	entry := continuo.Entry{
		Role: continuo.Tool, ToolCallID: call.ID, Content: continuo.Text(strings.ToValidUTF8(result.Content, "\uFFFD")),
		Outcome: strings.ToValidUTF8(result.Outcome, "\uFFFD"), ToolName: found.Spec().Name, DurationMS: time.Since(begin).Milliseconds(), PartType: "tool_result",
	}
	if result.Failed {
		entry.PartType = continuo.PartToolError
	}
	return entry
}

// toolGrace is how long a tool may continue after its context ended.
const toolGrace = 5 * time.Second

// runOrAbandon runs a tool until it ends. A tool that continues after its context ended is abandoned: its goroutine is
// the only one that is not waited for. Otherwise its turn, the conversation and the shutdown of the program would block
// permanently.
func runOrAbandon(ctx context.Context, name string, run func() tool.Result) tool.Result {
	ended := make(chan tool.Result, 1)
	go func() {
		defer func() {
			if cause := recover(); cause != nil {
				ended <- tool.Failure("the tool %s failed inside: %v", name, cause)
			}
		}()
		ended <- run()
	}()
	select {
	case result := <-ended:
		return result
	case <-ctx.Done():
	}
	grace := time.NewTimer(toolGrace)
	defer grace.Stop()
	select {
	case result := <-ended:
		return result
	case <-grace.C:
		return tool.Failure("the tool %s did not stop when it was cancelled, and was abandoned: it may still be running", name)
	}
}

// find returns the tool of a call, by its name in requests (fs_read) or its own name (fs.read), which people, policies
// and briefs use.
func (c *toolLoop) find(name string) (tool.Tool, bool) {
	for _, candidate := range c.tools {
		if render.ToolName(candidate.Spec().Name) == name {
			return candidate, true
		}
	}
	return c.tools.Find(name)
}

func names(tools tool.Set) []string {
	var names []string
	for _, spec := range tools.Specs() {
		names = append(names, render.ToolName(spec.Name))
	}
	return names
}

// notRun is the result of a call whose answer was cut off.
func notRun() callResult {
	return refused(ToolNotRun, "not run: the answer that asked for it broke off")
}

// tooLarge is the result in place of an output above the limit.
func tooLarge(size, limit int) tool.Result {
	return tool.Failure("the tool gave %d bytes, more than the %d that are kept of one output (tools.max_output_bytes), and nothing was kept: "+
		"ask for less, such as a range, fewer items or a narrower search", size, limit)
}
