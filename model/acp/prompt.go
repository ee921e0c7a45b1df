package acp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	acp "github.com/coder/acp-go-sdk"
)

// prompt sends a prompt and returns when its turn is over; into receives the messages until then. When ctx
// ends, the turn is cancelled. A session that cannot be used afterwards is ended.
func (s *session) prompt(ctx context.Context, text string, into *answer) (acp.PromptResponse, error) {
	if s.closed.Load() {
		return acp.PromptResponse{}, fmt.Errorf("the session of %s is closed", s.options.Name)
	}
	if ctx.Err() != nil {
		return acp.PromptResponse{}, ctx.Err()
	}
	s.cancelled.Store(false)
	done, err := s.exchange(ctx, acp.PromptRequest{SessionId: s.id, Prompt: []acp.ContentBlock{acp.TextBlock(text)}}, into)
	s.process.LimitWrites(0)
	var refused *acp.RequestError
	lost := err != nil && !errors.As(err, &refused)
	if err != nil {
		err = s.explained("answer", err)
	}
	if lost || !s.Alive() {
		s.end()
	}
	return done, err
}

// exchange makes the call of a prompt, and cancels it if necessary.
func (s *session) exchange(ctx context.Context, request acp.PromptRequest, into *answer) (done acp.PromptResponse, err error) {
	call := s.expect()
	defer call.end()
	sent, over := make(chan struct{}), make(chan struct{})
	var watching sync.WaitGroup
	defer watching.Wait()
	defer close(over)
	watching.Go(func() { s.cancelWhen(ctx, sent, over) })
	if err := call.ask(acp.AgentMethodSessionPrompt, request); err != nil {
		return done, err
	}
	close(sent)
	err = call.result(&done, func(m message) error { return s.take(m, into) })
	return done, err
}

// cancelWhen cancels the turn when ctx ends, and stops the agent if that does not help in time. It returns
// when over is closed. An agent ignores a cancellation that arrives before the prompt, so cancelWhen waits
// for sent.
func (s *session) cancelWhen(ctx context.Context, sent, over <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-over:
	}
	if isClosed(over) {
		return
	}
	s.cancelled.Store(true)
	s.process.LimitWrites(s.options.Grace) // including writes in progress
	patience := time.NewTimer(s.options.Grace)
	defer patience.Stop()
	for {
		select {
		case <-over:
			return
		case <-patience.C:
			s.process.Stop()
			return
		case <-sent:
			sent = nil
			_ = s.notify(acp.AgentMethodSessionCancel, acp.CancelNotification{SessionId: s.id}) // then the agent is stopped
		}
	}
}

func isClosed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}
