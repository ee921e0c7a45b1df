package workflow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/nearest"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/yamlform"
)

// ReadInputs checks a run's inputs, a JSON object or nil, and fills in defaults. It returns them in canonical form:
// fields sorted by name. An error, which is continuo.ErrInvalid, lists all problems.
func (w *Workflow) ReadInputs(given json.RawMessage) (json.RawMessage, error) {
	values, err := decodeObject(given)
	if err != nil {
		return nil, fmt.Errorf("inputs: %w: %w", continuo.ErrInvalid, err)
	}
	var wrong []string
	for name := range values {
		if !slices.ContainsFunc(w.Inputs, func(f Field) bool { return f.Name == name }) {
			wrong = append(wrong, fmt.Sprintf("there is no input %q%s", name, suggest(name, w.Inputs)))
		}
	}
	slices.Sort(wrong)
	for _, field := range w.Inputs {
		if _, there := values[field.Name]; !there && field.Default != nil {
			values[field.Name] = field.Default
		}
	}
	read, problems := takeFields(w.Inputs, values)
	if wrong = append(wrong, problems...); len(wrong) > 0 {
		return nil, fmt.Errorf("inputs of the workflow %s: %w: %s", w.ID, continuo.ErrInvalid, strings.Join(wrong, "; "))
	}
	return canonical(read), nil
}

func suggest(name string, fields []Field) string {
	names := make([]string, len(fields))
	for i, field := range fields {
		names[i] = field.Name
	}
	if near := nearest.Name(name, names); near != "" {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	if len(names) == 0 {
		return "; the workflow has none"
	}
	return "; there are " + strings.Join(names, ", ")
}

// takeFields reads the declared fields from decoded JSON and lists their problems. Other fields are ignored.
func takeFields(fields []Field, values map[string]any) (read map[string]any, problems []string) {
	read = map[string]any{}
	for _, field := range fields {
		value, there := values[field.Name]
		if !there || value == nil {
			if !field.Optional {
				problems = append(problems, fmt.Sprintf("%s (%s) is missing", field.Name, field.Type))
			}
			continue
		}
		value, problem := field.read(value)
		if problem != "" {
			problems = append(problems, field.Name+" "+problem)
			continue
		}
		read[field.Name] = value
	}
	return read, problems
}

// read converts a decoded value to the field's type: strings to string, numbers to float64, integers to int,
// booleans to bool, arrays to []any, objects to map[string]any.
func (f Field) read(value any) (converted any, problem string) {
	ok := false
	switch f.Type {
	case String:
		text, is := value.(string)
		if is && len(f.Enum) > 0 && !slices.Contains(f.Enum, text) {
			return nil, fmt.Sprintf("is %q and must be one of %s", yamlform.Shorten(text), quotedList(f.Enum))
		}
		converted, ok = text, is
	case Number:
		converted, ok = asNumber(value)
	case Integer:
		number, is := asNumber(value)
		converted, ok = int(number), is && number == math.Trunc(number) && math.Abs(number) < 1<<53
	case Boolean:
		converted, ok = value.(bool)
	case Array:
		converted, ok = value.([]any)
	case Object:
		converted, ok = value.(map[string]any)
	}
	if !ok {
		return nil, fmt.Sprintf("is %s and must be %s %s", kindOf(value), article(f.Type), f.Type)
	}
	return converted, ""
}

func asNumber(value any) (float64, bool) {
	switch value := value.(type) {
	case float64:
		return value, true
	case int:
		return float64(value), true
	default:
		return 0, false
	}
}

func kindOf(value any) string {
	switch value := value.(type) {
	case string:
		return "the string " + fmt.Sprintf("%q", yamlform.Shorten(value))
	case bool:
		return fmt.Sprintf("the boolean %t", value)
	case float64, int:
		return fmt.Sprintf("the number %v", value)
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	default:
		return "null"
	}
}

func article(t Type) string {
	if strings.ContainsRune("aeiou", rune(t[0])) {
		return "an"
	}
	return "a"
}

func quotedList(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = fmt.Sprintf("%q", text)
	}
	return strings.Join(quoted, ", ")
}

// decodeObject reads one JSON object; empty input, or null, is an empty one. The last of duplicate fields counts.
func decodeObject(raw json.RawMessage) (map[string]any, error) {
	if text := bytes.TrimSpace(raw); len(text) == 0 || string(text) == "null" {
		return map[string]any{}, nil
	}
	if rawjson.Depth(raw) > maxDepth {
		return nil, fmt.Errorf("nested more than %d levels deep", maxDepth)
	}
	values := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if err := decoder.Decode(&values); err != nil {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, fmt.Errorf("more than one JSON object")
	}
	return values, nil
}

// maxDepth bounds the nesting of inputs and outputs.
const maxDepth = 100

// canonical encodes a value so that equal values have equal bytes: without spaces, keys sorted.
func canonical(value map[string]any) json.RawMessage { return rawjson.MustMarshal(value) }

// canonicalOf is canonical for values that an expression made, which JSON may not be able to represent.
func canonicalOf(value map[string]any) (json.RawMessage, error) { return rawjson.Marshal(value) }
