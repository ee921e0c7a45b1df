package acp

import (
	"encoding/json"
	"fmt"

	acp "github.com/coder/acp-go-sdk"
)

// take handles a message that answers no call of the client. Updates go to the answer in progress; without one
// (nil) they are ignored. The settings decide on permissions.
func (s *session) take(m message, into *answer) error {
	switch {
	case m.Method == "": // of a call that is no longer waited for
		return nil
	case len(m.ID) > 0:
		result, refused := s.asked(m, into)
		return s.reply(m, result, refused)
	case m.Method != acp.ClientMethodSessionUpdate || into == nil:
		return nil
	}
	var notification acp.SessionNotification
	if err := json.Unmarshal(m.Params, &notification); err != nil {
		return unreadable(m.Params, err)
	}
	return into.update(notification.Update)
}

// unreadable is the error of an update that cannot be parsed and would be part of the answer; nil for other
// updates.
func unreadable(params json.RawMessage, err error) error {
	var notification struct {
		Update struct {
			Kind string `json:"sessionUpdate"`
		} `json:"update"`
	}
	if json.Unmarshal(params, &notification) != nil || notification.Update.Kind != "agent_message_chunk" {
		return nil
	}
	return &ownError{fmt.Errorf("the agent sent a piece of its answer that cannot be read: %w", err)}
}

// asked answers the agent's requests: only one method is known.
func (s *session) asked(m message, into *answer) (any, *acp.RequestError) {
	if m.Method != acp.ClientMethodSessionRequestPermission {
		return nil, acp.NewMethodNotFound(m.Method)
	}
	var request acp.RequestPermissionRequest
	if err := json.Unmarshal(m.Params, &request); err != nil {
		return nil, acp.NewInvalidParams(err.Error())
	}
	return acp.RequestPermissionResponse{Outcome: s.decide(request, into)}, nil
}

// decide finds the option that the settings choose, by its kind: the agent chooses the ids freely.
func (s *session) decide(request acp.RequestPermissionRequest, into *answer) acp.RequestPermissionOutcome {
	cancelled := s.cancelled.Load()
	kinds := []acp.PermissionOptionKind{acp.PermissionOptionKindRejectOnce, acp.PermissionOptionKindRejectAlways}
	if s.options.Allow {
		kinds = []acp.PermissionOptionKind{acp.PermissionOptionKindAllowOnce, acp.PermissionOptionKindAllowAlways}
	} else if into != nil && !cancelled {
		into.denied(request.ToolCall)
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
