package main

import (
	"cmp"
	"maps"
	"os/exec"
	"slices"
	"time"

	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/acp"
	"github.com/continuo-log/continuo/model/command"
)

// addConnectors adds the connectors to the models. They have no retries, limits or breaker around them: a program that
// has failed may have had side effects, so that it is not started again, and it may think silently for long.
func (w modelWiring) addConnectors(settings *config.Config, models map[string]engine.Upstream) {
	for name, c := range settings.Connectors {
		atWork := func(taskID, agentID string) model.Model {
			env := []string{"CONTINUO_TASK_ID=" + taskID, "CONTINUO_AGENT_ID=" + agentID}
			return w.telemetry.model(connector(c, settings.Handoff.AgentTimeout, env...))
		}
		models[name] = engine.Upstream{Model: deployable(w.telemetry.model(connector(c, settings.Turn.Timeout)), atWork)}
	}
}

// workModel makes the model for an agent's work on a task.
type workModel func(taskID, agentID string) model.Model

// AtWork is part of engine.Connector.
func (f workModel) AtWork(taskID, agentID string) model.Model { return f(taskID, agentID) }

// deployable is a model with another one for work on tasks. A model whose agent has sessions keeps them.
func deployable(m model.Model, atWork workModel) engine.Connector {
	if agent, ok := m.(model.Sessions); ok {
		return struct {
			model.Sessions
			workModel
		}{agent, atWork}
	}
	return struct {
		model.Model
		workModel
	}{m, atWork}
}

// connector makes the model of a connector, with the usual timeout if its settings have none, and these variables
// besides its own. It starts nothing yet.
func connector(c config.ConnectorConfig, usual time.Duration, env ...string) model.Model {
	timeout, env := cmp.Or(c.Timeout, usual), append(envOf(c.Env), env...)
	if len(c.ACP) > 0 {
		return acp.New(acp.Options{
			Name: c.Name, Command: c.ACP, Dir: c.Dir, Env: env, Allow: c.Permissions == config.PermissionsAllow,
			Timeout: timeout, MaxOutput: c.MaxOutputBytes, Version: readVersion().Version, Setting: "connectors." + c.Name + ".acp",
		})
	}
	return command.New(command.Options{
		Name: c.Name, Command: c.Command, Argument: c.Prompt == config.PromptArgument, Dir: c.Dir, Env: env,
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

// connectors checks that the connectors' programs exist, without starting them.
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
