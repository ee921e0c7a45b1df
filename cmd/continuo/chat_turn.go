package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/turn"
)

// broken returns the conversation's newest turn if it failed, else nil.
func (t *chatSession) broken(ctx context.Context) (*continuo.Turn, error) {
	if t.conversation.ID == "" {
		return nil, nil
	}
	turns, err := t.engine.Turns.List(ctx, continuo.TurnQuery{ConversationID: t.conversation.ID, Limit: 1})
	if err != nil || len(turns) == 0 || turns[0].State != continuo.TurnFailed {
		return nil, err
	}
	return &turns[0], nil
}

// resume resumes the interrupted turn.
func (t *chatSession) resume(ctx context.Context, _ string) error {
	if t.conversation.ID == "" && t.session != "" {
		return fmt.Errorf("conversation %q: %w in project %s; continuo conversations list shows what there is", t.session, continuo.ErrNotFound, t.settings.Project)
	}
	broken, err := t.broken(ctx)
	if err != nil {
		return err
	}
	if broken == nil {
		return usage("nothing has broken off in this conversation: say something instead")
	}
	return t.runTurn(ctx, func(ctx context.Context) (*engine.Chat, error) {
		return t.engine.Turns.Resume(ctx, engine.ResumeRequest{Turn: *broken, View: t.view, OnBusy: engine.Wait})
	})
}

// decide asks the person whether a call may run, and reports the answer to the turn.
func (s *stream) decide(ctx context.Context, event turn.Event) error {
	s.endLine()
	call := *event.Call
	found, err := s.engine.Turns.Get(ctx, s.conversation, event.TurnID)
	if err != nil {
		return err
	}
	answer := allowed
	if !s.always[call.Name] {
		answer = s.ask(ctx, found, event)
	}
	switch {
	case answer.stop:
		s.lines.Close()
		s.lines = s.newLines(ctx, s.completions) // the previous one reports the end of its input permanently
		err = s.engine.Turns.Cancel(ctx, found)
	case answer.elsewhere:
		s.print("")
		s.printAside("This was decided elsewhere, or the time for a decision ran out.")
	default:
		err = s.engine.Turns.Decide(ctx, found, call.ID, answer.Decision)
	}
	if errors.Is(err, continuo.ErrNotFound) || errors.Is(err, continuo.ErrNotRunning) {
		s.printAside("That came too late.")
		return nil
	}
	return err
}

// verdict is a person's decision on a call.
type verdict struct {
	turn.Decision
	stop      bool // Ctrl-C: the whole turn is to end
	elsewhere bool // another client has decided, or the time is over
}

var allowed = verdict{Decision: turn.Decision{Allowed: true}}

// askAgain is the interval at which it is checked whether a call still waits.
const askAgain = 300 * time.Millisecond

// ask reads the person's verdict on a call. If no person can be asked the call may not run. A line that was started when
// the call was decided elsewhere is kept for the next prompt, and so is one that was started before the question was
// shown: it is no answer.
func (s *stream) ask(ctx context.Context, of continuo.Turn, asked turn.Event) verdict {
	call := *asked.Call
	if s.plain || s.lines == nil {
		s.printAside("not allowed, since there is no terminal to ask in: %s (tools.allow lists what may run)", callText(call, 300))
		return verdict{Decision: turn.Decision{Reason: "there is no terminal to ask in"}}
	}
	s.print("%s %s", s.paint.Yellow("May this run?"), callText(call, 2000))
	s.printAside("y: yes · n: no · a: always in this session · Ctrl-C: stop · or say what to do instead%s", deadlineText(asked))
	since := s.lines.Asks()
	look := time.NewTicker(askAgain)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done(): // the turn was stopped
			return verdict{}
		case <-look.C:
			if !s.waits(ctx, of, call) {
				return verdict{elsewhere: true}
			}
		case line := <-s.reading(s.lines):
			s.pendingLine = nil
			if line.Err == nil && line.Begun < since {
				s.queueLine(line.Text)
				continue
			}
			if decision, ok := s.parseAnswer(call, line); ok {
				return decision
			}
		}
	}
}

// queueLine keeps a line that was started before a question for the next prompt, if there will be one.
func (s *stream) queueLine(line string) {
	switch {
	case strings.TrimSpace(line) == "":
	case s.converses:
		s.early = append(s.early, line)
		s.printAside("Typed before the question: kept as your next message, not taken as the answer.")
	default:
		s.printAside("Typed before the question: not taken as the answer.")
	}
}

// deadlineText says when a question expires, for the line that says how to answer; "" if it does not.
func deadlineText(asked turn.Event) string {
	if asked.Until.IsZero() {
		return ""
	}
	return " · denied at " + asked.Until.Local().Format("15:04:05") + " without an answer"
}

// waits reports whether a call still waits for a decision.
func (t *chatSession) waits(ctx context.Context, of continuo.Turn, call continuo.ToolCall) bool {
	waiting, err := t.engine.Turns.Waiting(ctx, of)
	return err != nil || slices.ContainsFunc(waiting, func(other turn.WaitingCall) bool { return other.ID == call.ID })
}

// parseAnswer parses what a person typed; false for an empty line.
func (s *stream) parseAnswer(call continuo.ToolCall, line term.Line) (verdict, bool) {
	if line.Err != nil {
		return verdict{stop: true}, true
	}
	switch decision := strings.TrimSpace(line.Text); strings.ToLower(decision) {
	case "":
		return verdict{}, false
	case "y", "yes":
		return allowed, true
	case "a", "always":
		if s.always == nil {
			s.always = map[string]bool{}
		}
		s.always[call.Name] = true
		return allowed, true
	case "n", "no":
		return verdict{}, true
	default:
		return verdict{Decision: turn.Decision{Reason: decision}}, true
	}
}
