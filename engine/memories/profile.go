package memories

import (
	"context"
	"errors"
	"slices"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/memory"
	"github.com/continuo-log/continuo/token"
)

func (m *Memories) counter() continuo.Counter { return token.O200k() }

// Profile is part of [turn.Profiler]. There is none where memory is not enabled.
func (m *Memories) Profile(ctx context.Context, conversation continuo.Conversation) *continuo.ProfileRef {
	if !m.options.Enabled || conversation.Kind != continuo.KindUser {
		return nil
	}
	newest, err := m.newestProfile(ctx, conversation)
	if err != nil {
		if ctx.Err() == nil {
			m.options.Logger.WarnContext(ctx, "profile_failed", "conversation_id", conversation.ID, "error", err.Error())
		}
		return nil
	}
	return newest
}

// newestProfile names the newest profile of a conversation's user, nil for none. It makes a new one where the time of one of its
// facts is over.
func (m *Memories) newestProfile(ctx context.Context, conversation continuo.Conversation) (*continuo.ProfileRef, error) {
	for made := false; ; made = true {
		found, err := m.log.Memory(ctx, conversation.ProjectID, continuo.MemoryKey(conversation.UserID))
		if errors.Is(err, continuo.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		held, err := m.held.of(ctx, m, found)
		if err != nil || held.profile == nil {
			return nil, err
		}
		if !held.isOver || made {
			return &continuo.ProfileRef{ConversationID: found.ID, Seq: held.profile.Seq}, nil
		}
		if err := m.updateProfile(ctx, found); err != nil {
			return nil, err
		}
	}
}

// updateProfile appends a memory's profile where it is not the one that the newest profile has.
func (m *Memories) updateProfile(ctx context.Context, conversation continuo.Conversation) error {
	now, err := m.log.Conversation(ctx, conversation.ID)
	if err != nil {
		return err
	}
	held, err := m.held.of(ctx, m, now)
	if err != nil {
		return err
	}
	text, facts, newest := held.wanted, held.wantedFacts, held.profile
	if newest == nil && text == "" || newest != nil && newest.Content.String() == text {
		return nil
	}
	entry := continuo.Entry{
		Role: continuo.System, Hidden: true, PartType: continuo.PartProfile, Content: continuo.Text(text), Profile: &continuo.Profile{Facts: facts},
	}
	_, err = m.log.Append(ctx, conversation.ID, []continuo.Entry{entry}, continuo.AppendOptions{})
	return err
}

// setProfile notes the newest profile of a memory's entries, and the one that its facts make at some time.
func (h *heldMemory) setProfile(entries []continuo.Entry, known []memory.Known, counter continuo.Counter, now time.Time) {
	h.profile = memory.NewestProfile(entries)
	h.wanted, h.wantedFacts = memory.Profile(known, counter, memory.ProfileTokens, now)
	for i := range known {
		k := &known[i]
		isOver := k.SupersededBy == 0 && !k.Holds(now)
		h.isOver = h.isOver || isOver && h.profile != nil && slices.Contains(h.profile.Profile.Facts, k.Seq)
	}
}
