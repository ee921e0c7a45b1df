package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/continuo-log/continuo/internal/nearest"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/term"
	"github.com/continuo-log/continuo/workflow"
)

// runInputs collects the inputs of a run from the flags and asks for missing ones, if there is a terminal.
func (a *app) runInputs(of *workflow.Workflow, r *runStartCommand, typist *answerReader) (json.RawMessage, error) {
	values := map[string]json.RawMessage{}
	if r.Inputs != "" {
		text, err := a.readInputs(r.Inputs)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &values); err != nil || values == nil {
			return nil, usage("--inputs %s: give a JSON object with the inputs by name, such as {\"topic\": \"tea\"}: %w", r.Inputs, withHint(err, "it is null"))
		}
		for name := range values {
			if _, err := inputOf(of, name); err != nil {
				return nil, err
			}
		}
	}
	for _, given := range r.Input {
		name, value, err := givenInput(of, given)
		if err != nil {
			return nil, err
		}
		values[name] = value
	}
	if err := a.askInputs(of, values, typist, r.Inputs == "-" || r.JSON); err != nil {
		return nil, err
	}
	return rawjson.Marshal(values)
}

func withHint(err error, words string) error {
	if err == nil {
		return fmt.Errorf("%s", words)
	}
	return err
}

// inputOf finds an input of a workflow.
func inputOf(of *workflow.Workflow, name string) (workflow.Field, error) {
	var names []string
	for _, field := range of.Inputs {
		if field.Name == name {
			return field, nil
		}
		names = append(names, field.Name)
	}
	hint := "its inputs are " + strings.Join(names, ", ")
	if len(names) == 0 {
		hint = "it has none"
	} else if near := nearest.Name(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return workflow.Field{}, usage("workflow %s has no input %q; %s", of.ID, term.OneLine(name, 60), hint)
}

// givenInput reads NAME=VALUE or NAME=@FILE.
func givenInput(of *workflow.Workflow, given string) (string, json.RawMessage, error) {
	name, text, ok := strings.Cut(given, "=")
	if !ok {
		return "", nil, usage("--input %s: write NAME=VALUE", term.OneLine(given, 60))
	}
	field, err := inputOf(of, name)
	if err != nil {
		return "", nil, err
	}
	value, err := inputValue(field, text)
	if err != nil {
		return "", nil, usage("--input %s: %w", name, err)
	}
	return name, value, nil
}

// inputValue parses a value by the input's type.
func inputValue(field workflow.Field, text string) (json.RawMessage, error) {
	if path, ok := strings.CutPrefix(text, "@"); ok {
		whole, err := readBounded(path)
		if err != nil {
			return nil, err
		}
		text = string(whole)
	}
	if field.Type == workflow.String {
		if len(field.Enum) > 0 && !slices.Contains(field.Enum, text) {
			return nil, fmt.Errorf("%q is none of %s", term.OneLine(text, 60), strings.Join(field.Enum, ", "))
		}
		return rawjson.Marshal(text)
	}
	text = strings.TrimSpace(text)
	wrong := fmt.Errorf("%q is no %s", term.OneLine(text, 60), typeText(field.Type))
	switch field.Type {
	case workflow.Number, workflow.Integer:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !json.Valid([]byte(text)) || field.Type == workflow.Integer && n != math.Trunc(n) {
			return nil, wrong
		}
	case workflow.Boolean:
		if text != "true" && text != "false" {
			return nil, wrong
		}
	case workflow.Array, workflow.Object:
		first := map[workflow.Type]byte{workflow.Array: '[', workflow.Object: '{'}[field.Type]
		if !json.Valid([]byte(text)) || text[0] != first {
			return nil, wrong
		}
	}
	return json.RawMessage(text), nil
}

// typeText describes how to write a value of a type.
func typeText(of workflow.Type) string {
	return map[workflow.Type]string{
		workflow.String: "text", workflow.Number: "number, such as 2.5", workflow.Integer: "whole number, such as 3",
		workflow.Boolean: "true or false", workflow.Array: `list in JSON, such as ["a", "b"]`, workflow.Object: `object in JSON, such as {"a": 1}`,
	}[of]
}

// readBounded reads a file that is at most as long as the longest message.
func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, &usageError{err}
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxLine+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(text) > maxLine {
		return nil, usage("%s is longer than %s", path, term.Size(maxLine))
	}
	return bytes.TrimPrefix(text, []byte("\ufeff")), nil
}

// askInputs asks for the required inputs that were not given. Without a terminal the error names them all.
func (a *app) askInputs(of *workflow.Workflow, values map[string]json.RawMessage, typist *answerReader, never bool) error {
	var missing []workflow.Field
	for _, field := range of.Inputs {
		if _, given := values[field.Name]; !given && field.Default == nil && !field.Optional {
			missing = append(missing, field)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if never || !a.inTerminal || !a.errTerminal {
		return missingInputs(of, missing)
	}
	a.note("%s", a.notePaint.Dim(fmt.Sprintf("%s asks for %s; @FILE reads a file.", of.ID, term.Count(len(missing), "input"))))
	for _, field := range missing {
		value, err := a.askInput(field, typist)
		if err != nil {
			return err
		}
		values[field.Name] = value
	}
	return nil
}

// askInput asks until the answer is valid.
func (a *app) askInput(field workflow.Field, typist *answerReader) (json.RawMessage, error) {
	a.note("%s %s", a.notePaint.Bold(field.Name), inputText(field))
	for {
		_, _ = fmt.Fprint(a.err, a.notePaint.Cyan(promptSign))
		line := <-typist.reading()
		typist.pendingLine = nil
		if line.Err != nil {
			a.note("")
			return nil, usage("the input %s is missing", field.Name)
		}
		if line.Text == "" {
			continue
		}
		value, err := inputValue(field, line.Text)
		if err == nil {
			return value, nil
		}
		a.note("%s", a.notePaint.Yellow(term.Clean(err.Error())))
	}
}

// inputText describes an input: its type, its allowed values, and its purpose.
func inputText(field workflow.Field) string {
	words := "(" + string(field.Type)
	if len(field.Enum) > 0 {
		words += ": " + strings.Join(field.Enum, ", ")
	}
	words += ")"
	if field.Description != "" {
		words += " " + term.OneLine(field.Description, 300)
	}
	return words
}

// missingInputs names the missing inputs, and a command line that sets them.
func missingInputs(of *workflow.Workflow, missing []workflow.Field) error {
	lines := []string{fmt.Sprintf("workflow %s needs %s:", of.ID, term.Count(len(missing), "more input"))}
	example := "continuo run start " + of.ID
	for _, field := range missing {
		lines = append(lines, "  "+field.Name+" "+inputText(field))
		example += " --input " + exampleInput(field)
	}
	return usage("%s\nfor example: %s", strings.Join(lines, "\n"), example)
}

func exampleInput(field workflow.Field) string {
	value := map[workflow.Type]string{workflow.Number: "2.5", workflow.Integer: "3", workflow.Boolean: "true", workflow.Array: `["a"]`, workflow.Object: `{"a": 1}`}[field.Type]
	switch {
	case len(field.Enum) > 0:
		value = field.Enum[0]
	case value == "":
		value = "..."
	}
	if strings.ContainsAny(value, " \"'[]{}") {
		return quote(field.Name + "=" + value)
	}
	return field.Name + "=" + value
}

// quote quotes any text as a word of a POSIX shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
