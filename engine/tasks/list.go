package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	continuo "github.com/continuo-log/continuo"
)

// Query selects a page of tasks, the newest change first.
type Query struct {
	Scope  continuo.Scope
	State  State                       // "": all
	Limit  int                         // at least 1
	Before continuo.ConversationCursor // by ListedAt
}

// maxExamined bounds how many tasks are read to fill a page of tasks in one state.
const maxExamined = 500

// List lists tasks, the newest change first, without their findings. It returns where the next page begins, nil for
// none; a page of tasks in one state may have fewer tasks than its limit and be followed by others.
func (tk *Tasks) List(ctx context.Context, query Query) (found []Status, next *continuo.ConversationCursor, err error) {
	found = []Status{}
	batch := query
	batch.Limit++ // one more, to know whether there is a next page
	for examined := 0; ; {
		page, err := tk.page(ctx, batch)
		if err != nil {
			return nil, nil, err
		}
		for _, status := range page {
			if examined++; len(found) == query.Limit || examined > maxExamined {
				return found, &batch.Before, nil
			}
			batch.Before = continuo.ConversationCursor{UpdatedAt: status.ListedAt, ID: status.ConversationID}
			if query.State == "" || status.State == query.State {
				found = append(found, status)
			}
		}
		if len(page) < batch.Limit {
			return found, nil, nil
		}
	}
}

// page lists tasks in any state: it reads the record and the agents of each task.
func (tk *Tasks) page(ctx context.Context, query Query) ([]Status, error) {
	found, err := tk.log.Conversations(ctx, continuo.ConversationQuery{
		ProjectID: query.Scope.ProjectID, UserID: query.Scope.UserID, Kind: continuo.KindTask, Limit: query.Limit, Before: query.Before,
	})
	if err != nil {
		return nil, err
	}
	tasks := []Status{}
	for _, conversation := range found {
		status, err := tk.listedTask(ctx, conversation)
		if errors.Is(err, errMissingRecord) {
			status, err = newStatus(conversation), nil // included, so that paging continues after it
			status.State = StateFailed
		}
		if err != nil {
			return nil, err
		}
		status.Findings = nil
		tasks = append(tasks, *status)
	}
	return tasks, nil
}

// listedTask is the state of a task by its record and its agents' conversations. The task's whole log is read only
// where those conversations do not match the deployed agents: one was deleted, or lost the metadata that names its
// task.
func (tk *Tasks) listedTask(ctx context.Context, conversation continuo.Conversation) (*Status, error) {
	status, redacted := newStatus(conversation), false
	for entry, err := range tk.log.Read(ctx, conversation, continuo.Range{From: 1, To: 1}) {
		if err != nil {
			return nil, err
		}
		if entry.TaskEvent == nil || entry.TaskEvent.Kind != continuo.TaskCreated {
			return tk.taskStatus(ctx, conversation)
		}
		redacted = entry.Redacted != nil
		if err := status.readRecord(entry); err != nil {
			return nil, fmt.Errorf("task %s: entry %d: %w", status.ID, entry.Seq, err)
		}
	}
	if conversation.LastSeq == 0 {
		return nil, fmt.Errorf("task %s: %w", status.ID, errMissingRecord)
	}
	if conversation.LastSeq == 1 {
		status.deriveState(redacted)
		return status, nil
	}
	all, err := tk.agentsOf(ctx, status)
	if err != nil {
		return nil, err
	}
	if !all {
		return tk.taskStatus(ctx, conversation)
	}
	status.deriveState(redacted)
	return status, nil
}

// agentsOf finds the agents of a task by their conversations, in the order of their creation, and reports whether
// these are all that were deployed.
func (tk *Tasks) agentsOf(ctx context.Context, status *Status) (all bool, err error) {
	deployed, err := tk.log.Mark(ctx, status.ConversationID, deploymentsMark)
	if err != nil && !errors.Is(err, continuo.ErrNotFound) {
		return false, err
	}
	var found []continuo.Conversation
	for _, archived := range []bool{false, true} {
		page, err := tk.log.Conversations(ctx, continuo.ConversationQuery{
			ProjectID: status.Scope.ProjectID, Kind: continuo.KindAgent, Labels: map[string]string{"task_id": status.ID}, Archived: archived, Limit: maxDeployed,
		})
		if err != nil {
			return false, err
		}
		found = append(found, page...)
	}
	if int64(len(found)) != deployed.Part {
		return false, nil
	}
	slices.SortFunc(found, func(a, b continuo.Conversation) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	for _, conversation := range found {
		agent, _, err := tk.agentOf(ctx, conversation)
		if err != nil {
			return false, err
		}
		status.Agents = append(status.Agents, *agent)
	}
	return true, nil
}

// deploymentsMark is the mark of a task's conversation that counts its agents: Seq is the entry of the newest
// deployment, and Part their number. It is outdated where a process ended before it was updated, or after two
// concurrent deployments.
const deploymentsMark = "deployments"
