package main

import (
	"cmp"
	"maps"
	"os/exec"
	"slices"

	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/acp"
	"github.com/continuo-log/continuo/model/command"
)

// addConnectors adds the connectors to the models. They stand behind nothing that deals with trouble: a program
// that has failed may have done things, so that it is not started again, and it may think for long in silence.
func (w modelWiring) addConnectors(settings *config.Config, models map[string]engine.Upstream) {
	for name, c := range settings.Connectors {
		models[name] = engine.Upstream{Model: w.telemetry.model(connector(c, settings.Turn))}
	}
}

// connector makes the model of a connector. Nothing is started yet.
func connector(c config.ConnectorConfig, limits config.TurnConfig) model.Model {
	timeout := cmp.Or(c.Timeout, limits.Timeout)
	if len(c.ACP) > 0 {
		return acp.New(acp.Options{
			Name: c.Name, Command: c.ACP, Dir: c.Dir, Env: envOf(c.Env), Allow: c.Permissions == config.PermissionsAllow,
			Timeout: timeout, MaxOutput: c.MaxOutputBytes, Version: readVersion().Version, Setting: "connectors." + c.Name + ".acp",
		})
	}
	return command.New(command.Options{
		Name: c.Name, Command: c.Command, Argument: c.Prompt == config.PromptArgument, Dir: c.Dir, Env: envOf(c.Env),
		Timeout: timeout, MaxOutput: c.MaxOutputBytes, Setting: "connectors." + c.Name + ".command",
	})
}

// envOf writes variables as NAME=value, in order.
func envOf(variables map[string]string) []string {
	var env []string
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		env = append(env, name+"="+variables[name])
	}
	return env
}

// connectors checks that the connectors' programs are there, without starting them.
func (d *diagnosis) connectors(settings *config.Config) {
	for _, name := range slices.Sorted(maps.Keys(settings.Connectors)) {
		c := settings.Connectors[name]
		program, setting := c.Command, "command"
		if len(c.ACP) > 0 {
			program, setting = c.ACP, "acp"
		}
		if _, err := exec.LookPath(program[0]); err != nil {
			d.add("connector", bad, "%s: its program cannot be found: %s; install it, or correct connectors.%s.%s", name, err, name, setting)
			continue
		}
		d.add("connector", good, "%s: %s %s", name, setting, program[0])
	}
}
