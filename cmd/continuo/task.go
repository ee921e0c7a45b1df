package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/term"
)

type taskCommand struct {
	Create taskCreateCommand `cmd:"" help:"Create a task, with the conversation that explains it."`
	List   taskListCommand   `cmd:"" help:"List tasks, the newest change first."`
	Show   taskShowCommand   `cmd:"" help:"Show the status of a task."`
	Prompt taskPromptCommand `cmd:"" help:"Show the prompt that an agent gets for a task."`
	Deploy taskDeployCommand `cmd:"" help:"Deploy an agent on a task, and show its output."`
	Logs   taskLogsCommand   `cmd:"" help:"Show the output of an agent."`
	Kill   taskKillCommand   `cmd:"" help:"End an agent's work permanently."`
}

// taskPage is the page size of a query for tasks, tasksSearched how many tasks are searched for the beginning of an id.
const (
	taskPage      = 100
	tasksSearched = 1000
)

// tasks lists the tasks for which a condition holds, the most recently changed first: at most limit (0: all) among at
// most most that are read. It returns whether there are more.
func (w *services) tasks(ctx context.Context, limit, most int, holds func(engine.TaskStatus) bool) (found []engine.TaskStatus, more bool, err error) {
	found = []engine.TaskStatus{}
	query := engine.TaskQuery{Scope: w.scope(), Limit: taskPage}
	for looked := 0; ; {
		page, next, err := w.engine.Tasks.List(ctx, query)
		if err != nil {
			return nil, false, fmt.Errorf("list tasks: %w", err)
		}
		for _, status := range page {
			if !holds(status) {
				continue
			}
			if limit > 0 && len(found) == limit {
				return found, true, nil
			}
			found = append(found, status)
		}
		if looked += len(page); next == nil || most > 0 && looked >= most {
			return found, false, nil
		}
		query.Before = *next
	}
}

// anyTask holds of every task.
func anyTask(engine.TaskStatus) bool { return true }

// findTask finds the task that an argument names: an id or its beginning, @1, its position in the list, or, if none is
// named, the newest. It has its findings.
func (w *services) findTask(ctx context.Context, name string) (*engine.TaskStatus, error) {
	if name == "" {
		name = "@1"
	}
	id := name
	if position, ok := strings.CutPrefix(name, "@"); ok {
		found, err := w.nthTask(ctx, name, position)
		if err != nil {
			return nil, err
		}
		id = found.ID
	}
	status, err := w.engine.Tasks.Get(ctx, w.scope(), id)
	if !errors.Is(err, continuo.ErrNotFound) {
		return status, err
	}
	found, _, err := w.tasks(ctx, 0, tasksSearched, func(status engine.TaskStatus) bool { return strings.HasPrefix(status.ID, id) })
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, status := range found {
		ids = append(ids, status.ID)
	}
	if id, err = uniqueMatch("task", name, w.settings.Project, "continuo task list shows what there is", ids); err != nil {
		return nil, err
	}
	return w.engine.Tasks.Get(ctx, w.scope(), id)
}

// uniqueMatch is the one id that begins with a name; hint says where to find one.
func uniqueMatch(what, name, project, hint string, ids []string) (string, error) {
	switch len(ids) {
	case 0:
		return "", fmt.Errorf("%s %s: %w in project %s; %s", what, term.OneLine(name, 60), continuo.ErrNotFound, project, hint)
	case 1:
		return ids[0], nil
	}
	return "", usage("%s %s: %s begin so, such as %s and %s; write more of the id", what, name, term.Count(len(ids), "id"), ids[0], ids[1])
}

// nthTask finds the task at a position of the list, from 1.
func (w *services) nthTask(ctx context.Context, name, position string) (engine.TaskStatus, error) {
	n, err := strconv.Atoi(position)
	if err != nil || n < 1 {
		return engine.TaskStatus{}, usage("task %q: @ is followed by a position in the list of tasks, such as @1", name)
	}
	found, _, err := w.tasks(ctx, n, 0, anyTask)
	if err != nil {
		return engine.TaskStatus{}, err
	}
	if len(found) < n {
		return engine.TaskStatus{}, fmt.Errorf("task %s: %w: project %s has %s", name, continuo.ErrNotFound, w.settings.Project, term.Count(len(found), "task"))
	}
	return found[n-1], nil
}

