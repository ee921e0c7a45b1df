package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/internal/term"
)

type doctorCommand struct {
	Online bool `help:"Also check over the network: every configured model's server and API key, the servers of recall.embeddings and recall.reranker, and the bots and the chat of telegram.crew."`
	JSON   bool `help:"Write JSON: {ok, version, checks, settings}."`
}

func (doctorCommand) Help() string {
	return `Checks the settings, the store and the models, prints every setting with its value and its origin (a file and line, a variable, a flag, or the default), and ends with its verdict. Keys are only reported as set or not set. Nothing goes over the network unless --online is given, but to the database and the bucket of the settings; in the bucket an object is written and removed. The exit code is 1 when something is wrong.

A real model is named in continuo.yaml; its key stays in the environment:

` + term.Indent(modelExample, "    ") + `

Examples:

    continuo doctor
    continuo doctor --online
    continuo doctor --json | jq -r '.settings[] | select(.origin != "default") | .key'`
}

const (
	good    = api.HealthOK
	warning = api.HealthWarning
	bad     = api.HealthFailed
)

// settingJSON is one setting in the JSON form.
type settingJSON struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
	Doc    string `json:"doc"`
}

// diagnosis is all findings of doctor.
type diagnosis struct {
	OK       bool              `json:"ok"`
	Version  versionInfo       `json:"version"`
	Checks   []api.HealthCheck `json:"checks"`
	Settings []settingJSON     `json:"settings"`
}

func (d *diagnosis) add(name string, how api.HealthStatus, format string, args ...any) {
	d.Checks = append(d.Checks, api.HealthCheck{Name: name, Status: how, Detail: fmt.Sprintf(format, args...)})
	d.OK = d.OK && how != bad
}

// Run checks everything and prints it.
func (c *doctorCommand) Run(ctx context.Context, a *app) error {
	d := &diagnosis{OK: true, Version: readVersion(), Settings: []settingJSON{}}
	d.add("version", good, "continuo %s, %s, %s", d.Version.Version, d.Version.Go, d.Version.Platform)
	settings, err := a.loadSettings()
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			d.add("settings", bad, "%s", line)
		}
	} else {
		d.settings(settings)
		d.store(ctx, settings.Store)
		d.rest(ctx, settings, a.env, c.Online)
	}
	if !c.JSON {
		d.print(a)
	} else if err := a.json(d); err != nil {
		return err
	}
	if !d.OK {
		return errSilent
	}
	return nil
}

// rest checks all but the settings and the store.
func (d *diagnosis) rest(ctx context.Context, settings *config.Config, env []string, online bool) {
	d.objects(ctx, settings)
	d.models(ctx, settings, env, online)
	d.recall(ctx, settings.Recall, env, online)
	d.connectors(settings)
	d.tools(settings)
	d.prompts(settings)
	d.agents(settings)
	d.workflows(settings)
	d.crews(ctx, settings, env, online)
	d.webhooks(ctx, settings)
}

// settings records the sources of the settings, and each setting.
func (d *diagnosis) settings(settings *config.Config) {
	from := "no settings file; ./continuo.yaml or ~/.config/continuo/continuo.yaml would be read"
	if settings.File != "" {
		from = settings.File
	}
	d.add("settings", good, "%s", from)
	for _, hint := range settings.Hints() {
		d.add("settings", warning, "%s", hint)
	}
	for _, setting := range settings.Settings() {
		d.Settings = append(d.Settings, settingJSON{setting.Key, setting.Value, setting.Origin.String(), setting.Doc})
	}
}

// print shows the settings, the findings below them, and at the end whether continuo can work with them.
func (d *diagnosis) print(a *app) {
	if len(d.Settings) > 0 {
		d.printSettings(a)
		a.print("")
	}
	problems, warnings := 0, 0
	for _, found := range d.Checks {
		sign := a.paint.Green("✔")
		switch found.Status {
		case warning:
			sign = a.paint.Yellow("!")
			warnings++
		case bad:
			sign = a.paint.Red("✘")
			problems++
		case good:
		}
		a.print("%s %s %s", sign, term.Pad(found.Name, 8), a.shown(found.Detail))
	}
	a.print("")
	switch {
	case problems > 0:
		a.print("%s %s, %s", a.paint.Red("✘"), quantity(problems, "problem"), quantity(warnings, "warning"))
	case warnings > 0:
		a.print("%s no problems, %s", a.paint.Yellow("!"), quantity(warnings, "warning"))
	default:
		a.print("%s no problems", a.paint.Green("✔"))
	}
}

func (d *diagnosis) printSettings(a *app) {
	t := a.table("setting", "value", "from")
	for _, setting := range d.Settings {
		value := term.OneLine(setting.Value, 60)
		if setting.Value == "" {
			value = a.paint.Dim("–")
		}
		origin := a.paint.Cyan(term.OneLine(setting.Origin, 80))
		if setting.Origin == "default" {
			origin = a.paint.Dim(setting.Origin)
		}
		t.Add(setting.Key, value, origin)
	}
	a.printTable(t, a.width)
}

// quantity is a number of things.
func quantity(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
