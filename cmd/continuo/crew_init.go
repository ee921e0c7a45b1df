package main

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/internal/yamlform"
)

type crewInitCommand struct {
	Name string `arg:"" optional:"" default:"example" help:"The crew's id, which is its file's name in the folder of crews. Default: example."`
}

func (crewInitCommand) Help() string {
	return `Writes the example, which explains each key, as a crew of your own, to NAME.yaml in the folder crews.dir. Its JSON Schema, crew.schema.json, is written next to it; its first line names the schema for editors. An existing file is not changed. The crew works without an API key: the built-in demo model answers for its roles.

Examples:

    continuo crew init
    continuo crew init garden`
}

// Run writes the file.
func (i *crewInitCommand) Run(a *app) error {
	settings, err := a.loadSettings()
	if err != nil {
		return err
	}
	switch {
	case !yamlform.IsID(i.Name):
		return &usageError{fmt.Errorf("a crew cannot be called %s: ids are a small letter, then small letters, digits, _ and -, 64 at most, and not schema", yamlform.Quoted(i.Name))}
	case settings.Crews.Dir == "":
		return fmt.Errorf("%w: there is no folder of crews: set crews.dir", continuo.ErrInvalid)
	}
	file := filepath.Join(settings.Crews.Dir, i.Name+".yaml")
	// The folder may have a file of another name with the same id, and then neither could be used.
	if one, err := (crewFolder{dir: settings.Crews.Dir, known: crew.Known{Any: true}}).Crew(i.Name); err == nil {
		return fmt.Errorf("crew %s: %w in the folder %s; give another name", one.ID, continuo.ErrExists, settings.Crews.Dir)
	} else if !errors.Is(err, continuo.ErrNotFound) {
		return fmt.Errorf("crew %s: %w in the folder %s, and is not right: continuo crew check says why", i.Name, continuo.ErrExists, settings.Crews.Dir)
	}
	text := exampleID.ReplaceAll(crew.Example(), []byte("id: "+i.Name))
	text = bytes.ReplaceAll(text, []byte("crew run example"), []byte("crew run "+i.Name))
	if err := a.writeWithSchema(file, text, crew.Schema(), "crew.schema.json"); err != nil {
		return err
	}
	a.print("%s", file)
	a.note("Change it, check it with: continuo crew check %s, and run it with: continuo crew run %s \"Make a plan for a small garden.\"", file, i.Name)
	return nil
}

type crewSchemaCommand struct{}

func (crewSchemaCommand) Help() string {
	return `Writes the JSON Schema of crew files. An editor that supports it completes keys and shows their meaning; the first line of a file names it: # yaml-language-server: $schema=crew.schema.json

Examples:

    continuo crew schema > crews/crew.schema.json`
}

// Run writes the schema.
func (crewSchemaCommand) Run(a *app) error {
	a.text(string(crew.Schema()))
	return nil
}
