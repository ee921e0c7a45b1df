package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/render"
)

// chatClient is a client of one conversation, which keeps all that it received. One goroutine uses it.
type chatClient struct {
	t        *testing.T
	upstream *scripted
	random   *rand.Rand
	key      string // of the conversation
	losses   *losses

	begun int             // turns that the client began
	turns map[string]bool // ids of the turns that it knows
	open  *attempt        // the turn that was under way when the program was killed

	mu  sync.Mutex
	log []json.RawMessage // entries as they were read
}

// attempt is a turn that a client began, and what it received of it.
type attempt struct {
	*playback
	message string // "" for one that resumes
	apiKey  string // idempotency key of one with a message
	resumes *outcome
	id      string        // "" until the client received it
	before  *attempt      // the turn that it knew when it had made the request before; nil for none
	started chan struct{} // closed when it was, or never will be
	events  []receivedEvent
	err     error     // how the stream broke off
	killed  time.Time // when the program was
}

// resumed is the id of the turn that an attempt is to resume, "" for none.
func (a *attempt) resumed() string {
	if a.resumes == nil {
		return ""
	}
	return a.resumes.id
}

// outcome is a turn as the log has it in the end.
type outcome struct {
	id     string
	failed bool
	answer continuo.Entry // the last one
}

func newChatClient(t *testing.T, upstream *scripted, l *losses, random *rand.Rand, key string) *chatClient {
	return &chatClient{
		t: t, upstream: upstream, losses: l, key: key, turns: map[string]bool{},
		random: rand.New(rand.NewPCG(random.Uint64(), random.Uint64())),
	}
}

func (c *chatClient) errorf(format string, args ...any) {
	c.t.Helper()
	c.t.Errorf("%s: %s", c.key, fmt.Sprintf(format, args...))
}

func (c *chatClient) path(rest string) string { return "/api/conversations/" + c.key + rest }

// begin begins a turn: with a message, or one that resumes another.
func (c *chatClient) begin(message string, resumes *outcome, quick bool) *attempt {
	c.begun++
	tag := fmt.Sprintf("%s-t%d", c.key, c.begun)
	a := &attempt{resumes: resumes, started: make(chan struct{})}
	if resumes == nil {
		a.message, a.apiKey = message+" "+tag+" "+markOf(c.key), tag
	}
	what := slowScript
	if quick {
		what = quickScript
	}
	a.playback = &playback{script: what(c.random, tag)}
	return a
}

// run executes a turn in a program, until it ends or the program is killed. Somewhere on the way it looks
// at the log.
func (c *chatClient) run(ctx context.Context, k *killable, a *attempt) {
	a.playback = c.upstream.play(k.apiKey, c.key, a.script)
	look := c.random.IntN(100)
	var looking sync.WaitGroup
	defer looking.Wait()
	markStarted := sync.OnceFunc(func() { close(a.started) })
	defer markStarted()
	each := func(e receivedEvent) {
		a.events = append(a.events, e)
		if e.kind == "turn" {
			a.id = turnOf(e)
			markStarted()
		}
		if e.kind == "approval" {
			late := time.Duration(c.random.IntN(200)) * time.Millisecond
			looking.Go(func() { c.approve(ctx, k, a.id, e, late) })
		}
		if len(a.events) == look {
			looking.Go(func() { _, _ = c.readLog(ctx, k) }) // the program may be killed meanwhile
		}
	}
	if a.resumes != nil {
		_, a.err = k.listen(ctx, http.MethodPost, c.path("/turns/"+a.resumes.id+"/resume"), map[string]any{}, each)
	} else {
		body := map[string]any{"session_id": c.key, "message": a.message}
		_, a.err = k.listen(ctx, http.MethodPost, "/chat", body, each, "Idempotency-Key", a.apiKey)
	}
}

// approve lets a call run, after a while, if the program lives so long.
func (c *chatClient) approve(ctx context.Context, k *killable, turn string, asked receivedEvent, late time.Duration) {
	var call struct{ ID string }
	if err := asked.read(&call); err != nil {
		c.errorf("%v", err)
	}
	select {
	case <-time.After(late):
	case <-k.ended:
		return
	}
	response, err := k.do(ctx, http.MethodPost, c.path("/turns/"+turn+"/approvals"), map[string]string{"tool_call_id": call.ID, "decision": "allow"})
	if err != nil {
		return // killed meanwhile
	}
	_ = response.Body.Close()
	if status := response.StatusCode; status != http.StatusAccepted && status != http.StatusNotFound && status != http.StatusConflict { // the turn may have ended
		c.errorf("call %s of turn %s: the approval is answered with %d", call.ID, turn, status)
	}
}

// turnOf reads which turn an event says that it is of.
func turnOf(e receivedEvent) string {
	var ids struct {
		TurnID string `json:"turn_id"`
	}
	_ = e.read(&ids) // the turn "" is used nowhere
	return ids.TurnID
}

// end is the last event that was received, if it is a last one.
func (a *attempt) end() *receivedEvent {
	if n := len(a.events); n > 0 && a.events[n-1].isEnd() {
		return &a.events[n-1]
	}
	return nil
}

