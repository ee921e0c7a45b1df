package memories

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// rest is how long after an extraction the next one of the same user begins at the earliest: turns that follow each other
// quickly are read together.
const rest = 2 * time.Second

// AfterTurn extracts facts in the background after a turn of a conversation has ended. Engine.Close waits for it. What a
// process leaves undone is done after the user's next turn, or before its memory is read.
func (m *Memories) AfterTurn(conversation continuo.Conversation) {
	user := conversation.Scope()
	if !m.options.Enabled || conversation.Kind != continuo.KindUser || !m.pending.Begin(user, struct{}{}) {
		return
	}
	m.life.Go(func(ctx context.Context) {
		for again := true; again; _, again = m.pending.Next(user) {
			err := m.extract(ctx, user)
			if err == nil {
				err = m.deriveWhenDue(ctx, user)
			}
			if err != nil && ctx.Err() == nil {
				m.options.Logger.WarnContext(ctx, "memory_failed", "project_id", user.ProjectID, "error", err.Error())
			}
			m.rest()
		}
	})
}

// rest waits until the next extraction may begin, or until the program ends.
func (m *Memories) rest() {
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-m.life.Draining.Done():
	}
}

// extract reads what is new in the conversations of a user.
func (m *Memories) extract(ctx context.Context, user continuo.Scope) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			m.options.Logger.ErrorContext(ctx, "memory_failed", "error", fmt.Sprint(cause), "stack", string(debug.Stack()))
			err = nil
		}
	}()
	conversation, err := m.open(ctx, continuo.Scope{ProjectID: user.ProjectID}, Owner{UserID: user.UserID})
	if err != nil {
		return err
	}
	if err := m.scan(ctx, conversation, byRules{}, false); err != nil || m.options.Extractor == "" {
		return err
	}
	return m.scanByModel(ctx, conversation, false)
}

// scanByModel has the model of the settings read what is new. One process does it at a time, so that the model is asked
// once about a message.
func (m *Memories) scanByModel(ctx context.Context, conversation continuo.Conversation, all bool) error {
	ctx, by, err := m.byModel(ctx, conversation)
	if err != nil {
		return err
	}
	return m.keeper.RunExclusive(ctx, "memory/"+conversation.ID, func(string) {}, func(ctx context.Context) error {
		return m.scan(ctx, conversation, by, all)
	})
}

// catchUp extracts by the rules what a process left behind. It does nothing where there is no memory yet.
func (m *Memories) catchUp(ctx context.Context, scope continuo.Scope, owner Owner) error {
	if !m.options.Enabled || owner.Project {
		return nil
	}
	conversation, err := m.find(ctx, scope, owner)
	if errors.Is(err, continuo.ErrNotFound) {
		return nil
	}
	if err == nil {
		err = m.scan(ctx, conversation, byRules{}, false)
	}
	return err
}

// Extract reads everything that a user has said and that was not read yet, however long ago. It fails with ErrDisabled.
func (m *Memories) Extract(ctx context.Context, scope continuo.Scope, owner Owner) error {
	if !m.options.Enabled {
		return ErrDisabled
	}
	conversation, err := m.open(ctx, scope, owner)
	if err != nil || owner.Project {
		return err
	}
	if err := m.scan(ctx, conversation, byRules{}, true); err != nil || m.options.Extractor == "" {
		return err
	}
	return m.scanByModel(ctx, conversation, true)
}
