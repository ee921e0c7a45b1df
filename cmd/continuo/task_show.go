package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/task"
)

type taskShowCommand struct {
	ID   string `arg:"" optional:"" name:"task" help:"Which one: id, the beginning of an id, or @1. Default: the newest."`
	JSON bool   `help:"Write JSON, as GET /api/tasks/ID does."`
}

func (taskShowCommand) Help() string {
	return `Shows the status of a task, its agents and their findings. continuo task prompt shows the prompt that an agent gets, continuo task logs the output of an agent.

Examples:

    continuo task show
    continuo task show @2
    continuo task show --json | jq .agents`
}

// Run prints the status.
func (s *taskShowCommand) Run(ctx context.Context, a *app, w *services) error {
	status, err := w.findTask(ctx, s.ID)
	if err != nil {
		return err
	}
	return a.show(s.JSON, status, func() { a.printTask(*status) })
}

func (a *app) printTask(status engine.TaskStatus) {
	a.print("%s", a.paint.Bold(aboutTask(status)))
	t := a.table()
	t.Fact("id", status.ID)
	t.Fact("status", a.taskState(status.State))
	t.Fact("priority", string(status.Task.Priority))
	t.Fact("folder", term.OneLine(status.Task.ClientCwd, 200))
	t.Fact("explained by", contextText(status.Task))
	t.Fact("kept in", status.ConversationID)
	t.Fact("created", term.Time(status.CreatedAt))
	t.Fact("updated", term.Time(status.UpdatedAt))
	a.printTable(t, a.width)
	a.printDeployed(status.Agents)
	for i, finding := range status.Findings {
		if i == 0 {
			a.print("\n%s", a.paint.Dim("findings"))
		}
		a.print("  %s %s", a.paint.Bold(fmt.Sprintf("%s, %s:", finding.Type, finding.Severity)), a.shown(finding.Message))
	}
	if len(status.Agents) == 0 && status.State != engine.TaskRedacted {
		a.print("\n%s", a.paint.Dim("Set an agent to work with: continuo task deploy "+status.ID))
	}
}

// contextText summarizes a task's context: 3 messages of conv_…, 2 files, 1 criterion.
func contextText(of task.Task) string {
	var words []string
	c := of.Context
	if history := c.ConversationHistory; history != nil {
		text := term.Count(history.TotalMessages, "message")
		if of.Source != nil {
			text += " of " + of.Source.ConversationID
		}
		words = append(words, text)
	}
	if c.BackgroundContext != "" {
		words = append(words, "background")
	}
	for _, list := range []struct {
		items []string
		noun  string
	}{
		{c.ExpectedDeliverables, "deliverable"},
		{c.SuccessCriteria, "success condition"},
		{c.Constraints, "constraint"},
		{c.RelevantFiles, "file"},
		{c.RelatedDocumentation, "document"},
	} {
		if len(list.items) > 0 {
			words = append(words, term.Count(len(list.items), list.noun))
		}
	}
	return strings.Join(words, ", ")
}

// printDeployed prints the agents of a task.
func (a *app) printDeployed(agents []engine.DeployedAgent) {
	if len(agents) == 0 {
		return
	}
	a.print("\n%s", a.paint.Dim("agents"))
	t := a.table()
	for _, agent := range agents {
		t.Add(" ", a.paint.Cyan(agent.ID), term.OneLine(agent.Type, 40), a.taskState(agent.State), term.Time(agent.StartedAt), term.OneLine(agent.Reason, 300))
	}
	a.printTable(t, a.width)
}

type taskPromptCommand struct {
	ID string `arg:"" optional:"" name:"task" help:"Which one: id, the beginning of an id, or @1. Default: the newest."`
}

func (taskPromptCommand) Help() string {
	return `Writes the prompt that an agent gets for a task: the same bytes each time, for agents that are started by hand.

Examples:

    continuo task prompt
    continuo task prompt @2 | my-agent --print`
}

// Run writes the prompt.
func (p *taskPromptCommand) Run(ctx context.Context, a *app, w *services) error {
	status, err := w.findTask(ctx, p.ID)
	if err != nil {
		return err
	}
	prompt, err := status.Prompt()
	if err != nil {
		return err
	}
	a.text(prompt)
	return nil
}
