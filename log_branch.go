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
