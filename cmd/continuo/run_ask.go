package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/workflow"
)

// question is what a person is asked during a run: whether to approve (of a node), or whether a call may run.
type question struct {
	node workflow.NodeStatus // of an approval
	// led are the steps directly before the node: their outputs are to be approved.
	led   []workflow.NodeStatus
	call  *continuo.ToolCall // nil for an approval
	asked turn.Event         // the event that asks for the decision
	turn  continuo.Turn      // the turn that makes the call
	since int                // when it was shown, in the time of the typist's keyboard
	// unclear says why the question is repeated: the input was no answer; "" the first time.
	unclear string
}

// lines are the question, its subject in as many lines as there is room for, and how to answer.
func (q *question) lines(width, room int, paint term.Style) []string {
	asked, how := q.node.Question, "y: yes · n: no · either with a comment: y well done"
	if asked == "" {
		asked = "Approve " + q.node.ID + "?"
	}
	if q.call != nil {
		asked = "May this run? " + callText(*q.call, 2000)
		how = "y: yes · n: no · a: always in this run · or say what to do instead" + deadlineText(q.asked)
	}
	lines, end := rowsOf(asked, width, paint.Yellow), rowsOf(how, width, paint.Dim)
	if q.unclear != "" {
		end = append(rowsOf(q.unclear, width, paint.Yellow), end...)
	}
	led := bounded(givenRows(q.led, width, paint), max(room-len(lines)-len(end), 2), paint)
	return append(append(lines, led...), end...)
}

// rowsOf wraps a text into rows of a width, all in one colour.
func rowsOf(text string, width int, paint func(string) string) []string {
	var rows []string
	for _, line := range term.Wrap(text, width) {
		rows = append(rows, paint(line))
	}
	return rows
}

// repeatReason says why a question is repeated.
func (q *question) repeatReason(line string) string {
	if note := term.OneLine(line, 40); note != "" {
		return fmt.Sprintf("%q is neither yes nor no: begin the answer with y or n.", note)
	}
	return "Nothing was said: begin the answer with y or n."
}

// decided is a person's decision: yes or no, and a comment.
type decided struct {
	yes, always bool
	comment     string
}

// parseAnswer parses an answer; false if it is neither yes nor no. In the answer to a call that is the reason for a no.
func (q *question) parseAnswer(line string) (decided, bool) {
	word, comment, _ := strings.Cut(strings.TrimSpace(line), " ")
	comment = strings.TrimSpace(comment)
	switch strings.ToLower(strings.TrimRight(word, ",:;.")) {
	case "":
		return decided{}, false
	case "y", "yes":
		return decided{yes: true, comment: comment}, true
	case "n", "no":
		return decided{comment: comment}, true
	case "a", "always":
		if q.call != nil && comment == "" {
			return decided{yes: true, always: true}, true
		}
	}
	return decided{comment: strings.TrimSpace(line)}, q.call != nil
}

// answerReader reads the lines that a person types.
type answerReader struct {
	keys        *term.Keyboard
	in          *bufio.Reader  // buffers nothing between lines
	pendingLine chan term.Line // the line that is being read; nil if none is
	ended       bool           // at the last look there was nothing more to read
}

func newTypist(in io.Reader) *answerReader {
	keys := term.NewKeyboard(in)
	return &answerReader{keys: keys, in: bufio.NewReader(keys)}
}

// reading returns the line that is being read: one whose reader gave up is kept for the next reader.
func (t *answerReader) reading() <-chan term.Line {
	if t.pendingLine == nil {
		got := make(chan term.Line, 1)
		t.keys.NextLine()
		go func() { // it is abandoned when the program ends
			line, err := t.in.ReadString('\n')
			if err != nil && line != "" {
				err = nil
			}
			begun, ended := t.keys.Times()
			got <- term.Line{Text: strings.TrimRight(line, "\r\n"), Err: err, Begun: begun, Ended: ended}
		}()
		t.pendingLine = got
	}
	return t.pendingLine
}

// findPending determines what a person has to decide in the run's current state.
func (w *runWatch) findPending(ctx context.Context) error {
	if w.view.status.State != continuo.RunWaiting || w.stopping {
		return nil
	}
	for _, node := range w.view.status.Nodes {
		if node.State != workflow.NodeWaiting || len(node.WaitingFor) > 0 { // calls come as events of their turns
			continue
		}
		switch {
		case w.yes:
			return w.decideNode(ctx, node, decided{yes: true})
		case w.live == nil:
			return w.waits()
		default:
			w.ask(&question{node: node, led: leading(w.view.edges, w.view.status.Nodes, node.ID)})
		}
	}
	return nil
}

