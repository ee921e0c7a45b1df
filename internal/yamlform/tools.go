package yamlform

import (
	"cmp"
	"strings"

	"github.com/continuo-log/continuo/internal/yamltree"
)

// Tools is a tool policy as a file gives it; its values are those of tool.Policy.
type Tools struct {
	Allow, Ask, Deny []string
	Otherwise        string
}

// The decisions, as package tool names them.
const (
	allow = "allow"
	ask   = "ask"
	deny  = "deny"
)

// toolsFile is a policy in a file.
type toolsFile struct {
	Allow     *yamltree.Node `key:"allow" form:"patterns" help:"Tools that it may use without asking."`
	Ask       *yamltree.Node `key:"ask" form:"patterns" help:"Tools of which each call waits for a person."`
	Deny      *yamltree.Node `key:"deny" form:"patterns" help:"Tools that it may not use."`
	Otherwise Value[string]  `key:"otherwise" enum:"allow,ask,deny" help:"What is decided about the others. Default: allow."`
}

// Tools reads a policy, or a list of the only allowed tools; who names their user in problems. check is
// tool.Policy.Check of a policy that allows the pattern. Without the key everything is allowed.
func (r *Reader) Tools(v *yamltree.Node, owner string, check func(pattern string) error) Tools {
	tools := Tools{Otherwise: allow}
	switch {
	case v == nil:
		return tools
	case v.Kind == yamltree.List:
		return Tools{Allow: r.patterns(v, "tools", check), Otherwise: deny}
	case v.Kind != yamltree.Mapping:
		r.Complain(v.At, "tools must be a list of the tools that %s may use, or a mapping with allow, ask, deny and otherwise, not %s", owner, v.Kind)
		return tools
	}
	var file toolsFile
	r.Object(v, "tools", &file)
	tools.Allow = r.patterns(file.Allow, allow, check)
	tools.Ask = r.patterns(file.Ask, ask, check)
	tools.Deny = r.patterns(file.Deny, deny, check)
	tools.Otherwise = cmp.Or(file.Otherwise.Is, tools.Otherwise)
	return tools
}

// patterns reads patterns of tool names, and reports problems at their positions.
func (r *Reader) patterns(v *yamltree.Node, key string, check func(pattern string) error) []string {
	if v == nil {
		return nil
	}
	if v.Kind != yamltree.List {
		r.Complain(v.At, "%s must be a list of tools, not %s", key, v.Kind)
		return nil
	}
	patterns := []string{}
	for _, item := range v.Items {
		pattern := r.Text(item, "each of "+key)
		if pattern == "" {
			continue
		}
		if err := check(pattern); err != nil {
			r.Complain(item.At, "%s: %s", key, strings.TrimPrefix(err.Error(), "allow: "))
			continue
		}
		patterns = append(patterns, pattern)
	}
	return patterns
}
