package main

import (
	"context"
	"errors"
	"io"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/turn"
)

// broken returns the conversation's newest turn if it failed, else nil.
func (t *talk) broken(ctx context.Context) (*continuo.Turn, error) {
	if t.conversation.ID == "" {
		return nil, nil
	}
	turns, err := t.engine.Turns(ctx, continuo.TurnQuery{ConversationID: t.conversation.ID, Limit: 1})
	if err != nil || len(turns) == 0 || turns[0].State != continuo.TurnFailed {
		return nil, err
	}
	return &turns[0], nil
}

// resume goes on with the answer that broke off.
func (t *talk) resume(ctx context.Context, _ string) error {
	broken, err := t.broken(ctx)
	if err != nil {
		return err
	}
	if broken == nil {
		return usage("nothing has broken off in this conversation: say something instead")
	}
	return t.carry(ctx, func(ctx context.Context) (*engine.Chat, error) {
		return t.engine.Resume(ctx, engine.ResumeRequest{Turn: *broken, View: t.view, OnBusy: engine.Wait})
	})
}

// decide asks the person whether a call may run, and tells the turn.
func (s *stream) decide(ctx context.Context, event turn.Event) error {
	s.endLine()
	call := *event.Call
	decision := turn.Decision{Allowed: true}
	if !s.always[call.Name] {
		decision = s.ask(ctx, call)
	}
	found, err := s.engine.Turn(ctx, s.conversation, event.TurnID)
	if err == nil {
		err = s.engine.Decide(ctx, found, call.ID, decision)
	}
	if errors.Is(err, continuo.ErrNotFound) || errors.Is(err, continuo.ErrNotRunning) {
		s.remark("That came too late: nobody had decided in time.")
		return nil
	}
	return err
}

// ask reads the person's decision on a call. Where nobody can be asked the call may not run.
func (s *stream) ask(ctx context.Context, call continuo.ToolCall) turn.Decision {
	if s.plain || s.lines == nil {
		s.remark("not allowed, since nobody can be asked here: %s (tools.allow lists what may run)", callWords(call, 300))
		return turn.Decision{Reason: "nobody is there to ask"}
	}
	s.print("%s %s", s.paint.yellow("May this run?"), callWords(call, 2000))
	for {
		s.remark("y: yes · n: no · a: always in this talk · or say what to do instead")
		var line typed
		select {
		case line = <-s.reading(s.lines):
			s.underway = nil
		case <-ctx.Done(): // the turn was stopped
			return turn.Decision{}
		}
		switch answer := strings.TrimSpace(line.line); strings.ToLower(answer) {
		case "y", "yes":
			return turn.Decision{Allowed: true}
		case "a", "always":
			if s.always == nil {
				s.always = map[string]bool{}
			}
			s.always[call.Name] = true
			return turn.Decision{Allowed: true}
		case "n", "no":
			return turn.Decision{}
		case "":
			if line.err != nil {
				s.leaving = s.leaving || !errors.Is(line.err, io.EOF)
				return turn.Decision{}
			}
		default:
			return turn.Decision{Reason: answer}
		}
	}
}
