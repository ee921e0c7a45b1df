package config

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/nearest"
	"github.com/continuo-log/continuo/internal/yamltree"
)

// modelRows is one model of the file with its settings.
type modelRows struct {
	config  *ModelConfig
	rows    []*setting
	headers *setting
}

// modelsSection applies the section models: a mapping of names to mappings.
func (r *fileReader) modelsSection(section *yamltree.Node) {
	switch section.Kind {
	case yamltree.Null:
		return
	case yamltree.Mapping:
	default:
		r.problems.add(r.at(section), "models: not a mapping; write each model's name, and its settings indented below it")
		return
	}
	for _, f := range section.Fields {
		name := f.Key.Text
		switch {
		case name == DemoModel:
			r.problems.add(r.at(f.Key), "models.demo: the name demo is taken by the built-in model; choose another")
		case !isName(name):
			r.problems.add(r.at(f.Key), "models: %s is no name for a model; allowed: one line of text without spaces around it", quoted(name))
		default:
			r.model(name, f.Value)
		}
	}
}

func (r *fileReader) model(name string, value *yamltree.Node) {
	config := &ModelConfig{Name: name, Headers: map[string]string{}}
	prefix := "models." + name + "."
	model := &modelRows{config: config, rows: config.rows(prefix), headers: config.headersRow(prefix)}
	if value.Kind != yamltree.Mapping && value.Kind != yamltree.Null {
		r.problems.add(r.at(value), "models.%s: not a mapping; write the model's settings indented below its name", name)
	}
	for _, f := range value.Fields {
		r.modelField(model, prefix, f)
	}
	config.resolve(model.rows, r.env)
	if key, err := config.conflict(); err != nil {
		row := model.row(prefix + key)
		r.problems.add(row.origin, "%s: %w", row.key, err)
	}
	r.models = append(r.models, model)
	r.config.Models[name] = *config
}

func (r *fileReader) modelField(model *modelRows, prefix string, f yamltree.Field) {
	key := prefix + f.Key.Text
	row := model.row(key)
	switch {
	case f.Key.Text == "headers":
		r.headers(model, f.Value)
	case row != nil:
		r.set(row, f.Value)
	case r.problems.full():
	case f.Key.Text == "api_key" || f.Key.Text == "apikey" || f.Key.Text == "key":
		r.problems.add(r.at(f.Key), "unknown key %s; keys never stand in the file: name the environment variable that holds it in %sapi_key_env", word(key), prefix)
	default:
		r.problems.add(r.at(f.Key), "unknown key %s; %s", word(key), model.advice(prefix, f.Key.Text))
	}
}

func (m *modelRows) row(key string) *setting {
	for _, row := range m.rows {
		if row.key == key {
			return row
		}
	}
	return nil
}

// advice suggests the key of a model that was probably meant.
func (m *modelRows) advice(prefix, key string) string {
	names := []string{"headers"}
	for _, row := range m.rows {
		names = append(names, strings.TrimPrefix(row.key, prefix))
	}
	if near := nearest.Name(key, names); near != "" {
		return meant(prefix+near, "")
	}
	slices.Sort(names)
	return "the keys of a model are " + strings.Join(names, ", ")
}

// headers applies a model's headers. Its errors never repeat the given values.
func (r *fileReader) headers(model *modelRows, value *yamltree.Node) {
	key := model.headers.key
	switch value.Kind {
	case yamltree.Null:
		return
	case yamltree.Mapping:
	default:
		r.problems.add(r.at(value), "%s: not a mapping; allowed: %s", key, model.headers.value.allowed)
		return
	}
	model.headers.origin = r.at(value)
	for _, f := range value.Fields {
		name := http.CanonicalHeaderKey(f.Key.Text)
		if f.Value.Kind != yamltree.Text {
			r.problems.add(r.at(f.Value), "%s: the value of %s is no text; put it in quotes", key, word(f.Key.Text))
		} else if err := checkHeader(f.Key.Text, f.Value.Text); err != nil {
			r.problems.add(r.at(f.Key), "%s: %s: %w", key, word(f.Key.Text), err)
		} else if _, twice := model.config.Headers[name]; twice {
			r.problems.add(r.at(f.Key), "%s: the header %s is there twice", key, name)
		} else {
			model.config.Headers[name] = f.Value.Text
		}
	}
}

// public lists the model's settings for a person to read: of the key whether it is set, of the headers their names.
func (m *modelRows) public() []Setting {
	var all []Setting
	for _, row := range append(slices.Clone(m.rows), m.headers) {
		shown := row.public()
		if strings.HasSuffix(row.key, ".api_key_env") && m.config.APIKeyEnv != "" {
			shown.Value = m.config.APIKeyEnv + map[bool]string{true: " (set)", false: " (not set)"}[m.config.APIKeySet]
		}
		all = append(all, shown)
	}
	return all
}

// hints looks for settings that are valid but probably not what was meant.
func hints(c *Config, env map[string]string) []string {
	var found []string
	if _, connector := c.Connectors[c.DefaultModel]; connector {
		return nil
	}
	if len(c.Models) == 0 {
		for _, vendor := range []struct{ variable, protocol string }{
			{"OPENAI_API_KEY", ProtocolOpenAIChat}, {"ANTHROPIC_API_KEY", ProtocolAnthropicMessages},
		} {
			if env[vendor.variable] != "" {
				found = append(found, fmt.Sprintf("%s is set, but no model uses it, so the built-in demo answers: add a model with protocol %s under models in continuo.yaml, and set model to its name",
					vendor.variable, vendor.protocol))
			}
		}
		return found
	}
	if c.DefaultModel == DemoModel {
		names := slices.DeleteFunc(c.ModelNames(), func(name string) bool { return name == DemoModel })
		return append(found, fmt.Sprintf("the default model is the built-in demo, although models has %s: set model to the name of one", strings.Join(names, ", ")))
	}
	if words := c.MissingKey(); words != "" {
		found = append(found, words)
	}
	return found
}

// MissingKey says that the key of the default model is not set; "" if it is, or if the model needs none.
func (c *Config) MissingKey() string {
	model := c.Models[c.DefaultModel]
	if model.APIKeyEnv == "" || model.APIKeySet {
		return ""
	}
	return fmt.Sprintf("the default model %s takes its key from %s, which is not set: set it where continuo starts", model.Name, model.APIKeyEnv)
}