// finish runs a turn to its end, which must be an answer.
func (c *chatClient) finish(ctx context.Context, k *killable, a *attempt) {
	c.run(ctx, k, a)
	end := a.end()
	if a.err != nil || end == nil || end.kind != "done" {
		c.errorf("turn %q, resumes %v: the answer ended with %v, %s; want done", a.message, a.resumes != nil, a.err, show(end))
		return
	}
	if o := c.check(ctx, k, a); o != nil && o.failed {
		c.errorf("turn %s gave an answer, and is failed", o.id)
	}
}

func show(e *receivedEvent) string {
	if e == nil {
		return "no event"
	}
	return e.kind + " " + string(e.data)
}

// shownTurn is a turn as the server shows it.
type shownTurn struct {
	ID      string                 `json:"id"`
	State   continuo.TurnState     `json:"state"`
	Reason  continuo.FailureReason `json:"reason"`
	Resumes string                 `json:"resumes"`
	Owner   string                 `json:"owner"`
	Fence   int64                  `json:"fence"`
}

// turnList lists the conversation's turns without touching them, the newest first.
func (c *chatClient) turnList(ctx context.Context, k *killable) ([]shownTurn, error) {
	var page struct{ Data []shownTurn }
	status, err := k.get(ctx, c.path("/turns?limit=100"), &page)
	if err == nil && status != http.StatusOK && status != http.StatusNotFound {
		err = fmt.Errorf("turns of %s: status %d", c.key, status)
	}
	return page.Data, err
}

// readLog reads the conversation and checks that it holds all that was read before, unchanged. Several
// goroutines may call it at once: no request is made with mu held, for the program that answers may be stopped.
func (c *chatClient) readLog(ctx context.Context, k *killable) ([]continuo.Entry, error) {
	c.mu.Lock()
	known := len(c.log)
	c.mu.Unlock()
	var page struct {
		Data    []json.RawMessage
		HasMore bool `json:"has_more"`
	}
	status, err := k.get(ctx, c.path("/entries?limit=1000"), &page)
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK && (status != http.StatusNotFound || known > 0) {
		return nil, fmt.Errorf("entries of %s, which had %d: status %d", c.key, known, status)
	}
	if len(page.Data) < known || page.HasMore {
		c.errorf("the log has %d entries (more: %v), it had %d", len(page.Data), page.HasMore, known)
		return nil, nil
	}
	c.updateLog(page.Data)
	entries := make([]continuo.Entry, len(page.Data))
	for i, raw := range page.Data {
		if err := json.Unmarshal(raw, &entries[i]); err != nil {
			return nil, err
		}
		if entries[i].Seq != int64(i+1) {
			c.errorf("entry %d has seq %d", i+1, entries[i].Seq)
		}
	}
	return entries, nil
}

// updateLog compares what was read with what was read before, and keeps the longer of the two: of two reads
// at once either may come back first.
func (c *chatClient) updateLog(read []json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range min(len(read), len(c.log)) {
		if !bytes.Equal(c.log[i], read[i]) {
			c.errorf("entry %d changed:\n%s\n%s", i+1, c.log[i], read[i])
		}
	}
	if len(read) > len(c.log) {
		c.log = read
	}
}

// length is how many entries the conversation had when it was last read.
func (c *chatClient) length() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.log)
}

// checkNoneRunning checks that no turn is left running where none was started: looking does not close it.
func (c *chatClient) checkNoneRunning(ctx context.Context, k *killable) bool {
	turns, err := c.turnList(ctx, k)
	if err != nil {
		c.errorf("%v", err)
	}
	closed := true
	for _, turn := range turns {
		if turn.State == continuo.TurnRunning {
			c.errorf("turn %s still runs, %v after the start of the program", turn.ID, time.Since(k.begun))
			closed = false
		}
	}
	return closed
}

// recoverTurn looks at the turn that was under way when the program was killed, and returns what became of it,
// nil when nothing did.
func (c *chatClient) recoverTurn(ctx context.Context, k *killable) *outcome {
	turns, err := c.turnList(ctx, k)
	if err != nil {
		c.errorf("%v", err)
		return nil
	}
	a := c.open
	c.open = nil
	if a == nil {
		return nil
	}
	if a.id == "" && len(turns) > 0 && !c.turns[turns[0].ID] {
		a.id = c.committed(ctx, k, turns[0].ID)
	}
	if a.id == "" { // it had not begun
		c.losses.addVoid()
		before := c.length()
		if entries, err := c.readLog(ctx, k); err != nil || len(entries) != before {
			c.errorf("no turn is known, and the log has %d entries instead of %d: %v", len(entries), before, err)
		}
		if a.message != "" { // a client that does not know asks again
			c.finish(ctx, k, &attempt{message: a.message, apiKey: a.apiKey, started: make(chan struct{}), playback: &playback{script: quickScript(c.random, c.key+"-again")}})
			return nil
		}
		return a.resumes
	}
	return c.check(ctx, k, a)
}

