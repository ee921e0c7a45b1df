package crew

import (
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
)

// Find returns the role that a person names: the one with that role_name, or the only one whose role_name or display
// name is equal without regard to case and surrounding spaces. The error is continuo.ErrInvalid and lists all roles,
// or those that the name could mean.
func (c *Crew) Find(name string) (*Role, error) {
	if role := c.Role(name); role != nil {
		return role, nil
	}
	name = strings.Join(strings.Fields(name), " ")
	var found []*Role
	for i := range c.Roles {
		if role := &c.Roles[i]; strings.EqualFold(role.Name, name) || strings.EqualFold(role.DisplayName, name) {
			found = append(found, role)
		}
	}
	switch len(found) {
	case 0:
		all := make([]*Role, len(c.Roles))
		for i := range c.Roles {
			all[i] = &c.Roles[i]
		}
		return nil, fmt.Errorf("unknown role %q: %w: the crew %s has %s", bounded(name), continuo.ErrInvalid, c.ID, listed(all))
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("role %q: %w: it could be %s; write the role_name", bounded(name), continuo.ErrInvalid, listed(found))
}

// listed names roles for people, each by its role_name, with the display name where that differs.
func listed(roles []*Role) string {
	names := make([]string, len(roles))
	for i, role := range roles {
		if names[i] = role.Name; role.DisplayName != role.Name {
			names[i] += " (" + role.DisplayName + ")"
		}
	}
	return strings.Join(names, ", ")
}

// maxNamed bounds how much of an unknown name an error repeats.
const maxNamed = 60

func bounded(name string) string {
	if runes := []rune(name); len(runes) > maxNamed {
		return string(runes[:maxNamed]) + "…"
	}
	return name
}
