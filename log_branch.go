package continuo

import (
	"context"
	"errors"
	"slices"
)

// Branches returns the ids of the conversations in which steps of a conversation's runs were carried out beside others.
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

// JoinedBranch is a branch of a run whose step has finished. Seq is that of the event that says so: what the step did counts
// from there on in the conversation of the run.
type JoinedBranch struct {
	Conversation Conversation
	Seq          int64
}

// JoinedBranches returns the branches that have joined a conversation, in order; those of a fork's parents as far as the
// fork begins with them.
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
			if err != nil && !errors.Is(err, ErrNotFound) { // somebody may have deleted it
				return nil, err
			}
			if err == nil {
				joined = append(joined, JoinedBranch{branch, entry.Seq})
			}
		}
	}
	return joined, nil
}

// deleteBranches removes the branches of a conversation's runs: those first that go on from others.
func (l *Log) deleteBranches(ctx context.Context, id string) error {
	conversation, err := l.Conversation(ctx, id)
	if err != nil {
		return nil // the deletion itself says so
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
