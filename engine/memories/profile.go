package memories

import (
	"context"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/memory"
	"github.com/continuo-log/continuo/token"
)

func (m *Memories) counter() continuo.Counter { return token.O200k() }

// updateProfile appends a memory's profile where it is not the one that the newest profile has.
func (m *Memories) updateProfile(ctx context.Context, conversation continuo.Conversation) error {
	entries, err := m.entries(ctx, conversation)
	if err != nil {
		return err
	}
	text, facts := memory.Profile(memory.Fold(entries), m.counter(), memory.ProfileTokens)
	newest := memory.NewestProfile(entries)
	if newest == nil && text == "" || newest != nil && newest.Content.String() == text {
		return nil
	}
	entry := continuo.Entry{
		Role: continuo.System, Hidden: true, PartType: continuo.PartProfile, Content: continuo.Text(text), Profile: &continuo.Profile{Facts: facts},
	}
	_, err = m.log.Append(ctx, conversation.ID, []continuo.Entry{entry}, continuo.AppendOptions{})
	return err
}
