package acp

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"github.com/continuo-log/continuo/internal/secret"
)

// explained adds to an error what the agent could not do. The agent's exit explains more than a broken pipe.
func (s *session) explained(what string, err error) error {
	var refused *acp.RequestError
	var own *ownError
	switch {
	case errors.As(err, &own):
		return own.error
	case errors.As(err, &refused):
		return fmt.Errorf("%s could not %s: %s%s", s.options.Name, what, s.refusal(refused), s.process.Stderr())
	case errors.Is(err, errClosed):
		err = s.whyClosed(err)
	}
	return fmt.Errorf("%s could not %s: %w", s.options.Name, what, err)
}

// whyClosed explains why the agent's pipes are closed. It waits for the agent's exit, whose status explains
// more.
func (s *session) whyClosed(err error) error {
	patience := time.NewTimer(s.options.Grace)
	defer patience.Stop()
	select {
	case <-s.process.Ended():
	case <-patience.C:
		return fmt.Errorf("%w and did not end%s", err, s.process.Stderr())
	}
	s.process.End()
	if failure := s.process.Failure(); failure != nil {
		return failure
	}
	return fmt.Errorf("it ended before it had answered%s", s.process.Stderr())
}

// authRequired is the code with which agents ask for a log-in.
const authRequired = -32000

// refusal converts an agent's error; its data often explain more than its message. Agents repeat credentials
// in it.
func (s *session) refusal(refused *acp.RequestError) string {
	secrets := secret.FromEnv(s.options.Env)
	text := secrets.Text(refused.Message)
	if data, err := json.Marshal(refused.Data); err == nil && refused.Data != nil {
		text += " " + cut(secrets.Text(string(data)), 500)
	}
	if refused.Code == authRequired {
		text += "; log in with the agent's own program first, or give it its key in the connector's env"
	}
	return text
}

// ownError ends a call for a reason of the client.
type ownError struct{ error }