// committed returns the id of a turn, "" for one of which nothing was kept: the first reader of that one
// makes it void.
func (c *chatClient) committed(ctx context.Context, k *killable, id string) string {
	status, err := k.get(ctx, c.path("/turns/"+id), &shownTurn{})
	if err != nil || status != http.StatusOK && status != http.StatusNotFound {
		c.errorf("turn %s: status %d, %v", id, status, err)
	}
	if status == http.StatusNotFound {
		return ""
	}
	return id
}

// resumeTurn takes up a turn that failed: by itself, or with a message.
func (c *chatClient) resumeTurn(failed *outcome, quick bool) *attempt {
	if c.random.IntN(2) == 0 {
		return c.begin("", failed, quick)
	}
	return c.begin("continue", nil, quick)
}

// runUntilKilled is what the client does while a program runs: it looks at what was left of its turn, resumes
// it, and begins another. Begun is called when the program may be killed; killed has the time of the kill.
func (c *chatClient) runUntilKilled(ctx context.Context, k *killable, begun func()) {
	if !c.checkNoneRunning(ctx, k) { // it would be waited for
		begun()
		return
	}
	failed := c.recoverTurn(ctx, k)
	var next *attempt
	if failed != nil && failed.failed {
		next = c.resumeTurn(failed, c.random.IntN(10) < 7)
		if next.pace == 0 {
			c.finish(ctx, k, next)
			c.checkShownAfter(ctx, k, next, failed)
			next = nil
		}
	}
	if next == nil {
		next = c.begin("tell me", nil, false)
	}
	begun()
	select {
	case <-time.After(time.Duration(c.random.IntN(150)) * time.Millisecond): // not all at the same place
	case <-k.ended:
	}
	c.open = next
	c.run(ctx, k, next)
}

// finishOpenTurn ends what is left of the client's turn, and looks at the log once more.
func (c *chatClient) finishOpenTurn(ctx context.Context, k *killable) {
	if failed := c.recoverTurn(ctx, k); failed != nil && failed.failed {
		c.finish(ctx, k, c.resumeTurn(failed, true))
	}
	if _, err := c.readLog(ctx, k); err != nil {
		c.errorf("%v", err)
	}
}

// checkShownAfter checks what the model is shown of what was in the log when the conversation continued after a turn that
// failed: all that was said, with the part of an answer that it is to continue, but no answer that failed before it
// showed anything.
func (c *chatClient) checkShownAfter(ctx context.Context, k *killable, a *attempt, failed *outcome) {
	requests := a.requests()
	entries, err := c.readLog(ctx, k)
	if err != nil || len(requests) == 0 {
		c.errorf("the turn after %s asked %d times; the log: %v", failed.id, len(requests), err)
		return
	}
	shown := map[continuo.Role][]string{}
	for _, raw := range messagesOf(requests[0]) {
		var message struct {
			Role    continuo.Role
			Content string
		}
		if json.Unmarshal(raw, &message) == nil {
			shown[message.Role] = append(shown[message.Role], message.Content)
		}
	}
	var answers []continuo.Entry
	for _, e := range entries[:min(int(failed.answer.Seq), len(entries))] {
		switch {
		case e.Role == continuo.User && !slices.Contains(shown[continuo.User], e.Content.String()):
			c.errorf("the request after turn %s does not show the message %q", failed.id, e.Content.String())
		case e.Role == continuo.Assistant && !isEmptyFailure(&e):
			answers = append(answers, e)
		}
	}
	matches := func(text string, e continuo.Entry) bool {
		return strings.HasPrefix(text, e.Content.String()) && strings.Contains(text, "reason=interrupted") == (e.Error != nil)
	}
	if !slices.EqualFunc(shown[continuo.Assistant], answers, matches) {
		c.errorf("the request after turn %s does not show just the answers that said something, the last one %q: %s",
			failed.id, failed.answer.Content.String(), messagesOf(requests[0]))
	}
}

// isEmptyFailure reports whether an answer failed before its first word and its first call.
func isEmptyFailure(e *continuo.Entry) bool {
	return e.Error != nil && len(e.Error.PartialToolCalls) == 0 && len(e.ToolCalls) == 0 && strings.TrimSpace(e.Content.String()) == ""
}

func messagesOf(body []byte) []json.RawMessage {
	var request struct{ Messages []json.RawMessage }
	_ = json.Unmarshal(body, &request) // no messages are found invalid
	return request.Messages
}

// checkRequests checks that the upstream could understand what it was asked. Each try but the last may have asked once
// for what its successor asks for again.
func (c *chatClient) checkRequests(a *attempt, tries int) {
	requests := a.requests()
	if len(requests) > len(a.rounds)+tries-1 {
		c.errorf("turn %s asked %d times in %d tries, its script has %d rounds", a.id, len(requests), tries, len(a.rounds))
	}
	for _, body := range requests {
		violations := render.CheckOpenAIChat(messagesOf(body))
		if violations = slices.DeleteFunc(violations, func(v render.Violation) bool { return v.Lint }); len(violations) > 0 {
			c.errorf("turn %s sent a request that breaks rules: %v\n%s", a.id, violations, messagesOf(body))
		}
	}
}
