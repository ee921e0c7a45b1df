package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// chat begins a turn, and sends its answer.
func (s *server) chat(w http.ResponseWriter, r *http.Request, in api.ChatRequest) error {
	chat, err := s.api.Chat(r.Context(), scopeOf(r), in)
	if err != nil {
		return err
	}
	return s.sendAnswer(w, r, chat, in.Stream, in.SessionID)
}

// sendAnswer sends a turn's answer, in one piece or as a stream. SessionID is the client's name for the conversation, "" for its id.
func (s *server) sendAnswer(w http.ResponseWriter, r *http.Request, chat *engine.Chat, stream *bool, sessionID string) error {
	p := &progress{ids: api.ChatIDs{SessionID: cmp.Or(sessionID, chat.Conversation.ID), ConversationID: chat.Conversation.ID, TurnID: chat.TurnID}}
	if wantsStream(r, stream) {
		return s.stream(w, r, nil, chat.Events, p)
	}
	for event, err := range chat.Events {
		if err != nil {
			return p.failure(err)
		}
		if err := s.record(r.Context(), p, event); err != nil {
			return p.failure(err)
		}
	}
	answer, failure := p.result()
	if failure != nil {
		return failure
	}
	return writeJSON(w, http.StatusOK, answer)
}

// progress is the state of a turn so far.
type progress struct {
	ids    api.ChatIDs
	plan   *window.Plan    // of the newest request
	begun  bool            // the user's entry is in the log
	text   strings.Builder // the newest round's text, for the case that it cannot be stored
	last   *continuo.Entry // the final answer, complete or not
	lastID int64           // of the newest event
	usage  continuo.Usage
}

// record records an event; at the first one it also looks up which turn this one resumes.
func (s *server) record(ctx context.Context, p *progress, event turn.Event) (err error) {
	if p.lastID == 0 {
		p.ids.Resumed, err = s.engine.Turns.Resumed(ctx, p.ids.ConversationID, p.ids.TurnID)
	}
	p.record(event)
	return err
}

// record records an event.
func (p *progress) record(event turn.Event) {
	p.lastID = event.ID
	switch event.Kind {
	case turn.Started:
		p.begun = true
	case turn.Planned:
		p.plan = event.Plan
		p.text.Reset()
	case turn.TextDelta:
		p.text.WriteString(event.Text)
	case turn.Finished, turn.Failed:
		p.begun, p.last, p.usage = true, event.Entry, event.Usage
		if event.Plan != nil {
			p.plan = event.Plan
		}
	}
}

// result returns the answer of a finished turn, or the error that it ended with.
func (p *progress) result() (*api.ChatAnswer, error) {
	if p.last == nil {
		return nil, p.failure(fmt.Errorf("turn %s ended without an answer", p.ids.TurnID))
	}
	return api.AnswerOf(p.ids, p.last, p.usage, p.plan)
}

// failure adds the turn's state so far to an error, so that no text of the model is lost.
func (p *progress) failure(err error) error {
	failed := api.ProblemOf(err)
	if !p.begun {
		if failed.Type == api.InvalidRequest && failed.Param == "" {
			failed.Param = "message"
		}
		return failed
	}
	response := p.text.String()
	if p.last != nil {
		response = p.last.Content.String()
	}
	failed.Turn = &api.PartialAnswer{ChatIDs: p.ids, Response: response, Usage: p.usage}
	return failed
}
