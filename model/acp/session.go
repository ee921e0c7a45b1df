package acp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"github.com/continuo-log/continuo/model/internal/child"
)

// session is an agent that runs, and its session. Prompts follow one another.
type session struct {
	*connection
	options Options
	process *child.Process
	// heardUpdate takes what comes while a prompt is under way; nil before.
	heardUpdate func(acp.SessionUpdate) error
	// heardDenied is told of what the agent was not permitted; nil before.
	heardDenied func(acp.ToolCallUpdate)

	mu        sync.Mutex
	id        acp.SessionId // "" before it has begun
	cancelled bool          // permissions that are asked for now are answered so
}

// open starts the agent. The caller closes the session.
func open(options Options) (*session, error) {
	process, err := child.Start(child.Options{Command: options.Command, Dir: options.Dir, Env: options.Env, Grace: options.Grace})
	if err != nil {
		return nil, fmt.Errorf("%w; install the program, or correct %s", err, options.Setting)
	}
	s := &session{options: options, process: process}
	s.connection = &connection{lines: bufio.NewReaderSize(process, 64<<10), out: process, asked: s.asked, heard: s.heard}
	return s, nil
}

// close ends the agent and returns when all that it started is gone.
func (s *session) close() {
	s.process.CloseInput()
	s.process.End()
}

// begin begins the session.
func (s *session) begin() error {
	var agent acp.InitializeResponse
	err := s.call(acp.AgentMethodInitialize, acp.InitializeRequest{
		ProtocolVersion: acp.ProtocolVersionNumber, ClientInfo: &acp.Implementation{Name: "continuo", Version: s.options.Version},
	}, &agent)
	if err != nil {
		return s.explained("initialize", err)
	}
	if agent.ProtocolVersion != acp.ProtocolVersionNumber {
		return fmt.Errorf("%s speaks version %d of the protocol, and Continuo version %d only", s.options.Name, agent.ProtocolVersion, acp.ProtocolVersionNumber)
	}
	folder, err := filepath.Abs(s.options.Dir)
	if err != nil {
		return fmt.Errorf("find the folder of %s: %w", s.options.Name, err)
	}
	var begun acp.NewSessionResponse
	if err := s.call(acp.AgentMethodSessionNew, acp.NewSessionRequest{Cwd: folder, McpServers: []acp.McpServer{}}, &begun); err != nil {
		return s.explained("begin a session", err)
	}
	s.mu.Lock()
	s.id = begun.SessionId
	s.mu.Unlock()
	return nil
}

// prompt sends a prompt and returns when its turn is over; what comes until then goes to the two functions.
func (s *session) prompt(text string, update func(acp.SessionUpdate) error, denied func(acp.ToolCallUpdate)) (acp.PromptResponse, error) {
	s.heardUpdate, s.heardDenied = update, denied
	defer func() { s.heardUpdate, s.heardDenied = nil, nil }()
	var done acp.PromptResponse
	err := s.call(acp.AgentMethodSessionPrompt, acp.PromptRequest{SessionId: s.id, Prompt: []acp.ContentBlock{acp.TextBlock(text)}}, &done)
	if err != nil {
		return done, s.explained("answer", err)
	}
	return done, nil
}

// cancelWhen cancels the turn when ctx ends, and stops the agent if that does not help in time. It returns when
// over is closed.
func (s *session) cancelWhen(ctx context.Context, over <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-over:
		return
	}
	s.mu.Lock()
	s.cancelled = true
	id := s.id
	s.mu.Unlock()
	defer s.process.Stop()
	s.process.LimitWrites(s.options.Grace) // also of whoever writes now
	if id == "" || s.notify(acp.AgentMethodSessionCancel, acp.CancelNotification{SessionId: id}) != nil {
		return
	}
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.options.Grace)
	defer cancel()
	select {
	case <-patience.Done():
	case <-over:
	}
}

