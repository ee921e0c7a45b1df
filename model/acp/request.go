package acp

import (
	"encoding/json"
	"fmt"

	acp "github.com/coder/acp-go-sdk"
)

// take handles a message that answers no call of the client. Updates go to the answer under way; without one
// (nil) they are ignored. The settings decide on permissions.
func (s *session) take(m message, heard *answer) error {
	switch {
	case m.Method == "": // of a call that is no longer waited for
		return nil
	case len(m.ID) > 0:
		result, refused := s.asked(m, heard)
		return s.reply(m, result, refused)
	case m.Method != acp.ClientMethodSessionUpdate || heard == nil:
		return nil
	}
	var told acp.SessionNotification
	if err := json.Unmarshal(m.Params, &told); err != nil {
		return unreadable(m.Params, err)
	}
	return heard.update(told.Update)
}

// unreadable is the error of an update that cannot be parsed and would be part of the answer; nil for other
// updates.
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

// asked answers the agent's requests: only one method is known.
func (s *session) asked(m message, heard *answer) (any, *acp.RequestError) {
	if m.Method != acp.ClientMethodSessionRequestPermission {
		return nil, acp.NewMethodNotFound(m.Method)
	}
	var request acp.RequestPermissionRequest
	if err := json.Unmarshal(m.Params, &request); err != nil {
		return nil, acp.NewInvalidParams(err.Error())
	}
	return acp.RequestPermissionResponse{Outcome: s.decide(request, heard)}, nil
}

// decide finds the option that the settings choose, by its kind: the agent chooses the ids freely.
func (s *session) decide(request acp.RequestPermissionRequest, heard *answer) acp.RequestPermissionOutcome {
	cancelled := s.cancelled.Load()
	kinds := []acp.PermissionOptionKind{acp.PermissionOptionKindRejectOnce, acp.PermissionOptionKindRejectAlways}
	if s.options.Allow {
		kinds = []acp.PermissionOptionKind{acp.PermissionOptionKindAllowOnce, acp.PermissionOptionKindAllowAlways}
	} else if heard != nil && !cancelled {
		heard.denied(request.ToolCall)
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
