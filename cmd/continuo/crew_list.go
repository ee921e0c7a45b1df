package main

import (
	"cmp"
	"errors"

	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/internal/term"
)

type crewListCommand struct {
	JSON bool `help:"Write JSON: {data, …}, in the form of the API's lists."`
}

func (crewListCommand) Help() string {
	return `Lists the crews of the folder crews.dir with their roles, in the order in which they speak, and the example that comes with the program unless the folder has one of that name. Invalid files are reported with their errors.

Examples:

    continuo crew list
    continuo crew list --json | jq -r '.data[].id'`
}

// Run prints the list.
func (l *crewListCommand) Run(a *app) error {
	settings, err := a.loadSettings()
	if err != nil {
		return err
	}
	found, problems := newCrewFolder(settings).Crews()
	if l.JSON {
		list, err := api.CrewList(found, problems)
		if err != nil {
			return err
		}
		return errors.Join(a.json(list), problems)
	}
	for i, one := range found {
		if i > 0 {
			a.print("")
		}
		a.printCrewFile(one, settings.DefaultModel)
	}
	return problems
}

// printCrewFile prints a crew and its roles.
func (a *app) printCrewFile(one *crew.Crew, model string) {
	words := a.paint.Bold(one.ID) + "  " + term.OneLine(one.Name, 60)
	if one.Description != "" {
		words += a.paint.Dim(": " + term.OneLine(one.Description, 200))
	}
	a.print("%s", term.Fit(words, a.tableWidth()-1))
	t := a.table()
	for i := range one.Roles {
		role := &one.Roles[i]
		t.Add("", a.rolePaint(i)(role.Name), term.OneLine(role.DisplayName, 40), a.paint.Dim(speakerText(role, model)), a.paint.Dim(roleText(role)))
	}
	a.printTable(t, a.width)
}

// speakerText names the connector or model of a role.
func speakerText(role *crew.Role, model string) string {
	if role.Connector != "model" {
		return role.Connector
	}
	return "model " + term.OneLine(cmp.Or(role.Model, model), 40)
}

// roleText describes the special settings of a role.
func roleText(role *crew.Role) string {
	words := ""
	if role.View.Kind != "" {
		words = "view " + string(role.View.Kind)
	}
	if role.IsModerator {
		words += " · moderates"
		if role.View.Kind == "" {
			words = "moderates"
		}
	}
	return words
}

// rolePaint is the colour of a role, by its index in its crew.
func (a *app) rolePaint(index int) func(string) string {
	colours := []string{"36", "33", "35", "32", "34", "96", "93", "95", "92", "94"}
	return func(text string) string { return a.paint.With(colours[index%len(colours)], text) }
}
