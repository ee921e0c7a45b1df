package e2e

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"strings"

	continuo "github.com/continuo-log/continuo"
)

// check compares a turn that is over with all that the client received of it, and returns its outcome; nil
// when it found too little.
func (c *chatClient) check(ctx context.Context, k *killable, a *attempt) *outcome {
	entries, err := c.readLog(ctx, k)
	if err != nil {
		c.errorf("%v", err)
		return nil
	}
	c.checkRules(entries)
	o, tries := c.checkTries(ctx, k, a, entries)
	c.checkRequests(a, tries)
	if o != nil {
		c.checkEvents(ctx, k, a, o)
	}
	return o
}

// checkTries checks a turn, and before it those of the same request. A request that is made again with its key goes on
// with its turn where that broke off; what was received of that one, if anything, is in a.before. It returns how many
// turns the request has.
func (c *chatClient) checkTries(ctx context.Context, k *killable, a *attempt, entries []continuo.Entry) (o *outcome, tries int) {
	var turn shownTurn
	if status, err := k.get(ctx, c.path("/turns/"+a.id), &turn); err != nil || status != http.StatusOK {
		c.errorf("turn %s: status %d, %v", a.id, status, err)
		return nil, 1
	}
	if turn.Resumes == a.resumed() {
		c.turns[a.id] = true
		return c.checkEntries(a, entries, turn), 1
	}
	before := a.before
	if before == nil || before.id != turn.Resumes {
		before = &attempt{playback: a.playback, message: a.message, resumes: a.resumes, id: turn.Resumes, before: a.before}
	}
	if c.turns[before.id] || before.id == "" {
		c.errorf("turn %s resumes turn %q, which is another request's", a.id, before.id)
		return nil, 1
	}
	broken, tries := c.checkTries(ctx, k, before, entries)
	if broken == nil || !broken.failed {
		c.errorf("turn %s resumes turn %s, which did not fail", a.id, before.id)
		return nil, tries + 1
	}
	c.checkSaid(ctx, k, before)
	c.turns[a.id] = true
	again := *a
	again.resumes = broken
	return c.checkEntries(&again, entries, turn), tries + 1
}

// checkRules checks that the log keeps its own rules, and that all groups are closed.
func (c *chatClient) checkRules(entries []continuo.Entry) {
	var group continuo.Group
	for i := range entries {
		if err := group.Accept(&entries[i]); err != nil {
			c.errorf("entry %d: %v", i+1, err)
		}
	}
	if len(group.Open) > 0 {
		c.errorf("the calls %v have no result", group.Open)
	}
}

// ofTurn is what the log has of one turn.
type ofTurn struct {
	input   *continuo.Entry // the user's, or what a resumed turn put before its request
	answers []continuo.Entry
	results map[string]continuo.Entry // by call
}

func (c *chatClient) ofTurn(id string, entries []continuo.Entry) ofTurn {
	found := ofTurn{results: map[string]continuo.Entry{}}
	for i, e := range entries {
		switch {
		case e.TurnID != id:
		case e.Role == continuo.Assistant:
			found.answers = append(found.answers, e)
		case e.Role == continuo.Tool:
			found.results[e.ToolCallID] = e
		case found.input != nil || len(found.answers) > 0:
			c.errorf("turn %s has a second input, entry %d", id, e.Seq)
		default:
			found.input = &entries[i]
		}
	}
	return found
}

// checkEntries compares what the log has of a turn with what the upstream said, and with what was received.
func (c *chatClient) checkEntries(a *attempt, entries []continuo.Entry, turn shownTurn) *outcome {
	found := c.ofTurn(a.id, entries)
	c.checkInput(a, found, entries)
	if len(found.answers) == 0 {
		c.errorf("turn %s is %s and has no answer", a.id, turn.State)
		return nil
	}
	rounds := roundsOf(a.events)
	if len(rounds) > len(found.answers) {
		c.errorf("turn %s: %d rounds were heard, %d stand in the log", a.id, len(rounds), len(found.answers))
		return nil
	}
	for i := range found.answers {
		var received receivedRound
		if i < len(rounds) {
			received = rounds[i]
		}
		c.checkAnswer(&found.answers[i], a.answered(found.answers[i].Round), received, i == len(found.answers)-1)
		c.checkResults(found, i, received)
		if whole := i < len(rounds)-1; whole && received.text != found.answers[i].Content.String() {
			c.errorf("turn %s: of round %d %q was heard, the log has %q", a.id, i, received.text, found.answers[i].Content.String())
		}
	}
	last := found.answers[len(found.answers)-1]
	failed := last.Error != nil
	want := shownTurn{State: continuo.TurnFinished}
	if failed {
		want = shownTurn{State: continuo.TurnFailed, Reason: continuo.ReasonInterrupted}
	}
	if turn.State != want.State || turn.Reason != want.Reason {
		c.errorf("turn %s is %s (%s); by its last answer it is %s (%s)", a.id, turn.State, turn.Reason, want.State, want.Reason)
	}
	if !failed && len(last.ToolCalls) > 0 {
		c.errorf("turn %s ends with calls", a.id)
	}
	if !a.killed.IsZero() {
		var received receivedRound
		if len(rounds) == len(found.answers) {
			received = rounds[len(rounds)-1]
		}
		c.losses.count(c, a, &last, received)
	}
	return &outcome{id: a.id, failed: failed, answer: last}
}

