package continuo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// PartDeletion is the PartType of a deletion: a hidden system entry by which a client removed an item of an earlier entry
// from its conversation. The earlier entry stays in the log; no view shows it or its group any more, and it is not recalled.
//
// Views read a deletion with the entries. Who reads an entry alone asks [Log.Deleted]: a mark of the conversation says that it
// has deletions, and one more of each deleted entry through which deletion at the latest.
const PartDeletion = "deletion"

// DeletionOf returns the deletion of an item, by the client's id of it, of the entry with a seq.
func DeletionOf(seq int64, item string) Entry {
	return Entry{Role: System, Hidden: true, PartType: PartDeletion, Content: Text(fmt.Sprintf("%d %s", seq, item))}
}

// Deletion returns what an entry deletes; ok is false for an entry that is no deletion.
func (e *Entry) Deletion() (seq int64, item string, ok bool) {
	if e.PartType != PartDeletion || e.Role != System || !e.Hidden {
		return 0, "", false
	}
	number, item, _ := strings.Cut(e.Content.String(), " ")
	seq, err := strconv.ParseInt(number, 10, 64)
	return seq, item, err == nil
}

// deletions names the mark of a conversation with deletions, and is what the names of their marks begin with.
const deletions = "deletions"

func deletionMark(seq int64) string { return deletions + " " + strconv.FormatInt(seq, 10) }

// noteDeletions marks the entries that some entries delete, which are to be the first after a seq. It must be called before
// they are appended, so that no deletion is in the log that Deleted does not find.
func (l *Log) noteDeletions(ctx context.Context, conversationID string, entries []Entry, after int64) error {
	for i := range entries {
		seq, _, ok := entries[i].Deletion()
		if !ok || seq < 1 {
			continue
		}
		_, err := l.Mark(ctx, conversationID, deletionMark(seq))
		if errors.Is(err, ErrNotFound) { // otherwise an earlier deletion counts
			_, err = l.AdvanceMark(ctx, conversationID, deletionMark(seq), Mark{Seq: after + int64(i) + 1})
		}
		if err == nil {
			_, err = l.AdvanceMark(ctx, conversationID, deletions, Mark{Seq: 1})
		}
		if err != nil {
			return fmt.Errorf("delete an item of entry %d of conversation %s: %w", seq, conversationID, err)
		}
	}
	return nil
}

// noteNewDeletions is noteDeletions for entries that are about to be appended.
func (l *Log) noteNewDeletions(ctx context.Context, conversationID string, entries []Entry) error {
	if !slices.ContainsFunc(entries, func(e Entry) bool { return e.PartType == PartDeletion }) {
		return nil
	}
	conversation, err := l.Conversation(ctx, conversationID)
	if err != nil {
		return err
	}
	return l.noteDeletions(ctx, conversationID, entries, conversation.LastSeq)
}

// Deleted returns those of some entries of which a client deleted an item, or one of another entry of their group, in the
// conversation or in what it was forked from before the fork: what views do not show.
func (l *Log) Deleted(ctx context.Context, conversation Conversation, seqs []int64) (deleted []int64, err error) {
	segments, err := l.withDeletions(ctx, conversation)
	if err != nil || len(segments) == 0 {
		return nil, err
	}
	places := make([]Place, len(seqs))
	for i, seq := range seqs {
		places[i] = Place{&conversation, seq}
	}
	entries, err := l.EntriesAt(ctx, places)
	if err != nil {
		return nil, err
	}
	for i, seq := range seqs {
		group := []int64{seq}
		if entry := entries[i]; entry != nil && !entry.Hidden && (entry.Role == Tool || entry.HasCalls()) {
			if group, err = l.groupOf(ctx, conversation, seq); err != nil {
				return nil, err
			}
		}
		isDeleted, err := l.isDeleted(ctx, segments, group)
		if err != nil {
			return nil, err
		}
		if isDeleted {
			deleted = append(deleted, seq)
		}
	}
	return deleted, nil
}

// withDeletions are the conversation and those that it was forked from, as far as they have deletions.
func (l *Log) withDeletions(ctx context.Context, conversation Conversation) (segments []Segment, err error) {
	own := Segment{conversation.ID, conversation.LastSeq}
	for _, segment := range append(conversation.Lineage[:len(conversation.Lineage):len(conversation.Lineage)], own) {
		switch _, err := l.Mark(ctx, segment.ConversationID, deletions); {
		case err == nil:
			segments = append(segments, segment)
		case !errors.Is(err, ErrNotFound):
			return nil, err
		}
	}
	return segments, nil
}

// isDeleted reports whether one of some entries is deleted in one of some segments.
func (l *Log) isDeleted(ctx context.Context, segments []Segment, seqs []int64) (bool, error) {
	for _, segment := range segments {
		for _, seq := range seqs {
			mark, err := l.Mark(ctx, segment.ConversationID, deletionMark(seq))
			switch {
			case err == nil && mark.Seq <= segment.Through:
				return true, nil
			case err != nil && !errors.Is(err, ErrNotFound):
				return false, err
			}
		}
	}
	return false, nil
}

// groupOf returns the seqs of an answer with calls and their results, one of which has a seq.
func (l *Log) groupOf(ctx context.Context, conversation Conversation, seq int64) ([]int64, error) {
	head := seq
	for entry, err := range l.ReadShared(ctx, conversation, Range{To: seq, Backward: true}) {
		if err != nil {
			return nil, err
		}
		if !entry.Hidden && entry.Role != Tool {
			head = entry.Seq
			break
		}
	}
	group := []int64{head}
	for entry, err := range l.ReadShared(ctx, conversation, Range{From: head + 1}) {
		switch {
		case err != nil:
			return nil, err
		case entry.Hidden:
		case entry.Role == Tool:
			group = append(group, entry.Seq)
		default:
			return group, nil
		}
	}
	return group, nil
}
