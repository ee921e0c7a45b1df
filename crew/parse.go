package crew

import (
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/yamlform"
	"github.com/continuo-log/continuo/internal/yamltree"
)

const (
	maxRoles         = 32
	defaultMaxRounds = 10
	mostRounds       = 1000
	mostInterval     = 1000
)

// Known is what crews may name; a nil list knows nothing of that kind. Any knows every name: the crew of a cycle that
// has begun is read even where a connector is gone since.
type Known struct {
	Connectors, Models []string
	// Tools are names, and SERVER.* for whatever a server has. Nil: they are not checked.
	Tools []string
	Any   bool
}

// Parse reads a crew and checks it as a whole. File names it in complaints, and gives the id of a crew that names
// none. It fails with a *Problems that lists everything that is wrong, each with its line and with what to do.
func Parse(file string, text []byte, known Known) (*Crew, error) {
	r := &reader{Reader: yamlform.Reader{File: file, Any: known.Any}, known: known, crew: &Crew{Text: slices.Clone(text)}}
	if root := r.Root(text, form); root != nil {
		r.readCrew(root)
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return r.crew, nil
}

var form = yamlform.Form{
	One: "a crew", Many: "crews", Parts: "roles, which speak in turn", Keys: "id and roles", IfLong: "shorten its system prompts",
}

type (
	// Problems are what is wrong with a crew, in the order of the file, at most 20. They are continuo.ErrInvalid.
	Problems = yamlform.Problems
	// Problem is one thing that is wrong, and what to do about it.
	Problem = yamlform.Problem
)

// reader makes a crew of a file's values and gathers what is wrong with them.
type reader struct {
	yamlform.Reader
	known Known
	crew  *Crew
}

func (r *reader) readCrew(root *yamltree.Node) {
	keys := r.Mapping(root, "a crew", "id", "name", "description", "max_rounds", "reminder_interval", "summarizer", "roles")
	c := r.crew
	c.ID = r.ID(keys["id"], root.At, "crew")
	if c.Name = r.Line(keys["name"], "name"); c.Name == "" {
		c.Name = c.ID
	}
	c.Description = r.Text(keys["description"], "description")
	if c.MaxRounds = r.Count(keys["max_rounds"], "max_rounds", mostRounds); c.MaxRounds == 0 {
		c.MaxRounds = defaultMaxRounds
	}
	c.ReminderInterval = r.Count(keys["reminder_interval"], "reminder_interval", mostInterval)
	if summarizer := keys["summarizer"]; summarizer != nil {
		c.Summarizer = r.readModel(summarizer, "summarizer")
	}
	if roles := keys["roles"]; roles != nil {
		r.readRoles(roles)
	} else if !root.Has("roles") {
		r.Complain(root.At, "a crew needs roles; write the key roles with a list below it, such as - {role_name: writer, system_prompt: You write.}")
	}
}

// readModel reads the name of a model, under a key that is not called so.
func (r *reader) readModel(v *yamltree.Node, key string) string {
	if r.Text(v, key) == "" {
		return ""
	}
	return r.Known(v, "model", r.known.Models)
}

func (r *reader) readRoles(v *yamltree.Node) {
	switch {
	case v.Kind != yamltree.List:
		r.Complain(v.At, "roles must be a list, each with a role_name and a system_prompt, not %s", v.Kind)
		return
	case len(v.Items) == 0:
		r.Complain(v.At, "there are no roles; write one, such as - {role_name: writer, system_prompt: You write.}")
	case len(v.Items) > maxRoles:
		r.Complain(v.Items[maxRoles].At, "there are %d roles, more than the limit of %d", len(v.Items), maxRoles)
		return
	}
	for _, item := range v.Items {
		if role, at, ok := r.readRole(item); ok {
			r.compare(&role, at)
			r.crew.Roles = append(r.crew.Roles, role)
		}
	}
}

// compare looks for an earlier role of the same name. Display names are labels in the roles' texts, where letter
// case is easily overlooked.
func (r *reader) compare(role *Role, at rolePlaces) {
	for i := range r.crew.Roles {
		other := &r.crew.Roles[i]
		switch {
		case role.Name != "" && other.Name == role.Name:
			r.Complain(at.name, "there is a role %s already in line %d; choose another name", role.Name, other.Line)
			return
		case role.DisplayName != "" && strings.EqualFold(other.DisplayName, role.DisplayName):
			r.Complain(at.display, "the role in line %d is shown as %s too; choose another display_name, so that they can be told apart", other.Line, yamlform.Quoted(other.DisplayName))
			return
		}
	}
}