// checkInput checks that the message is in the log, once.
func (c *chatClient) checkInput(a *attempt, found ofTurn, entries []continuo.Entry) {
	if a.resumes != nil {
		if found.input != nil && found.input.PartType != continuo.PartResume {
			c.errorf("turn %s resumes another, and has the input %v", a.id, found.input)
		}
		return
	}
	if found.input == nil || found.input.Role != continuo.User || found.input.Content.String() != a.message {
		c.errorf("turn %s has the input %v, want %q", a.id, found.input, a.message)
	}
	times := 0
	for _, e := range entries {
		if e.Role == continuo.User && e.Content.String() == a.message {
			times++
		}
	}
	if times != 1 {
		c.errorf("the message %q stands in the log %d times", a.message, times)
	}
}

// checkAnswer checks that an answer is what the upstream said, or its beginning.
func (c *chatClient) checkAnswer(answer *continuo.Entry, scripted scriptedAnswer, received receivedRound, last bool) {
	text, reasoning := answer.Content.String(), ""
	if answer.Reasoning != nil {
		reasoning = answer.Reasoning.Text
	}
	switch {
	case answer.Error == nil && (text != scripted.text || reasoning != scripted.reasoning || len(answer.ToolCalls) != len(scripted.calls)):
		c.errorf("entry %d is not what the upstream said:\n%q %q %v\n%q %q %v", answer.Seq,
			text, reasoning, answer.ToolCalls, scripted.text, scripted.reasoning, scripted.calls)
	case answer.Error == nil:
	case !last || answer.Error.Reason != continuo.ReasonInterrupted || !answer.Error.Retryable:
		c.errorf("entry %d failed with %+v, the turn's last answer: %v", answer.Seq, answer.Error, last)
	case !strings.HasPrefix(scripted.text, text) || !strings.HasPrefix(scripted.reasoning, reasoning) || len(answer.ToolCalls) > len(scripted.calls):
		c.errorf("entry %d is not the beginning of what the upstream said:\n%q %q %v\n%q %q %v", answer.Seq,
			text, reasoning, answer.ToolCalls, scripted.text, scripted.reasoning, scripted.calls)
	}
	if !oneBegins(text, received.text) || !oneBegins(reasoning, received.reasoning) {
		c.errorf("entry %d differs from what was heard:\n%q %q\n%q %q", answer.Seq, text, reasoning, received.text, received.reasoning)
	}
	for i, call := range answer.ToolCalls {
		if i >= len(scripted.calls) || call.ID != scripted.calls[i].ID || call.Name != scripted.calls[i].Name || call.Arguments != scripted.calls[i].Arguments {
			c.errorf("entry %d has the call %+v, which the upstream did not make", answer.Seq, call)
		}
	}
	if answer.Error == nil {
		return
	}
	for i, call := range answer.Error.PartialToolCalls {
		i += len(answer.ToolCalls)
		if i >= len(scripted.calls) || call.ID != scripted.calls[i].ID || call.Name != scripted.calls[i].Name || !strings.HasPrefix(scripted.calls[i].Arguments, call.Arguments) {
			c.errorf("entry %d has the partial call %+v, which the upstream did not begin", answer.Seq, call)
		}
	}
}

// oneBegins reports whether one text is the beginning of the other.
func oneBegins(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }

// checkResults checks that each call has a result: what was received, or, where no client can have received one, why it
// has none.
func (c *chatClient) checkResults(found ofTurn, round int, received receivedRound) {
	answer := found.answers[round]
	resumed := round+1 < len(found.answers) && found.answers[round+1].Round != nil
	for _, call := range answer.ToolCalls {
		result := found.results[call.ID]
		ran := strings.Contains(result.Content.String(), scriptedCalls[call.Name].holds)
		interrupted := result.PartType == continuo.PartInterrupted && strings.Contains(result.Content.String(), "interrupted")
		undecided := result.PartType == continuo.PartUndecided && strings.Contains(result.Content.String(), "before anybody decided")
		delivered, wasDelivered := received.results[call.ID]
		if answer.Error == nil && (interrupted || undecided) {
			c.losses.addUnanswered(undecided)
		}
		switch {
		case answer.Error != nil && !interrupted:
			c.errorf("call %s of an answer that broke off has the result %q", call.ID, result.Content.String())
		case !ran && !interrupted && !undecided:
			c.errorf("call %s has the result %q (%s)", call.ID, result.Content.String(), result.PartType)
		case undecided && (call.Name != askedTool || received.allowed[call.ID]):
			c.errorf("call %s of %s was allowed: %v; its result says that nobody had decided", call.ID, call.Name, received.allowed[call.ID])
		case !ran && resumed:
			c.errorf("call %s has the result %q, and the turn went on", call.ID, result.Content.String())
		case wasDelivered && delivered != result.Content.String():
			c.errorf("call %s: heard %q, the log has %q", call.ID, delivered, result.Content.String())
		}
	}
	for _, called := range received.called {
		if _, stored := found.results[called]; !stored {
			c.errorf("call %s was heard of, and has no result", called)
		}
	}
}

