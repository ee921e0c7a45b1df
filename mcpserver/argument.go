package mcpserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/nearest"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/task"
)

// arguments are those of a call. Each is read once; the error of the first invalid one is kept as err. Absent and null
// are the same.
type arguments struct {
	raw    json.RawMessage
	object rawjson.Object
	err    error
}

// readArguments splits the object with a call's arguments; without arguments the object is empty.
func readArguments(raw json.RawMessage) *arguments {
	if rawjson.IsNull(raw) {
		raw = json.RawMessage("{}")
	}
	object, err := rawjson.ParseObject(raw)
	a := &arguments{raw: raw, object: object}
	switch {
	case errors.Is(err, rawjson.ErrNotObject):
		a.err = refused(task.TypeError, "", "the arguments must be an object")
	case err != nil:
		a.err = refused(task.TypeError, "", "the arguments are no JSON: "+cut(err.Error(), 200))
	}
	return a
}

// unknown lists the names that are not known.
func (a *arguments) unknown(known []string) (names []string) {
	for _, field := range a.object {
		if !slices.Contains(known, field.Key) {
			names = append(names, field.Key)
		}
	}
	return names
}

// onlyKnown refuses unknown names.
func (a *arguments) onlyKnown(known []string) {
	for _, name := range a.unknown(known) {
		hint := "; known are " + strings.Join(known, ", ")
		if meant := nearest.Name(name, known); meant != "" {
			hint = "; did you mean " + meant + "?"
		}
		a.refuse(task.InvalidValue, cut(name, 60), "there is no argument %q%s", cut(name, 60), hint)
	}
}

func (a *arguments) refuse(kind task.ErrorType, field, format string, args ...any) {
	if a.err == nil {
		a.err = refused(kind, field, fmt.Sprintf(format, args...))
	}
}

// has reports whether an argument was given.
func (a *arguments) has(name string) bool { return !rawjson.IsNull(a.object.Get(name)) }

// text reads a string, "" without one.
func (a *arguments) text(name string) string {
	value := a.object.Get(name)
	text, ok := rawjson.String(value)
	if !ok && !rawjson.IsNull(value) {
		a.refuse(task.TypeError, name, "%s must be a string", name)
	}
	return text
}

// required reads a string that must be there.
func (a *arguments) required(name string) string {
	text := a.text(name)
	if strings.TrimSpace(text) == "" {
		a.refuse(task.MissingField, name, "missing required field '%s'", name)
	}
	return text
}

// choice reads one of the allowed names; without one it returns otherwise.
func (a *arguments) choice(name, otherwise string, allowed ...string) string {
	text := a.text(name)
	if text == "" {
		return otherwise
	}
	if !slices.Contains(allowed, text) {
		a.refuse(task.InvalidValue, name, "invalid %s '%s', must be %s", name, cut(text, 60), strings.Join(allowed, "|"))
	}
	return text
}

// whole reads an integer between two bounds; without one it returns otherwise.
func (a *arguments) whole(name string, least, most, otherwise int64) int64 {
	value := a.object.Get(name)
	if rawjson.IsNull(value) {
		return otherwise
	}
	var number json.Number
	if value[0] == '"' || json.Unmarshal(value, &number) != nil {
		a.refuse(task.TypeError, name, "%s must be a whole number", name)
		return otherwise
	}
	exact, err := number.Int64()
	if err != nil { // 2.0 and 1e3 are integers as well
		float, _ := number.Float64()
		if exact = int64(float); float < -maxExact || float > maxExact || float != float64(exact) {
			a.refuse(task.InvalidValue, name, "%s must be a whole number from %d to %d", name, least, most)
			return otherwise
		}
	}
	if exact < least || exact > most {
		a.refuse(task.InvalidValue, name, "%s must be a whole number from %d to %d", name, least, most)
	}
	return exact
}

// maxExact bounds integers: every JSON reader reads smaller ones exactly, and no conversation has so many entries.
const maxExact = 1 << 53

// maxCount bounds counts of messages, characters and tokens.
const maxCount = 1<<31 - 1

// count reads a count, nil without one.
func (a *arguments) count(name string) *int {
	if !a.has(name) {
		return nil
	}
	count := int(a.whole(name, 0, maxCount, 0))
	return &count
}

// flag reads true or false, false without it.
func (a *arguments) flag(name string) (flag bool) {
	if value := a.object.Get(name); !rawjson.IsNull(value) && json.Unmarshal(value, &flag) != nil {
		a.refuse(task.TypeError, name, "%s must be true or false", name)
	}
	return flag
}

// key reads an idempotency key, "" without one.
func (a *arguments) key() string {
	const name = "idempotency_key"
	key := a.text(name)
	invisible := func(r rune) bool { return r < '!' || r > '~' }
	if a.has(name) && (key == "" || len(key) > 255 || strings.ContainsFunc(key, invisible)) {
		a.refuse(task.InvalidValue, name, "idempotency_key must be 1 to 255 visible ASCII characters")
	}
	return key
}

// user returns the user whose conversations are meant: the scope's user, or the named one; "" for all users.
func (c *call) user(scope continuo.Scope) string {
	const name = "user_id"
	named := c.text(name)
	if c.has(name) && named == "" {
		c.refuse(task.InvalidValue, name, "user_id is empty: leave it out for those of all users")
	}
	user, err := scope.Owner(named)
	switch {
	case errors.Is(err, continuo.ErrInvalid):
		c.refuse(task.InvalidValue, name, "%s", err)
	case err != nil && c.err == nil:
		c.err = err
	}
	return user
}

// labels reads the required values of the conversations' metadata; nil for any.
func (c *call) labels() map[string]string {
	const name = "metadata"
	if !c.has(name) {
		return nil
	}
	object, err := rawjson.ParseObject(c.object.Get(name))
	if err != nil {
		c.refuse(task.TypeError, name, "metadata must be an object")
		return nil
	}
	labels := continuo.LabelsOf(object.Raw())
	switch err := continuo.CheckLabels(labels); {
	case err != nil:
		c.refuse(task.InvalidValue, name, "%s", err)
	case len(labels) != len(object):
		c.refuse(task.InvalidValue, name, "the values of metadata must be strings of at most %d bytes, numbers or booleans", continuo.MaxLabelBytes)
	}
	return labels
}