// findAgent finds the agent that an argument names: an id or its beginning, or, if none is named, the newest. With
// working only running agents are searched, and the user has to name one if there are several.
func (w *services) findAgent(ctx context.Context, name string, working bool) (*engine.DeployedAgent, error) {
	agent, err := w.engine.Tasks.Agent(ctx, w.scope(), name)
	if !errors.Is(err, continuo.ErrNotFound) {
		return agent, err
	}
	found, err := w.agents(ctx, func(agent engine.DeployedAgent) bool {
		return strings.HasPrefix(agent.ID, name) && (name != "" || !working || isAtWork(agent))
	})
	if err != nil {
		return nil, err
	}
	switch {
	case name == "" && len(found) == 0 && working:
		return nil, fmt.Errorf("%w: project %s has no agent at work; continuo task show TASK shows those of a task", continuo.ErrNotFound, w.settings.Project)
	case name == "" && len(found) == 0:
		return nil, fmt.Errorf("%w: project %s has no agent yet; set one to work with: continuo task deploy", continuo.ErrNotFound, w.settings.Project)
	case name == "" && len(found) > 1 && working:
		return nil, usage("%s are at work, such as %s and %s: name one", term.Count(len(found), "agent"), found[0].ID, found[1].ID)
	case name == "":
		return &found[0], nil
	}
	var ids []string
	for _, agent := range found {
		ids = append(ids, agent.ID)
	}
	id, err := uniqueMatch("agent", name, w.settings.Project, "continuo task show TASK shows the agents of a task", ids)
	if err != nil {
		return nil, err
	}
	return w.engine.Tasks.Agent(ctx, w.scope(), id)
}

// agents lists the agents of the newest tasks for which a condition holds, the latest started first.
func (w *services) agents(ctx context.Context, holds func(engine.DeployedAgent) bool) ([]engine.DeployedAgent, error) {
	tasks, _, err := w.tasks(ctx, 0, tasksSearched, anyTask)
	var found []engine.DeployedAgent
	for _, status := range tasks {
		for _, agent := range status.Agents {
			if holds(agent) {
				found = append(found, agent)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b engine.DeployedAgent) int { return b.StartedAt.Compare(a.StartedAt) })
	return found, err
}

// isAtWork reports whether an agent can be ended: it works, or its work waits for a program that resumes it.
func isAtWork(agent engine.DeployedAgent) bool {
	left := agent.State == engine.TaskQueued && agent.TurnID != "" // its program is gone
	return left || agent.State == engine.TaskRunning || agent.State == engine.TaskBlocked
}

type taskListCommand struct {
	Status *string `enum:"queued,running,blocked,completed,failed,killed,gone,redacted" help:"Only tasks with this status: queued, running, blocked, completed, failed, killed, gone or redacted."`
	listing
}

func (taskListCommand) Help() string {
	return `Lists the tasks of the project, the newest change first. In a list of all, the first column is a short name that every command takes instead of the id.

Examples:

    continuo task list
    continuo task list --status running
    continuo task list --limit 0 --json | jq -r '.data[].task_id'`
}

// Run prints the list.
func (l *taskListCommand) Run(ctx context.Context, a *app, w *services) error {
	found, more, err := w.tasks(ctx, l.Limit, 0, func(status engine.TaskStatus) bool { return l.Status == nil || string(status.State) == *l.Status })
	if err != nil {
		return err
	}
	rows := []engine.ListedTask{}
	for _, status := range found {
		rows = append(rows, api.TaskRow(status))
	}
	return showList(a, l.listing, rows, more, func() {
		a.note("No such tasks in project %s. Give one away with: continuo task create --description TEXT", w.settings.Project)
	}, func() { a.printTasks(found, l.Status == nil) })
}

// wideList is how many columns a list with whole ids needs.
const wideList = 110

// printTasks prints a list of tasks; numbered ones have short names. In a narrow terminal ids are as short as possible.
func (a *app) printTasks(found []engine.TaskStatus, numbered bool) {
	ids, priority := make([]string, len(found)), "priority"
	for i, status := range found {
		ids[i] = status.ID
	}
	if a.width > 0 && a.width < wideList {
		ids, priority = shortened(ids), "prio"
	}
	t := a.table(">", "task", "status", priority, "updated", "description")
	for i, status := range found {
		short := ""
		if numbered {
			short = "@" + strconv.Itoa(i+1)
		}
		t.Add(
			a.paint.Dim(short), a.paint.Cyan(ids[i]), a.taskState(status.State),
			string(status.Task.Priority), term.Time(status.UpdatedAt), aboutTask(status),
		)
	}
	a.printTable(t, a.width)
}

// aboutTask describes a task on one line.
func aboutTask(status engine.TaskStatus) string {
	return cmp.Or(term.OneLine(status.Task.Description, 200), continuo.RedactedText)
}

// shortened truncates ids to one length at which all are distinct.
func shortened(ids []string) []string {
	const least = len("task_") + 12 // ids begin with the millisecond in which they were made
	for length := least; ; length++ {
		short, whole, seen := make([]string, len(ids)), true, map[string]bool{}
		for i, id := range ids {
			short[i] = id[:min(length, len(id))]
			whole = whole && len(short[i]) == len(id)
			seen[short[i]] = true
		}
		if len(seen) == len(ids) || whole {
			return short
		}
	}
}

// taskState is the state of a task or an agent, coloured.
func (a *app) taskState(state engine.TaskState) string {
	paint := a.paint.Yellow
	switch state {
	case engine.TaskCompleted:
		paint = a.paint.Green
	case engine.TaskFailed:
		paint = a.paint.Red
	case engine.TaskRunning:
		paint = a.paint.Cyan
	}
	return paint(string(state))
}
