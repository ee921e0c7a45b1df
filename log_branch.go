package continuo

import (
	"context"
	"errors"
	"slices"
)

// Branches returns the ids of the conversations in which a conversation's runs executed steps in parallel.
func (l *Log) Branches(ctx context.Context, conversation Conversation) ([]string, error) {
	runs, err := l.store.Runs(ctx, RunQuery{ProjectID: conversation.ProjectID, ConversationID: conversation.ID, Of: OfWorkflows, Limit: 1})
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	var branches []string
	for entry, err := range l.Read(ctx, conversation, Range{From: conversation.ForkSeq + 1}) {
		if err != nil {
			return nil, err
		}
		if event := entry.RunEvent; event != nil && event.Branch != "" && !slices.Contains(branches, event.Branch) {
			branches = append(branches, event.Branch)
		}
	}
	return branches, nil
}

// JoinedBranch is a branch of a run whose step has finished. Seq is the seq of the event that records it: from there on
// the step's work is part of the run's conversation.
type JoinedBranch struct {
	Conversation Conversation
	Seq          int64
}

// JoinedBranches returns the branches that have joined a conversation, in order, including those in the entries that a
// fork inherited.
func (l *Log) JoinedBranches(ctx context.Context, conversation Conversation) ([]JoinedBranch, error) {
	if conversation.ParentID == "" {
		if runs, err := l.store.Runs(ctx, RunQuery{ProjectID: conversation.ProjectID, ConversationID: conversation.ID, Of: OfWorkflows, Limit: 1}); err != nil || len(runs) == 0 {
			return nil, err
		}
	}
	type step struct{ run, node string }
	began, joined := map[step]string{}, []JoinedBranch(nil)
	for entry, err := range l.Read(ctx, conversation, Range{}) {
		if err != nil {
			return nil, err
		}
		event, at := entry.RunEvent, step{entry.RunID, entry.NodeID}
		switch {
		case event == nil:
		case event.Kind == RunNodeBegan:
			began[at] = event.Branch
		case event.Kind == RunNodeFinished && began[at] != "":
			branch, err := l.Conversation(ctx, began[at])
			if err != nil && !errors.Is(err, ErrNotFound) { // it may have been deleted
				return nil, err
			}
			if err == nil {
				joined = append(joined, JoinedBranch{branch, entry.Seq})
			}
		}
	}
	return joined, nil
}

// deleteBranches deletes the branches of a conversation's runs, branches of branches first.
func (l *Log) deleteBranches(ctx context.Context, id string) error {
	conversation, err := l.Conversation(ctx, id)
	if err != nil {
		return nil // the caller's own deletion reports it
	}
	branches, err := l.Branches(ctx, conversation)
	if err != nil {
		return err
	}
	for _, branch := range slices.Backward(branches) {
		if err := l.Delete(ctx, branch); err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	return nil
}
