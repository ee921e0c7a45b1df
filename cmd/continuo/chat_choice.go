package main

import (
	"cmp"
	"context"
	"slices"

	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/window"
)

// modelName is the name of the model that answers the next message.
func (t *chatSession) modelName(agent string) string {
	return cmp.Or(t.model, t.settings.Agents[agent].Model, t.settings.DefaultModel)
}

// switchModel executes /model.
func (t *chatSession) switchModel(_ context.Context, argument string) error {
	if argument != "" {
		if err := t.chooseModel(argument); err != nil {
			return err
		}
		t.printAside("The model %s answers from the next message on.", term.OneLine(argument, 60))
		return nil
	}
	_, agent := t.modeAndAgent()
	current := t.modelName(agent)
	list := t.table()
	for _, name := range t.engine.Catalog.Models() {
		list.Add(t.mark(name == current), t.paint.Cyan(term.OneLine(name, 60)), behindModel(t.settings, name))
	}
	t.printTable(list, t.tableWidth())
	return nil
}

// mark marks the current one of a list.
func (t *chatSession) mark(current bool) string {
	if current {
		return t.paint.Cyan("›")
	}
	return " "
}

func (t *chatSession) chooseModel(name string) error {
	if _, err := t.engine.Catalog.Upstream(name); err != nil {
		return &usageError{err}
	}
	t.model = name
	return nil
}

// viewTexts say what each view is for.
var viewTexts = map[string]string{
	window.Codex:      "the newest messages with their tool outputs, long ones shortened",
	window.Continuity: "the first message and the newest ones, for long conversations",
	window.Replay:     "the newest messages with whole tool outputs, without system entries",
	"chat":            "codex, with the limits of the mode chat",
	"agent":           "codex, with the limits of the mode agent",
	"run":             "codex, with the limits of the mode run",
}

// switchView executes /view.
func (t *chatSession) switchView(_ context.Context, argument string) error {
	switch {
	case argument == "":
		list := t.table()
		for _, name := range window.Names() {
			list.Add(t.mark(name == cmp.Or(t.view, usualView)), t.paint.Cyan(name), viewTexts[name])
		}
		t.printTable(list, t.tableWidth())
		return nil
	case argument != "default" && !slices.Contains(window.Names(), argument):
		return usage("/view: given %q; allowed: %s", term.OneLine(argument, 40), oneOf(window.Names()))
	case argument == "default":
		t.view = ""
	default:
		t.view = argument
	}
	t.printAside("The view %s selects what the next request shows; /context says what that is.", cmp.Or(t.view, "of the agent, or "+usualView))
	return nil
}
