package continuo

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// PartProfile is the PartType of a profile: a hidden entry of a memory conversation whose content is made of facts.
const PartProfile = "profile"

// Profile says of which facts of its memory a profile is made.
type Profile struct {
	Facts []int64 `json:"facts"` // seqs
}

// ProfileRef names the entry of a profile in a memory conversation.
type ProfileRef struct {
	ConversationID string `json:"conversation_id"` // of the memory
	Seq            int64  `json:"seq"`
}

// Profile reads a profile that requests of a conversation may show; ErrNotFound where it is redacted or deleted, is no
// profile, or is not of the memory of the conversation's user. The caller must not change it.
func (l *Log) Profile(ctx context.Context, conversation Conversation, ref ProfileRef) (*Entry, error) {
	memory, err := l.Conversation(ctx, ref.ConversationID)
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	isOwn := memory.Kind == KindMemory && memory.ProjectID == conversation.ProjectID && memory.Key == MemoryKey(conversation.UserID)
	if isOwn && ref.Seq >= 1 && ref.Seq <= memory.LastSeq {
		for entry, err := range l.ReadShared(ctx, memory, Range{From: ref.Seq, To: ref.Seq}) {
			if err != nil {
				return nil, fmt.Errorf("profile: %w", err)
			}
			if entry.Profile != nil && entry.Redacted == nil {
				return entry, nil
			}
		}
	}
	return nil, fmt.Errorf("profile %s %d: %w", ref.ConversationID, ref.Seq, ErrNotFound)
}

// settleProfile redacts a profile whose facts were redacted while it was made.
func (l *Log) settleProfile(ctx context.Context, profile *Entry) error {
	for _, seq := range profile.Profile.Facts {
		found, err := l.store.Entries(ctx, profile.ConversationID, EntryQuery{From: seq, To: seq, Limit: 1})
		if err != nil {
			return err
		}
		if len(found) == 0 || found[0].Redacted != nil {
			return l.redactStored(ctx, []Entry{*profile}, RedactRequest{Reason: retracted})
		}
	}
	return nil
}

// redactProfiles redacts the profiles that were made of facts while these were redacted: the append of a profile either
// finds a fact redacted after it, or is found here.
func (l *Log) redactProfiles(ctx context.Context, facts []Entry, request RedactRequest) error {
	with, err := l.withProfiles(ctx, facts)
	if err != nil {
		return err
	}
	late := with[:len(with)-len(facts)]
	for i := range late {
		late[i] = l.redact(&late[i], request)
	}
	_, err = l.storeRedacted(ctx, late)
	return err
}

// withProfiles adds the profiles that are made of one of the facts, before them: if a redaction fails between them, a
// retry still finds them by the facts.
func (l *Log) withProfiles(ctx context.Context, said []Entry) ([]Entry, error) {
	var profiles []Entry
	for _, id := range owners(said) {
		memory, err := l.Conversation(ctx, id)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if memory.Kind != KindMemory {
			continue
		}
		for entry, err := range l.Read(ctx, memory, Range{}) {
			if err != nil {
				return nil, err
			}
			if p := entry.Profile; p != nil && entry.Redacted == nil && !containsEntry(said, &entry) && p.madeOf(id, said) {
				profiles = append(profiles, entry)
			}
		}
	}
	return append(profiles, said...), nil
}

// madeOf reports whether one of the entries is a fact of the profile.
func (p *Profile) madeOf(memoryID string, entries []Entry) bool {
	return slices.ContainsFunc(entries, func(e Entry) bool { return e.ConversationID == memoryID && slices.Contains(p.Facts, e.Seq) })
}
