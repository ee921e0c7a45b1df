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
	maxRounds        = 1000
	maxInterval      = 1000
)

// Known lists the names that crews may use; with a nil list no name of that kind is valid. Any accepts every name:
// the crew of a cycle that has begun must remain readable after a connector was removed.
type Known struct {
	Connectors, Models []string
	// Tools are names of tools, or SERVER.* for all tools of a server. Nil: tools are not checked.
	Tools []string
	Any   bool
}

// Parse reads a crew and checks it as a whole. File is its name in error messages, and the default for the crew's id.
// It fails with a *Problems that lists all errors, each with its line and the remedy.
func Parse(file string, text []byte, known Known) (*Crew, error) {
	r := &reader{Reader: yamlform.Reader{File: file, Any: known.Any}, known: known, crew: &Crew{Text: slices.Clone(text)}}
	if root := r.Root(text, kind); root != nil {
		r.readCrew(root)
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return r.crew, nil
}

var kind = yamlform.Form{
	One: "a crew", Many: "crews", Parts: "roles, which speak in turn", Keys: "id and roles", IfLong: "shorten its system prompts",
}

type (
	// Problems are the errors in a crew, in the order of the file, at most 20. They are continuo.ErrInvalid.
	Problems = yamlform.Problems
	// Problem is one error, with its remedy.
	Problem = yamlform.Problem
)

// reader makes a crew from a file's values and collects their errors.
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
	if c.MaxRounds = r.Count(keys["max_rounds"], "max_rounds", maxRounds); c.MaxRounds == 0 {
		c.MaxRounds = defaultMaxRounds
	}
	c.ReminderInterval = r.Count(keys["reminder_interval"], "reminder_interval", maxInterval)
	if summarizer := keys["summarizer"]; summarizer != nil {
		c.Summarizer = r.readModel(summarizer, "summarizer")
	}
	if roles := keys["roles"]; roles != nil {
		r.readRoles(roles)
	} else if !root.Has("roles") {
		r.Complain(root.At, "a crew needs roles; write the key roles with a list below it, such as - {role_name: writer, system_prompt: You write.}")
	}
}

// readModel reads the name of a model from a key with another name than model.
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

// compare looks for an earlier role of the same name. Display names are compared without case, since they are labels
// in the roles' texts, where case is easily overlooked.
func (r *reader) compare(role *Role, at rolePositions) {
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
