package acp

import (
	"errors"
	"fmt"
	"path/filepath"

	acp "github.com/coder/acp-go-sdk"
)

// begin begins the session: it loads the one with that id if the agent can, else it creates one.
func (s *session) begin(id string) error {
	can, err := s.initialize()
	if err != nil {
		return err
	}
	folder, err := filepath.Abs(s.options.Dir)
	if err != nil {
		return fmt.Errorf("find the folder of %s: %w", s.options.Name, err)
	}
	if id != "" {
		if s.loaded, err = s.load(can, id, folder); err != nil || s.loaded {
			return err
		}
	}
	var begun acp.NewSessionResponse
	if err := s.call(acp.AgentMethodSessionNew, acp.NewSessionRequest{Cwd: folder, McpServers: []acp.McpServer{}}, &begun, s.handleStray); err != nil {
		return s.explained("begin a session", err)
	}
	s.id = begun.SessionId
	return nil
}

// initialize negotiates the protocol with the agent, and returns the agent's capabilities.
func (s *session) initialize() (acp.AgentCapabilities, error) {
	var agent acp.InitializeResponse
	err := s.call(acp.AgentMethodInitialize, acp.InitializeRequest{
		ProtocolVersion: acp.ProtocolVersionNumber, ClientInfo: &acp.Implementation{Name: "continuo", Version: s.options.Version},
	}, &agent, s.handleStray)
	switch {
	case err != nil:
		return acp.AgentCapabilities{}, s.explained("initialize", err)
	case agent.ProtocolVersion != acp.ProtocolVersionNumber:
		return acp.AgentCapabilities{}, fmt.Errorf("%s speaks version %d of the protocol, and Continuo version %d only", s.options.Name, agent.ProtocolVersion, acp.ProtocolVersionNumber)
	}
	return agent.AgentCapabilities, nil
}

// loadError means that the agent did not survive loading a session.
type loadError struct{ error }

// load loads a session, and reports whether it did: for an agent that cannot load or refuses, a new one is
// created. The session's replayed messages are ignored. Only other failures are errors.
func (s *session) load(can acp.AgentCapabilities, id, folder string) (bool, error) {
	var err error
	switch requested := acp.SessionId(id); {
	case can.LoadSession:
		err = s.call(acp.AgentMethodSessionLoad, acp.LoadSessionRequest{SessionId: requested, Cwd: folder, McpServers: []acp.McpServer{}}, nil, s.handleStray)
	case can.SessionCapabilities.Resume != nil:
		err = s.call(acp.AgentMethodSessionResume, acp.ResumeSessionRequest{SessionId: requested, Cwd: folder, McpServers: []acp.McpServer{}}, nil, s.handleStray)
	default:
		return false, nil
	}
	var refused *acp.RequestError
	switch {
	case errors.As(err, &refused):
		return false, nil
	case err != nil:
		return false, &loadError{s.explained("load its session", err)}
	}
	s.id = acp.SessionId(id)
	return true, nil
}

// handleStray handles messages that belong to no answer.
func (s *session) handleStray(m message) error { return s.take(m, nil) }