// checkEvents replays a turn that is over: from the start, and from where the client was cut off.
func (c *chatClient) checkEvents(ctx context.Context, k *killable, a *attempt, o *outcome) {
	path := c.path("/turns/" + a.id + "/events")
	all := c.checkSaid(ctx, k, a)
	c.checkEnd(a.id, all, o)
	if rounds := roundsOf(all); len(rounds) > 0 && o.answer.Round != nil && rounds[len(rounds)-1].text != o.answer.Content.String() {
		c.errorf("turn %s is heard again with the answer %q, the log has %q", a.id, rounds[len(rounds)-1].text, o.answer.Content.String())
	}
	if len(a.events) == 0 {
		return
	}
	var rest []receivedEvent
	last := a.events[len(a.events)-1].id
	status, err := k.listen(ctx, http.MethodGet, path, nil, func(e receivedEvent) { rest = append(rest, e) }, "Last-Event-ID", strconv.FormatInt(last, 10))
	if err != nil {
		c.errorf("turn %s after event %d: %v", a.id, last, err)
	}
	if a.end() != nil {
		if status != http.StatusNoContent {
			c.errorf("turn %s, which was heard to its end, is heard again with status %d: %v", a.id, status, rest)
		}
		return
	}
	c.checkAscending(a.id, last, rest)
	c.checkEnd(a.id, rest, o)
}

// checkSaid replays a turn that is over from the start, and checks that the replay has every event that the client
// received.
func (c *chatClient) checkSaid(ctx context.Context, k *killable, a *attempt) (all []receivedEvent) {
	_, err := k.listen(ctx, http.MethodGet, c.path("/turns/"+a.id+"/events"), nil, func(e receivedEvent) { all = append(all, e) })
	if err != nil {
		c.errorf("replay of turn %s: %v", a.id, err)
	}
	c.checkAscending(a.id, 0, all)
	c.checkSame(a.id, a.events, all)
	return all
}

// checkAscending checks that no event comes twice, and none after the last.
func (c *chatClient) checkAscending(turn string, after int64, events []receivedEvent) {
	for i, e := range events {
		if e.id <= after || e.isEnd() && i < len(events)-1 {
			c.errorf("turn %s: event %d, %s, follows %d; %d come after it", turn, e.id, e.kind, after, len(events)-1-i)
		}
		after = e.id
	}
}

// checkEnd checks a stream's last event.
func (c *chatClient) checkEnd(turn string, events []receivedEvent, o *outcome) {
	if len(events) == 0 {
		c.errorf("turn %s: the stream has no event", turn)
		return
	}
	end := events[len(events)-1]
	var said answer
	if err := end.read(&said); err != nil {
		c.errorf("turn %s: %v", turn, err)
	}
	switch {
	case o.failed && (end.kind != "error" || said.Error == nil || said.Error.Reason != continuo.ReasonInterrupted):
		c.errorf("turn %s was interrupted, and its stream ends with %s", turn, show(&end))
	case !o.failed && end.kind != "done":
		c.errorf("turn %s was finished, and its stream ends with %s", turn, show(&end))
	case said.Response != o.answer.Content.String() || said.TurnID != turn:
		c.errorf("turn %s: the stream ends with %s, the answer is %q", turn, show(&end), o.answer.Content.String())
	}
}

// checkSame checks that everything that was received live is received again as it was: a client is shown only what the
// store has.
func (c *chatClient) checkSame(turn string, live, again []receivedEvent) {
	kept := map[int64]receivedEvent{}
	for _, e := range again {
		kept[e.id] = e
	}
	for _, e := range live {
		same, stored := kept[e.id]
		switch {
		case !stored:
			c.errorf("turn %s: event %d, %s %s, was heard and is lost", turn, e.id, e.kind, e.data)
		case e.kind != same.kind:
			c.errorf("turn %s: event %d was %s %s, and is now %s %s", turn, e.id, e.kind, e.data, same.kind, same.data)
		case e.kind == "turn" || e.isEnd(): // they call the conversation what the client called it
		case !bytes.Equal(e.data, same.data):
			c.errorf("turn %s: event %d, %s, was %s, and is now %s", turn, e.id, e.kind, e.data, same.data)
		}
	}
}
