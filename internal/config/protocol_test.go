package config

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

// The allowed values of the setting protocol are in a tag, so that a test compares them with the table.
func TestEachProtocolOfTheSettingsHasARow(t *testing.T) {
	field, _ := reflect.TypeFor[ModelConfig]().FieldByName("Protocol")
	var names []string
	for _, p := range Protocols() {
		names = append(names, p.Name)
		if p.Provider == "" || p.BaseURL == "" || p.APIKeyEnv == "" || p.MaxTemperature == 0 {
			t.Errorf("the row of %s has no default: %+v", p.Name, p)
		}
	}
	if allowed := strings.Split(field.Tag.Get("enum"), ","); !slices.Equal(names, allowed) {
		t.Errorf("rows for %v, allowed are %v", names, allowed)
	}
}

func TestAProtocolWithoutARowIsAnError(t *testing.T) {
	for _, name := range []string{"", ProtocolDemo, "prompt", "openai"} {
		if p, err := ProtocolOf(name); !errors.Is(err, continuo.ErrInvalid) || p.BaseURL != "" {
			t.Errorf("%q: got %+v, %v", name, p, err)
		}
	}
}
