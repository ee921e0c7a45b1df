package trpc

import (
	"context"
	"fmt"
	"strings"

	"trpc.group/trpc-go/trpc-agent-go/session"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/adapters/internal/mirror"
)

func (s *Service) ofApp(app string) continuo.Conversation {
	return continuo.Conversation{ProjectID: s.project, Key: mirror.Key("trpc-app", app), Title: "State of the app " + app}
}

func (s *Service) ofUser(user session.UserKey) continuo.Conversation {
	return continuo.Conversation{
		ProjectID: s.project, UserID: user.UserID, Key: mirror.Key("trpc-user", user.AppName, user.UserID), Title: "State of a user of the app " + user.AppName,
	}
}

// change changes a state; a nil change reads it.
func (s *Service) change(ctx context.Context, like continuo.Conversation, change func(map[string][]byte)) (session.StateMap, error) {
	state, err := mirror.Change(ctx, s.log, like, vendor, change)
	if err != nil {
		return nil, fmt.Errorf("trpc: %s: %w", like.Title, err)
	}
	return state, nil
}

// update is the change that sets values, whose names may have a prefix.
func update(state session.StateMap, prefix string) func(map[string][]byte) {
	return func(all map[string][]byte) {
		for name, value := range state {
			all[strings.TrimPrefix(name, prefix)] = value
		}
	}
}

// UpdateAppState changes the state of an app.
func (s *Service) UpdateAppState(ctx context.Context, app string, state session.StateMap) error {
	if app == "" {
		return session.ErrAppNameRequired
	}
	_, err := s.change(ctx, s.ofApp(app), update(state, session.StateAppPrefix))
	return err
}

// DeleteAppState deletes a value of an app's state; one that does not exist is no error.
func (s *Service) DeleteAppState(ctx context.Context, app, name string) error {
	if app == "" {
		return session.ErrAppNameRequired
	}
	_, err := s.change(ctx, s.ofApp(app), func(all map[string][]byte) { delete(all, strings.TrimPrefix(name, session.StateAppPrefix)) })
	return err
}

// ListAppStates returns the state of an app.
func (s *Service) ListAppStates(ctx context.Context, app string) (session.StateMap, error) {
	if app == "" {
		return nil, session.ErrAppNameRequired
	}
	return s.change(ctx, s.ofApp(app), nil)
}

// UpdateUserState changes the state of a user of an app.
func (s *Service) UpdateUserState(ctx context.Context, user session.UserKey, state session.StateMap) error {
	if err := user.CheckUserKey(); err != nil {
		return err
	}
	for name := range state {
		if strings.HasPrefix(name, session.StateAppPrefix) || strings.HasPrefix(name, session.StateTempPrefix) {
			return fmt.Errorf("trpc: state of the user %s: %s is not of a user", user.UserID, name)
		}
	}
	_, err := s.change(ctx, s.ofUser(user), update(state, session.StateUserPrefix))
	return err
}

// DeleteUserState deletes a value of a user's state; one that does not exist is no error.
func (s *Service) DeleteUserState(ctx context.Context, user session.UserKey, name string) error {
	if err := user.CheckUserKey(); err != nil {
		return err
	}
	_, err := s.change(ctx, s.ofUser(user), func(all map[string][]byte) { delete(all, strings.TrimPrefix(name, session.StateUserPrefix)) })
	return err
}

// ListUserStates returns the state of a user of an app.
func (s *Service) ListUserStates(ctx context.Context, user session.UserKey) (session.StateMap, error) {
	if err := user.CheckUserKey(); err != nil {
		return nil, err
	}
	return s.change(ctx, s.ofUser(user), nil)
}

// shared is the states of an app and of one of its users, with their prefixes.
func (s *Service) shared(ctx context.Context, user session.UserKey) (session.StateMap, error) {
	app, err := s.ListAppStates(ctx, user.AppName)
	if err != nil {
		return nil, err
	}
	mine, err := s.ListUserStates(ctx, user)
	if err != nil {
		return nil, err
	}
	both := session.StateMap{}
	for name, value := range app {
		both[session.StateAppPrefix+name] = value
	}
	for name, value := range mine {
		both[session.StateUserPrefix+name] = value
	}
	return both, nil
}
