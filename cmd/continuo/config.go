package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/window"
)

type configCommand struct {
	Get    configGetCommand    `cmd:"" help:"Print a setting, or all that are not the default."`
	Set    configSetCommand    `cmd:"" help:"Change a setting in the settings file."`
	Check  configCheckCommand  `cmd:"" help:"Check a settings file."`
	Schema configSchemaCommand `cmd:"" help:"Print the JSON Schema of settings files, for editors."`
}

type configGetCommand struct {
	Key  string `arg:"" optional:"" name:"setting" help:"The setting, such as context.max_messages. Default: all that are not the default."`
	JSON bool   `help:"Write JSON: {key, value, default, origin, allowed, environment, doc}, of several a list."`
}

func (configGetCommand) Help() string {
	return `Prints the value that is in force, from whichever source it comes: the file, the environment, a flag or the default. Where it comes from goes to standard error.

Examples:

    continuo config get model
    continuo config get models.gpt.context_window
    continuo config get --json | jq -r '.[].key'`
}

// shownSetting is a setting in JSON output.
type shownSetting struct {
	Key         string `json:"key"`
	Value       string `json:"value"`
	Default     string `json:"default"`
	Origin      string `json:"origin"`
	Allowed     string `json:"allowed"`
	Environment string `json:"environment,omitempty"`
	Doc         string `json:"doc"`
}

func showSetting(s config.Setting) shownSetting {
	return shownSetting{s.Key, s.Value, s.Default, s.Origin.String(), s.Allowed, s.Env, s.Doc}
}

// Run prints the values.
func (c *configGetCommand) Run(a *app) error {
	settings, err := a.loadSettings()
	if err != nil {
		return err
	}
	if c.Key == "" {
		return c.all(a, settings)
	}
	for _, s := range settings.Settings() {
		if s.Key == c.Key {
			return a.show(c.JSON, showSetting(s), func() {
				a.print("%s", s.Value)
				a.note("(%s)", s.Origin)
			})
		}
	}
	if err := config.CheckKey(c.Key); err != nil {
		return &usageError{err}
	}
	return usage("%s: there is no such entry in the settings", term.OneLine(c.Key, 100)) // a key of a model, say, that is not there
}

func (c *configGetCommand) all(a *app, settings *config.Config) error {
	given := []shownSetting{}
	for _, s := range settings.Settings() {
		if s.Origin.Kind != config.FromDefault {
			given = append(given, showSetting(s))
		}
	}
	return a.show(c.JSON, given, func() {
		if len(given) == 0 {
			a.note("Every setting has its default. continuo doctor lists them; continuo init writes a file.")
			return
		}
		t := a.table("setting", "value", "from")
		for _, s := range given {
			t.Add(s.Key, term.OneLine(s.Value, 60), s.Origin)
		}
		a.printTable(t, a.width)
	})
}

type configSetCommand struct {
	Key   string  `arg:"" name:"setting" help:"The setting, such as context.max_messages or models.gpt.context_window."`
	Value *string `arg:"" optional:"" help:"Its value, as a flag would have it, or behind the setting and =; the items of a list are separated by commas."`
	// More are settings, each followed by its value.
	More []string `arg:"" optional:"" help:"More settings, each with its value, that are changed together."`
}

func (configSetCommand) Help() string {
	return `Changes lines of the settings file, one for each setting, and keeps the others, with their comments; a line that is commented out is where the setting is written. The file is --config, or the one that is in force; without one, ./continuo.yaml is made. A value that is not allowed is refused, and the file stays as it is. Settings that need each other, as the url and the secret of a webhook, are given together.

Examples:

    continuo config set context.max_messages 40
    continuo config set tools.deny fs.read,fs.list
    continuo config set models.gpt.reasoning_effort high
    continuo config set models.gpt.input_price 2 models.gpt.output_price 8`
}

// assignment is a setting and the value that it gets.
type assignment struct{ key, value string }

