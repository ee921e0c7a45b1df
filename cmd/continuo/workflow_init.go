package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/workflow"
)

type workflowInitCommand struct {
	File string `arg:"" optional:"" help:"Where to write it. Default: example.yaml in the folder of workflows."`
}

func (workflowInitCommand) Help() string {
	return `Writes the example, which explains each key, as a workflow of your own; its id is the name of the file. Its JSON Schema, workflow.schema.json, is written next to it; its first line names the schema for editors. An existing file is not changed.

Examples:

    continuo workflow init
    continuo workflow init workflows/report.yaml`
}

// Run writes the file.
func (i *workflowInitCommand) Run(a *app) error {
	folder, err := a.workflows()
	if err != nil {
		return err
	}
	file := i.File
	if file == "" {
		file = filepath.Join(folder.dir, "example.yaml")
	}
	text, id := exampleFor(file)
	if err := a.writeWithSchema(file, text, workflow.Schema(), "workflow.schema.json"); err != nil {
		return err
	}
	a.print("%s", file)
	if inside, err := filepath.Rel(folder.dir, file); err == nil && filepath.Dir(inside) == "." {
		a.note("Change it, check it with: continuo workflow check %s, and run it with: continuo run start %s", file, id)
	} else {
		a.note("Change it, and check it with: continuo workflow check %s. Runs are started of those in the folder %s (workflows.dir).", file, folder.dir)
	}
	return nil
}

var (
	exampleID  = regexp.MustCompile(`(?m)^id: example\b`)
	workflowID = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)
)

// exampleFor is the example under the id that a file's name gives it.
func exampleFor(file string) (text []byte, id string) {
	id = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	if !workflowID.MatchString(id) {
		id = "example"
	}
	return exampleID.ReplaceAll(workflow.Example(), []byte("id: "+id)), id
}

// writeWithSchema writes a new file. Its first line names the schema, which is written beside it, so that editors need
// no network. An existing schema is left unchanged.
func (a *app) writeWithSchema(file string, text, schema []byte, schemaName string) error {
	if err := writeNew(file, append([]byte("# yaml-language-server: $schema="+schemaName+"\n"), text...)); err != nil {
		return err
	}
	schemaFile := filepath.Join(filepath.Dir(file), schemaName)
	have, err := os.ReadFile(schemaFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = writeNew(schemaFile, schema)
	case err == nil && !bytes.Equal(have, schema):
		a.note("%s was there already and is not the schema of this version, by which editors would check the file: remove it, and the next init writes it again.", schemaFile)
	}
	if err != nil {
		return fmt.Errorf("write the schema for editors: %w", err)
	}
	return nil
}

// writeNew writes a new file, and creates its folder.
func writeNew(name string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return fmt.Errorf("write a file: %w", err)
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s: %w; give another name", name, continuo.ErrExists)
	}
	if err != nil {
		return fmt.Errorf("write a file: %w", err)
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Close())
}
