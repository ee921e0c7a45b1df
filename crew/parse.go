package crew

import (
	"cmp"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/yamlform"
	"github.com/continuo-log/continuo/internal/yamltree"
)

const defaultMaxRounds = 10

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

// crewFile is a crew's file.
type crewFile struct {
	ID               *yamltree.Node         `key:"id" form:"id" help:"What the crew is called by programs and on the command line. Default: the file's name without .yaml."`
	Name             yamlform.Value[string] `key:"name" form:"line" help:"What people call it. Default: the id."`
	Description      yamlform.Value[string] `key:"description" help:"What it is for."`
	MaxRounds        yamlform.Value[int]    `key:"max_rounds" min:"1" max:"1000" help:"How often each role may have its turn in one cycle. Default: 10."`
	ReminderInterval yamlform.Value[int]    `key:"reminder_interval" min:"1" max:"1000" help:"After how many of its answers a role is shown its system prompt again. Default: the setting crew.system_reminder_interval."`
	Summarizer       *yamltree.Node         `key:"summarizer" help:"The model that makes summaries and notes. Default: the built-in extractive summarizer."`
	Roles            yamlform.Several       `key:"roles" list:"role" min:"1" max:"32" required:"true" help:"The roles, in the order in which they speak."`
}

func (r *reader) readCrew(root *yamltree.Node) {
	var file crewFile
	r.Object(root, "a crew", &file)
	c := r.crew
	c.ID = r.ID(file.ID, root.At, "crew")
	c.Name = cmp.Or(file.Name.Is, c.ID)
	c.Description = file.Description.Is
	c.MaxRounds = cmp.Or(file.MaxRounds.Is, defaultMaxRounds)
	c.ReminderInterval = file.ReminderInterval.Is
	if file.Summarizer != nil {
		c.Summarizer = r.readModel(file.Summarizer, "summarizer")
	}
	if file.Roles.Node != nil {
		r.readRoles(file.Roles.Node, file.Roles.Most)
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

func (r *reader) readRoles(v *yamltree.Node, most int) {
	switch {
	case v.Kind != yamltree.List:
		r.Complain(v.At, "roles must be a list, each with a role_name and a system_prompt, not %s", v.Kind)
		return
	case len(v.Items) == 0:
		r.Complain(v.At, "there are no roles; write one, such as - {role_name: writer, system_prompt: You write.}")
	case len(v.Items) > most:
		r.Complain(v.Items[most].At, "there are %d roles, more than the limit of %d", len(v.Items), most)
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
			r.Complain(at.display, "the role in line %d is shown as %s too; choose another display_name", other.Line, yamlform.Quoted(other.DisplayName))
			return
		}
	}
}
