package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/window"
	"github.com/continuo-log/continuo/workflow"
)

// workflowFolder finds workflows in the files of a folder. It is safe for concurrent use.
type workflowFolder struct {
	dir   string // "": none are read
	known workflow.Known
	// builtIn is the text of a workflow that exists too unless the folder has its id; nil for none.
	builtIn []byte
}

// newWorkflowFolder is the folder of the settings, with the program's example.
func newWorkflowFolder(settings *config.Config) workflowFolder {
	return workflowFolder{
		dir: settings.Workflows.Dir,
		known: workflow.Known{
			Agents: append([]string{}, agentIDs(settings)...), Models: settings.AnswerNames(), Views: window.Names(), Tools: knownTools(settings),
		},
		builtIn: workflow.Example(),
	}
}

// knownTools are the tools that steps and roles may name: the built-in ones, and all of the MCP servers. Nil if the
// section tools is invalid, which is reported elsewhere.
func knownTools(settings *config.Config) []string {
	own, err := builtIn(settings, nil, nil, nil)
	if err != nil {
		return nil
	}
	names := toolNames(own)
	for _, server := range slices.Sorted(maps.Keys(settings.MCP.Servers)) {
		names = append(names, server+".*")
	}
	return names
}

func (w workflowFolder) files() folder[*workflow.Workflow] {
	return folder[*workflow.Workflow]{
		noun: "workflow", setting: "workflows.dir", dir: w.dir, builtIn: w.builtIn,
		parse: func(file string, text []byte) (*workflow.Workflow, error) { return workflow.Parse(file, text, w.known) },
		id:    func(one *workflow.Workflow) string { return one.ID },
	}
}

// Workflow finds one by id. If its file is invalid, the problems say why.
func (w workflowFolder) Workflow(id string) (*workflow.Workflow, error) { return w.files().find(id) }

// Workflows lists the valid ones by id, with the problems of the others.
func (w workflowFolder) Workflows() ([]*workflow.Workflow, error) { return w.files().list() }

// ids lists the valid ones.
func (w workflowFolder) ids() (ids []string) {
	found, _ := w.Workflows() // the errors of others are reported elsewhere
	for _, one := range found {
		ids = append(ids, one.ID)
	}
	return ids
}

// countOf formats the number of names, and the names.
func countOf(names []string) string {
	return term.Number(len(names)) + " (" + term.OneLine(strings.Join(names, ", "), 60) + ")"
}
