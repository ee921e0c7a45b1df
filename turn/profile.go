package turn

import (
	"context"
	"errors"

	continuo "github.com/continuo-log/continuo"
)

// Profiler has what is known of users. It names the newest profile of a conversation's user, nil for none; a turn never fails
// because of it.
type Profiler interface {
	Profile(ctx context.Context, conversation continuo.Conversation) *continuo.ProfileRef
}

// profiles is what a build reads of the profiles of a conversation's user.
type profiles struct {
	ctx          context.Context
	log          *continuo.Log
	conversation continuo.Conversation
	profiler     Profiler             // nil for none
	recorded     *continuo.ProfileRef // by a request that is rebuilt; nil for none
}

// Find is part of [window.Profiles].
func (p profiles) Find(ref continuo.ProfileRef) (*continuo.Entry, error) {
	found, err := p.log.Profile(p.ctx, p.conversation, ref)
	if errors.Is(err, continuo.ErrNotFound) {
		return nil, nil
	}
	return found, err
}

// Newest is part of [window.Profiles].
func (p profiles) Newest() *continuo.ProfileRef {
	if p.recorded == nil && p.profiler != nil {
		return p.profiler.Profile(p.ctx, p.conversation)
	}
	return p.recorded
}
