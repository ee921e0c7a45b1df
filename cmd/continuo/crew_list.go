package main

import (
	"cmp"
	"errors"

	"github.com/continuo-log/continuo/crew"
)

type crewListCommand struct {
	JSON bool `help:"Write JSON: {data}."`
}

func (crewListCommand) Help() string {
	return `Lists the crews of the folder crews.dir with their roles, in the order in which they speak, and the example that comes with the program unless the folder has one of that name. Files that are not right are told of, with what is wrong.

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
		listed := []crew.Summary{}
		for _, one := range found {
			listed = append(listed, one.Summary())
		}
		return errors.Join(a.json(map[string]any{"data": listed}), problems)
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
	words := row{{one.ID, a.paint.bold}, {"  " + oneLine(one.Name, 60), nil}}
	if one.Description != "" {
		words = append(words, cell{": " + oneLine(one.Description, 200), a.paint.dim})
	}
	a.print("%s", words.fit(a.tableWidth()-1).painted())
	t := table{}
	for i := range one.Roles {
		role := &one.Roles[i]
		t.add(plain(""), cell{role.Name, a.rolePaint(i)}, plain(oneLine(role.DisplayName, 40)), cell{speakerWords(role, model), a.paint.dim}, cell{roleWords(role), a.paint.dim})
	}
	for _, line := range t.lines(a.width) {
		a.print("%s", line)
	}
}

// speakerWords names the connector or model of a role.
func speakerWords(role *crew.Role, model string) string {
	if role.Connector != "model" {
		return role.Connector
	}
	return "model " + oneLine(cmp.Or(role.Model, model), 40)
}

// roleWords describes the special settings of a role.
func roleWords(role *crew.Role) string {
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
func (a *app) rolePaint(place int) func(string) string {
	colours := []string{"36", "33", "35", "32", "34", "96", "93", "95", "92", "94"}
	return func(text string) string { return a.paint.with(colours[place%len(colours)], text) }
}
