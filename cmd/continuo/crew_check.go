package main

import (
	"fmt"

	"github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/internal/term"
)

type crewCheckCommand struct {
	Files []string `arg:"" name:"file" help:"Which files."`
}

func (crewCheckCommand) Help() string {
	return `Checks crew files as a server would, the names of connectors, models and tools too, and prints every error as file:line:column: message. The exit code is then 2. It needs no server and opens no store.

Examples:

    continuo crew check crews/garden.yaml
    continuo crew check crews/*.yaml`
}

// Run checks the files.
func (c *crewCheckCommand) Run(a *app) error {
	settings, err := a.loadSettings()
	if err != nil {
		return err
	}
	known := newCrewFolder(settings).known
	return a.checkFiles("crew", c.Files, func(file string, text []byte) ([]string, error) {
		parsed, err := crew.Parse(file, text, known)
		if err != nil {
			return nil, err
		}
		return []string{fmt.Sprintf("%s is sound: %s", parsed.ID, term.Count(len(parsed.Roles), "role"))}, nil
	})
}
