package adk

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"google.golang.org/adk/v2/session"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/adapters/internal/mirror"
)

// split returns the parts of a state or of a change of one: the app's and the user's, with their prefixes, and the session's.
// Temporary ones are in none.
func split(state map[string]any) (app, user, own map[string]any) {
	app, user, own = map[string]any{}, map[string]any{}, map[string]any{}
	for key, value := range state {
		switch {
		case strings.HasPrefix(key, session.KeyPrefixApp):
			app[key] = value
		case strings.HasPrefix(key, session.KeyPrefixUser):
			user[key] = value
		case !strings.HasPrefix(key, session.KeyPrefixTemp):
			own[key] = value
		}
	}
	return app, user, own
}

// asJSON returns a state as it is after a read.
func asJSON(state map[string]any) (map[string]any, error) {
	data, err := json.Marshal(state)
	if err != nil {
		return nil, fmt.Errorf("adk: the state is no JSON: %w", err)
	}
	var read map[string]any
	return read, json.Unmarshal(data, &read)
}

// shared is the state of an app and of one of its users.
func (s *Service) shared(ctx context.Context, app, user string) (map[string]any, error) {
	return s.changeShared(ctx, app, user, nil, nil)
}

// changeShared changes the states of an app and of one of its users, and returns both together.
func (s *Service) changeShared(ctx context.Context, app, user string, ofApp, ofUser map[string]any) (map[string]any, error) {
	all, err := s.change(ctx, mirror.Key("adk-app", app), "State of the app "+app, "", ofApp)
	if err != nil {
		return nil, err
	}
	mine, err := s.change(ctx, mirror.Key("adk-user", app, user), "State of a user of the app "+app, user, ofUser)
	if err != nil {
		return nil, err
	}
	maps.Copy(all, mine)
	return all, nil
}

// change makes a change, if there is one, to the state that a conversation's newest entry has, and returns the state.
func (s *Service) change(ctx context.Context, key, title, user string, delta map[string]any) (map[string]any, error) {
	var change func(map[string]any)
	if len(delta) > 0 {
		change = func(state map[string]any) { maps.Copy(state, delta) }
	}
	state, err := mirror.Change(ctx, s.log, continuo.Conversation{ProjectID: s.project, UserID: user, Key: key, Title: title}, vendor, change)
	if err != nil {
		return nil, fmt.Errorf("adk: %s: %w", title, err)
	}
	return state, nil
}
