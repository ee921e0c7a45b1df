package crew_test

import (
	"errors"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/crew"
)

func TestARoleIsFoundByEitherName(t *testing.T) {
	c := &crew.Crew{ID: "team", Roles: []crew.Role{
		{Name: "ann", DisplayName: "Ann"}, {Name: "dev_ops", DisplayName: "Łucja the Builder"}, {Name: "bob", DisplayName: "Lead"}, {Name: "lead", DisplayName: "Bob"},
	}}
	for name, want := range map[string]string{
		"ann": "ann", "Ann": "ann", "ANN": "ann", " ann ": "ann", "łucja THE builder": "dev_ops", "Łucja  the Builder": "dev_ops", "DEV_OPS": "dev_ops",
		"bob": "bob", "lead": "lead",
	} {
		if role, err := c.Find(name); err != nil || role.Name != want {
			t.Errorf("%q finds %v, %v", name, role, err)
		}
	}
	for name, message := range map[string]string{
		"carl": "the crew team has ann (Ann), dev_ops (Łucja the Builder), bob (Lead), lead (Bob)", "": "unknown role", "Bob": "it could be bob (Lead), lead (Bob)",
	} {
		if role, err := c.Find(name); !errors.Is(err, continuo.ErrInvalid) || !strings.Contains(err.Error(), message) {
			t.Errorf("%q finds %v, %v", name, role, err)
		}
	}
}
