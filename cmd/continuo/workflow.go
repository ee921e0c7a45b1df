package main

import (
	"errors"
	"fmt"

	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/workflow"
)

type workflowCommand struct {
	List   workflowListCommand   `cmd:"" help:"List workflows."`
	Show   workflowShowCommand   `cmd:"" help:"Show the steps of a workflow and their order."`
	Check  workflowCheckCommand  `cmd:"" help:"Report the errors of workflow files."`
	Schema workflowSchemaCommand `cmd:"" help:"Write the JSON Schema of workflow files, for editors."`
	Init   workflowInitCommand   `cmd:"" help:"Write a commented workflow to begin with."`
}

// workflows is the folder of workflows of the settings. It opens no store.
func (a *app) workflows() (workflowFolder, error) {
	settings, err := a.loadSettings()
	if err != nil {
		return workflowFolder{}, err
	}
	return newWorkflowFolder(settings), nil
}

type workflowListCommand struct {
	JSON bool `help:"Write JSON: {data, …}, in the form of the API's lists."`
}

func (workflowListCommand) Help() string {
	return `Lists the workflows of the folder workflows.dir, and the example that comes with the program. Invalid files are reported with their errors.

Examples:

    continuo workflow list
    continuo workflow list --json | jq -r '.data[].id'`
}

// Run prints the list.
func (l *workflowListCommand) Run(a *app) error {
	folder, err := a.workflows()
	if err != nil {
		return err
	}
	found, problems := folder.Workflows()
	if l.JSON {
		list, err := api.WorkflowList(found, problems)
		if err != nil {
			return err
		}
		return errors.Join(a.json(list), problems)
	}
	t := a.table("workflow", ">steps", "name")
	for _, one := range found {
		words := term.OneLine(one.Name, 60)
		if one.Description != "" {
			words += ": " + term.OneLine(one.Description, 200)
		}
		t.Add(a.paint.Cyan(one.ID), term.Number(len(one.Nodes)), words)
	}
	a.printTable(t, a.width)
	return problems
}

type workflowShowCommand struct {
	ID     string `arg:"" name:"workflow" help:"Which one, by its id."`
	Source bool   `help:"Write the file as it is."`
	JSON   bool   `help:"Write JSON, as GET /api/workflows/ID does."`
}

func (workflowShowCommand) Help() string {
	return `Shows what a workflow needs, its steps, and their order: branches are drawn to the right of the step that they leave, ↺ leads back, ? is a decision of a person.

Examples:

    continuo workflow show example
    continuo workflow show example --source > workflows/mine.yaml`
}

// Run prints the workflow.
func (s *workflowShowCommand) Run(a *app) error {
	folder, err := a.workflows()
	if err != nil {
		return err
	}
	found, err := folder.Workflow(s.ID)
	switch {
	case err != nil:
		return err
	case s.Source:
		a.text(string(found.Text))
		return nil
	case s.JSON:
		return a.json(found.Shown())
	}
	a.printWorkflow(found)
	return nil
}

func (a *app) printWorkflow(w *workflow.Workflow) {
	a.print("%s  %s", a.paint.Bold(w.ID), term.OneLine(w.Name, 200))
	if w.Description != "" {
		for _, line := range term.Wrap(w.Description, a.tableWidth()) {
			a.print("%s", line)
		}
	}
	a.printFields("inputs", w.Inputs)
	a.print("\n%s", a.paint.Dim("steps"))
	for _, line := range drawWorkflow(w, a.paint) {
		a.print("%s", term.Fit(line, a.tableWidth()-1))
	}
	if len(w.Outputs) == 0 {
		return
	}
	a.print("\n%s", a.paint.Dim("outputs"))
	t := a.table()
	for _, binding := range w.Outputs {
		t.Add(binding.Name, a.paint.Dim(term.OneLine(binding.Value.Text, 200)))
	}
	a.printTable(t, a.tableWidth())
}

func (a *app) printFields(title string, fields []workflow.Field) {
	if len(fields) == 0 {
		return
	}
	a.print("\n%s", a.paint.Dim(title))
	t := a.table()
	for _, field := range fields {
		words := inputText(field)
		switch {
		case field.Default != nil:
			words += fmt.Sprintf(" Default: %s.", term.OneLine(jsonText(field.Default), 100))
		case field.Optional:
			words += " Optional."
		}
		t.Add(a.paint.Cyan(field.Name), words)
	}
	a.printTable(t, a.tableWidth())
}

type workflowCheckCommand struct {
	Files []string `arg:"" name:"file" help:"Which files."`
}

func (workflowCheckCommand) Help() string {
	return `Checks workflow files as a run would, the names of agents, models, views and tools too, and prints every error as file:line:column: message. The exit code is then 2.

Examples:

    continuo workflow check workflows/report.yaml
    continuo workflow check workflows/*.yaml`
}

// Run checks the files.
func (c *workflowCheckCommand) Run(a *app) error {
	folder, err := a.workflows()
	if err != nil {
		return err
	}
	return a.checkFiles("workflow", c.Files, func(file string, text []byte) ([]string, error) {
		parsed, err := workflow.Parse(file, text, folder.known)
		if err != nil {
			return nil, err
		}
		sound := fmt.Sprintf("%s is sound: %s, %s", parsed.ID, term.Count(len(parsed.Nodes), "step"), term.Count(len(parsed.Edges), "edge"))
		return append([]string{sound}, parsed.Joins()...), nil
	})
}

type workflowSchemaCommand struct{}

func (workflowSchemaCommand) Help() string {
	return `Writes the JSON Schema of workflow files. An editor that supports it completes keys and shows their meaning; the first line of a file names it: # yaml-language-server: $schema=workflow.schema.json

Examples:

    continuo workflow schema > workflows/workflow.schema.json`
}

// Run writes the schema.
func (workflowSchemaCommand) Run(a *app) error {
	a.text(string(workflow.Schema()))
	return nil
}