// explained says what the agent could not do. How it ended says more than a broken pipe.
func (s *session) explained(what string, err error) error {
	var refused *acp.RequestError
	var own *ownError
	switch {
	case errors.As(err, &own):
		return own.error
	case errors.As(err, &refused):
		return fmt.Errorf("%s could not %s: %s%s", s.options.Name, what, refusal(refused), s.process.Words())
	case errors.Is(err, errClosed):
		err = s.whyClosed(err)
	}
	return fmt.Errorf("%s could not %s: %w", s.options.Name, what, err)
}

// whyClosed says why the agent's pipes are closed. Its end is waited for, because it says more.
func (s *session) whyClosed(err error) error {
	patience := time.NewTimer(s.options.Grace)
	defer patience.Stop()
	select {
	case <-s.process.Ended():
	case <-patience.C:
		return fmt.Errorf("%w and did not end%s", err, s.process.Words())
	}
	s.process.End()
	if failure := s.process.Failure(); failure != nil {
		return failure
	}
	return fmt.Errorf("it ended before it had answered%s", s.process.Words())
}

// authRequired is the code with which agents ask for a log-in.
const authRequired = -32000

// refusal is an agent's error in words; its data often say more than its message.
func refusal(refused *acp.RequestError) string {
	words := refused.Message
	if data, err := json.Marshal(refused.Data); err == nil && refused.Data != nil {
		words += " " + cut(string(data), 500)
	}
	if refused.Code == authRequired {
		words += "; log in with the agent's own program first, or give it its key in the connector's env"
	}
	return words
}

// ownError ends a call for a reason of ours.
type ownError struct{ error }

// heard takes the agent's notifications.
func (s *session) heard(method string, params json.RawMessage) error {
	if method != acp.ClientMethodSessionUpdate || s.heardUpdate == nil {
		return nil
	}
	var told acp.SessionNotification
	if err := json.Unmarshal(params, &told); err != nil {
		return unreadable(params, err)
	}
	return s.heardUpdate(told.Update)
}

// unreadable is the error of an update that cannot be read and would be a part of the answer; others are none.
func unreadable(params json.RawMessage, err error) error {
	var told struct {
		Update struct {
			Kind string `json:"sessionUpdate"`
		} `json:"update"`
	}
	if json.Unmarshal(params, &told) != nil || told.Update.Kind != "agent_message_chunk" {
		return nil
	}
	return &ownError{fmt.Errorf("the agent sent a piece of its answer that cannot be read: %w", err)}
}

// asked answers the agent's requests: there is only one that is known.
func (s *session) asked(method string, params json.RawMessage) (any, *acp.RequestError) {
	if method != acp.ClientMethodSessionRequestPermission {
		return nil, acp.NewMethodNotFound(method)
	}
	var request acp.RequestPermissionRequest
	if err := json.Unmarshal(params, &request); err != nil {
		return nil, acp.NewInvalidParams(err.Error())
	}
	return acp.RequestPermissionResponse{Outcome: s.decide(request)}, nil
}

// decide finds the option that the settings choose, by its kind: ids are the agent's own words.
func (s *session) decide(request acp.RequestPermissionRequest) acp.RequestPermissionOutcome {
	s.mu.Lock()
	cancelled := s.cancelled
	s.mu.Unlock()
	kinds := []acp.PermissionOptionKind{acp.PermissionOptionKindRejectOnce, acp.PermissionOptionKindRejectAlways}
	if s.options.Allow {
		kinds = []acp.PermissionOptionKind{acp.PermissionOptionKindAllowOnce, acp.PermissionOptionKindAllowAlways}
	} else if s.heardDenied != nil && !cancelled {
		s.heardDenied(request.ToolCall)
	}
	for _, kind := range kinds {
		for _, option := range request.Options {
			if option.Kind == kind && !cancelled {
				return acp.RequestPermissionOutcome{Selected: &acp.RequestPermissionOutcomeSelected{OptionId: option.OptionId, Outcome: "selected"}}
			}
		}
	}
	return acp.RequestPermissionOutcome{Cancelled: &acp.RequestPermissionOutcomeCancelled{Outcome: "cancelled"}}
}