// assignments reads the arguments: settings, each followed by its value or by = and its value.
func (c *configSetCommand) assignments() (all []assignment, err error) {
	words := []string{c.Key}
	if c.Value != nil {
		words = append(words, *c.Value)
	}
	for words = append(words, c.More...); len(words) > 0; {
		key, value, isGiven := strings.Cut(words[0], "=")
		if words = words[1:]; !isGiven {
			if len(words) == 0 {
				return nil, usage("%s: <value> is missing; see continuo config set --help", term.OneLine(key, 100))
			}
			value, words = words[0], words[1:]
		}
		all = append(all, assignment{key, value})
	}
	return all, nil
}

// Run changes the file.
func (c *configSetCommand) Run(a *app) error {
	all, err := c.assignments()
	if err != nil {
		return err
	}
	name := a.settingsFile()
	data, err := os.ReadFile(name)
	if err != nil && !(errors.Is(err, fs.ErrNotExist) && a.globals.Config == "") {
		return fmt.Errorf("read settings: %w", err)
	}
	for _, one := range all {
		if data, err = config.Set(data, one.key, one.value); err != nil {
			return &usageError{fmt.Errorf("%s: %w", name, err)}
		}
	}
	if err := a.replaceSettings(name, data); err != nil {
		return err
	}
	for _, one := range all {
		a.note("%s: %s is now %s", name, one.key, term.OneLine(one.value, 100))
	}
	settings, err := a.loadSettings()
	if err != nil {
		return err
	}
	for _, one := range all {
		for _, s := range settings.Settings() {
			if s.Key == one.key && s.Origin.Kind != config.FromFile {
				a.note("%s is not in force: %s has another value.", one.key, s.Origin)
			}
		}
	}
	return nil
}

// settingsFile is the file that set changes.
func (a *app) settingsFile() string {
	if a.globals.Config != "" {
		return a.globals.Config
	}
	if found := config.FindFile(a.env); found != "" {
		return found
	}
	return "continuo.yaml"
}

// replaceSettings writes a file in place of another, if its settings are sound.
func (a *app) replaceSettings(name string, text []byte) error {
	if link, err := filepath.EvalSymlinks(name); err == nil {
		name = link
	}
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(name); err == nil {
		mode = info.Mode().Perm()
	}
	file, err := os.CreateTemp(filepath.Dir(name), ".continuo-*.yaml")
	if err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	defer func() { _ = os.Remove(file.Name()) }() // it is gone once renamed
	_, err = file.Write(text)
	if err = errors.Join(err, file.Chmod(mode), file.Close()); err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	if _, err := config.Load(config.Options{File: file.Name(), Env: a.env, Views: window.Names()}); err != nil {
		return &usageError{config.Renamed(err, file.Name(), name)}
	}
	if err := os.Rename(file.Name(), name); err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	return nil
}

type configCheckCommand struct {
	File string `arg:"" optional:"" help:"The file. Default: --config, or the one that is in force."`
}

func (configCheckCommand) Help() string {
	return `Reads the file, the environment and the flags as every command does, and prints each error with its line, and hints about what is allowed but probably not meant. Nothing is opened or asked; continuo doctor goes further.

Examples:

    continuo config check
    continuo config check deploy/continuo.yaml`
}

// Run checks the file.
func (c *configCheckCommand) Run(a *app) error {
	if c.File != "" {
		a.globals.Config = c.File
	}
	settings, err := a.loadSettings()
	if err != nil {
		return err
	}
	for _, hint := range settings.Hints() {
		a.note("%s %s", a.notePaint.Yellow("hint:"), hint)
	}
	if settings.File == "" {
		a.print("There is no settings file: every setting has its default, or comes from the environment or a flag.")
		return nil
	}
	a.print("%s: sound", settings.File)
	return nil
}

type configSchemaCommand struct{}

func (configSchemaCommand) Help() string {
	return `Prints the JSON Schema by which editors complete and check a settings file. The first line of the file names it:

    ` + config.SchemaLine + `
Examples:

    continuo config schema > ` + config.SchemaName
}

// Run prints the schema.
func (configSchemaCommand) Run(a *app) error {
	a.text(string(config.JSONSchema()))
	return nil
}
