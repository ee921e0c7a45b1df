package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/workflow"
)

type runListCommand struct {
	State        *string `enum:"running,waiting,failed,stopped,finished,cancelled" help:"Only runs of this state: running, waiting, failed, stopped, finished or cancelled."`
	Workflow     string  `placeholder:"WORKFLOW" help:"Only runs of this workflow."`
	Conversation string  `placeholder:"CONV" help:"Only runs in this conversation: id, key or @1."`
	listing
}

func (runListCommand) Help() string {
	return `Lists the runs of the project, the newest first. In a list of all, the first column is a short name that every command takes instead of the id.

Examples:

    continuo run list
    continuo run list --state waiting
    continuo run list --workflow report --limit 0 --json | jq -r '.data[].id'`
}

// Run prints the list.
func (l *runListCommand) Run(ctx context.Context, a *app, w *services) error {
	query := continuo.RunQuery{WorkflowID: l.Workflow}
	if l.State != nil {
		query.State = continuo.RunState(*l.State)
	}
	if l.Conversation != "" {
		conversation, err := w.find(ctx, l.Conversation)
		if err != nil {
			return err
		}
		query.ConversationID = conversation.ID
	}
	found, more, err := w.runs(ctx, query, l.Limit)
	if err != nil {
		return err
	}
	listed, err := w.listedRuns(ctx, found)
	if err != nil {
		return err
	}
	return showList(a, l.listing, found, more, func() {
		a.note("No such runs in project %s. Begin one with: continuo run start example", w.settings.Project)
	}, func() { a.printRuns(listed, query == continuo.RunQuery{}) })
}

// listedRun is a run as the list shows it.
type listedRun struct {
	status       engine.RunStatus // nodes only if the run is in progress
	conversation string           // its key, or the beginning of its id
}

// listedRuns looks up what the list shows of runs: the names of their conversations, and the state of those in progress.
func (w *services) listedRuns(ctx context.Context, found []continuo.Run) ([]listedRun, error) {
	names := map[string]string{}
	listed := make([]listedRun, len(found))
	for i, run := range found {
		listed[i] = listedRun{status: engine.RunStatus{Run: run}}
		if run.State == continuo.RunRunning || run.State == continuo.RunWaiting {
			status, err := w.engine.Runs.Get(ctx, w.scope(), run.ID)
			if err != nil && !errors.Is(err, continuo.ErrNotFound) { // it may have been deleted in the meantime
				return nil, err
			}
			if err == nil {
				listed[i].status = *status
			}
		}
		if names[run.ConversationID] == "" {
			names[run.ConversationID] = w.shortName(ctx, run.ConversationID)
		}
		listed[i].conversation = names[run.ConversationID]
	}
	return listed, nil
}

// shortName is a conversation's key, or else the beginning of its id.
func (w *services) shortName(ctx context.Context, id string) string {
	conversation, err := w.engine.Conversations.Conversation(ctx, id)
	if err == nil && conversation.Key != "" {
		return term.OneLine(conversation.Key, 24)
	}
	return term.Fit(id, 18)
}

// printRuns prints a list of runs; numbered ones have short names.
func (a *app) printRuns(listed []listedRun, numbered bool) {
	t := a.table(">", "run", "state", "began", "conversation", "step", "workflow")
	now := time.Now()
	for i, run := range listed {
		short := ""
		if numbered {
			short = "@" + strconv.Itoa(i+1)
		}
		view := runView{status: run.status, paint: a.paint}
		state := view.runPaint()(string(run.status.State))
		if isAbandoned(run.status, now) {
			state = a.paint.Yellow(abandoned)
		}
		t.Add(
			a.paint.Dim(short), a.paint.Cyan(run.status.ID), state, term.Time(run.status.StartedAt),
			run.conversation, stepAt(run.status), run.status.WorkflowID,
		)
	}
	a.printTable(t, a.width)
	for _, run := range listed {
		if isAbandoned(run.status, now) {
			a.note("%s", nextCommand(run.status, now))
		}
	}
}

// stepAt is the current step of a run; "" for none.
func stepAt(status engine.RunStatus) string {
	for _, node := range status.Nodes {
		if node.State == workflow.NodeRunning || node.State == workflow.NodeRetrying || node.State == workflow.NodeWaiting {
			return node.ID
		}
	}
	return ""
}