// takeCall records that a call of a step waits for a decision.
func (w *runWatch) takeCall(ctx context.Context, event turn.Event, conversationID string) error {
	in := w.conversation
	if conversationID != "" {
		in.ID = conversationID
	}
	found, err := w.turns.Get(ctx, in, event.TurnID)
	if err != nil {
		return err
	}
	q := &question{call: event.Call, asked: event, turn: found}
	switch {
	case w.always[event.Call.Name]:
		return w.decideCall(ctx, q, decided{yes: true})
	case w.live != nil:
		w.ask(q)
	case isOurs(found): // a turn that runs in another process may be decided there
		if !w.isOpen(ctx, q) {
			return nil
		}
		status, err := w.runs.Get(ctx, continuo.Scope{ProjectID: w.view.status.ProjectID}, w.view.status.ID)
		if err != nil {
			return err
		}
		w.view.status = *status
		return w.waits()
	}
	return nil
}

// ask appends a question to the queue.
func (w *runWatch) ask(q *question) {
	for _, other := range w.questions {
		if other.call == nil && q.call == nil && other.node.ID == q.node.ID && other.node.Visit == q.node.Visit {
			return
		}
	}
	w.questions = append(w.questions, q)
	w.askNext()
}

func (w *runWatch) askNext() {
	if w.live.asking == nil && len(w.questions) > 0 && !w.stopping {
		w.live.ask(w.questions[0], w.answerReader.keys)
	}
}

// answers returns the line that a person types. It is read also before a question is asked, so that earlier input is
// not taken for the answer.
func (w *runWatch) answers() <-chan term.Line {
	if w.live == nil || w.live.asking == nil && w.answerReader.ended {
		return nil
	}
	return w.answerReader.reading()
}

// answer uses a typed line as the answer to the current question.
func (w *runWatch) answer(ctx context.Context, line term.Line) error {
	w.answerReader.pendingLine, w.answerReader.ended = nil, line.Err != nil
	q := w.live.asking
	if q == nil || line.Ended < q.since {
		if line.Err == nil {
			w.live.screen.Wrote(term.Width(line.Text)) // the terminal has shown it
		}
		return nil
	}
	w.live.answered(line.Text, line.Err == nil)
	if line.Begun < q.since {
		q.unclear = "That line was started before the question: it is not taken as the answer."
		w.askNext()
		return nil
	}
	if line.Err != nil { // the person has ended the input
		if q.call == nil {
			return w.waits()
		}
		w.questions = w.questions[1:]
		return w.interrupted(ctx)
	}
	said, ok := q.parseAnswer(line.Text)
	if !ok {
		q.unclear = q.repeatReason(line.Text)
		w.askNext()
		return nil
	}
	w.questions = w.questions[1:]
	err := w.decide(ctx, q, said)
	w.askNext()
	return err
}

func (w *runWatch) decide(ctx context.Context, q *question, decision decided) error {
	if q.call == nil {
		return w.decideNode(ctx, q.node, decision)
	}
	if decision.always {
		w.always[q.call.Name] = true
	}
	return w.decideCall(ctx, q, decision)
}

// decideNode and decideCall report the decision to the engine. An earlier decision by another client remains.
func (w *runWatch) decideNode(ctx context.Context, node workflow.NodeStatus, said decided) error {
	_, err := w.runs.Decide(ctx, w.view.status.Run, engine.RunDecision{Node: node.ID, Approved: said.yes, Comment: said.comment}, false)
	return unlessDecided(err)
}

func (w *runWatch) decideCall(ctx context.Context, q *question, said decided) error {
	return unlessDecided(w.turns.Decide(ctx, q.turn, q.call.ID, turn.Decision{Allowed: said.yes, Reason: said.comment}))
}

func unlessDecided(err error) error {
	if errors.Is(err, continuo.ErrNotFound) || errors.Is(err, continuo.ErrNotRunning) || errors.Is(err, engine.ErrRunOver) || errors.Is(err, engine.ErrDecided) {
		return nil
	}
	return err
}

// recheck removes questions that another client has answered, or that can no longer be answered.
func (w *runWatch) recheck(ctx context.Context) {
	if w.live == nil || len(w.questions) == 0 {
		return
	}
	var open []*question
	for _, q := range w.questions {
		if w.isOpen(ctx, q) {
			open = append(open, q)
		}
	}
	w.questions = open
	if asking := w.live.asking; asking != nil && (len(open) == 0 || open[0] != asking) {
		w.live.answered("", false)
	}
	w.askNext()
}

func (w *runWatch) isOpen(ctx context.Context, q *question) bool {
	if q.call == nil {
		for _, node := range w.view.status.Nodes {
			if node.ID == q.node.ID {
				return node.State == workflow.NodeWaiting && node.Visit == q.node.Visit
			}
		}
		return false
	}
	waiting, err := w.turns.Waiting(ctx, q.turn)
	if err != nil {
		return true
	}
	for _, call := range waiting {
		if call.ID == q.call.ID {
			return true
		}
	}
	return false
}
