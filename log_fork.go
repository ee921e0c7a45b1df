package continuo

import (
	"context"
	"errors"
	"fmt"
)

// Fork creates a conversation that begins with the parent's entries up to and including seq at (0: all). It copies
// nothing. A fork may not split a group: at must not lie between a call and its result.
func (l *Log) Fork(ctx context.Context, parentID string, at int64, conversation Conversation) (Conversation, error) {
	parent, err := l.Conversation(ctx, parentID)
	if err != nil {
		return Conversation{}, err
	}
	if parent.Kind == KindMemory {
		return Conversation{}, fmt.Errorf("fork conversation %s: %w: a memory has no forks, since they would keep what it forgets", parentID, ErrInvalid)
	}
	if at == 0 {
		at = parent.LastSeq
	}
	if at < 0 || at > parent.LastSeq {
		return Conversation{}, fmt.Errorf("fork at seq %d: %w: the conversation has entries 1 to %d", at, ErrBadRange, parent.LastSeq)
	}
	group, err := l.groupAt(ctx, parent, at, nil)
	if err != nil {
		return Conversation{}, err
	}
	if len(group.Open) > 0 {
		return Conversation{}, fmt.Errorf("fork at seq %d: %w: it would cut the calls %v from their results; choose a seq before the calls or after the results", at, ErrBadRange, group.Open)
	}
	now := l.now()
	if err := errors.Join(CheckMetadata(conversation.Metadata), CheckUserID(conversation.UserID)); err != nil {
		return Conversation{}, err
	}
	conversation.ID, conversation.ProjectID = l.NewID("conv"), parent.ProjectID
	conversation.ParentID, conversation.ForkSeq, conversation.LastSeq = parent.ID, at, at
	conversation.Lineage = lineageThrough(parent, at)
	conversation.CreatedAt, conversation.UpdatedAt = now, now
	if conversation.ActiveMode == "" {
		conversation.ActiveMode = parent.ActiveMode
	}
	if conversation.ActiveAgent == "" {
		conversation.ActiveAgent = parent.ActiveAgent
	}
	if conversation.Title == "" {
		conversation.Title = parent.Title
	}
	if conversation.UserID == "" {
		conversation.UserID = parent.UserID
	}
	if conversation.Metadata == nil {
		conversation.Metadata = parent.Metadata
	}
	if err := l.store.Create(ctx, conversation, nil); err != nil {
		return Conversation{}, fmt.Errorf("fork conversation %s: %w", parentID, err)
	}
	return conversation, nil
}

func lineageThrough(parent Conversation, at int64) []Segment {
	var lineage []Segment
	if at == 0 { // the parent is empty
		return nil
	}
	for _, segment := range append(parent.Lineage[:len(parent.Lineage):len(parent.Lineage)], Segment{parent.ID, parent.LastSeq}) {
		segment.Through = min(segment.Through, at)
		lineage = append(lineage, segment)
		if segment.Through == at {
			break
		}
	}
	return lineage
}

// groupAt returns the state of the group at seq at: which calls are open. Known has entries that were read already; it
// may be nil.
func (l *Log) groupAt(ctx context.Context, conversation Conversation, at int64, known *Snapshot) (Group, error) {
	var answers []string
	for entry, err := range l.Read(ctx, conversation, Range{To: at, Backward: true, Snapshot: known}) {
		switch {
		case err != nil:
			return Group{}, err
		case at == 0:
			return Group{}, nil
		case entry.Hidden && len(entry.Repairs) > 0:
			continue // not part of the protocol's sequence; see Group.Accept
		case entry.Role == Tool:
			answers = append(answers, entry.ToolCallID)
			continue
		case !entry.HasCalls():
			return Group{}, nil
		}
		var group Group
		if err := group.Accept(&entry); err != nil {
			return Group{}, err
		}
		for _, answer := range answers {
			if err := group.answerable(answer); err != nil {
				return Group{}, err
			}
			group.answer(answer)
		}
		return group, nil
	}
	return Group{}, nil
}

// OpenGroup returns the state of the newest group: its Open calls have no results yet.
func (l *Log) OpenGroup(ctx context.Context, conversation Conversation) (Group, error) {
	return l.groupAt(ctx, conversation, conversation.LastSeq, nil)
}

// OpenGroupOf is [Log.OpenGroup] for a snapshot.
func (l *Log) OpenGroupOf(ctx context.Context, snapshot *Snapshot) (Group, error) {
	return l.groupAt(ctx, snapshot.Conversation, snapshot.Conversation.LastSeq, snapshot)
}
