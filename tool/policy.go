package tool

import (
	"fmt"
	"slices"
	"strings"
)

// Decision is whether a call may run.
type Decision string

// The decisions, from the least to the most restrictive. An empty decision is Ask, an unknown one Deny.
const (
	Allow Decision = "allow" // it runs
	Ask   Decision = "ask"   // it waits for approval by a person
	Deny  Decision = "deny"  // it does not run, and the tool is not offered
)

// Policy decides which tools may run. Its lists hold patterns: a tool's own name, in which "*" stands for any
// run of characters, such as fs.read, github.* or *. If patterns of several lists match a name, the most
// restrictive list applies, regardless of order and specificity. The zero value asks about every call.
type Policy struct {
	Allow, Ask, Deny []string
	// Otherwise is the decision for names that no pattern matches. Default Ask.
	Otherwise Decision

	// with are the policies merged into this one; the most restrictive decision of all applies.
	with []Policy
}

// Decide returns whether calls of a tool may run.
func (p Policy) Decide(name string) Decision {
	decision := p.decideAlone(name)
	for _, other := range p.with {
		decision = stricter(decision, other.Decide(name))
	}
	return decision
}

// Merge returns a policy that decides as the stricter of both does. A policy that leaves all decisions to the
// other is Policy{Otherwise: Allow}, not the zero value.
func (p Policy) Merge(other Policy) Policy {
	p.with = append(slices.Clone(p.with), other)
	return p
}

// Offered returns the tools that are not denied, in their order.
func (p Policy) Offered(set Set) Set {
	var offered Set
	for _, tool := range set {
		if p.Decide(tool.Spec().Name) != Deny {
			offered = append(offered, tool)
		}
	}
	return offered
}

// Check returns an error for a pattern that no tool's name can match, and for an unknown decision.
func (p Policy) Check() error {
	for _, list := range []struct {
		name     string
		patterns []string
	}{{"allow", p.Allow}, {"ask", p.Ask}, {"deny", p.Deny}} {
		for _, pattern := range list.patterns {
			if err := checkPattern(pattern); err != nil {
				return fmt.Errorf("%s: %w", list.name, err)
			}
		}
	}
	if p.Otherwise != "" && !slices.Contains(byCare, p.Otherwise) {
		return fmt.Errorf("otherwise: there is no decision %q; write ask, allow or deny", p.Otherwise)
	}
	for _, other := range p.with {
		if err := other.Check(); err != nil {
			return err
		}
	}
	return nil
}

// decideAlone decides without the merged policies.
func (p Policy) decideAlone(name string) Decision {
	switch {
	case MatchesAny(p.Deny, name):
		return Deny
	case MatchesAny(p.Ask, name):
		return Ask
	case MatchesAny(p.Allow, name):
		return Allow
	}
	return stricter(Allow, p.Otherwise)
}

// byCare lists the decisions in order of restrictiveness.
var byCare = []Decision{Allow, Ask, Deny}

// stricter returns the more restrictive of two decisions.
func stricter(a, b Decision) Decision { return byCare[max(a.care(), b.care())] }

// care returns the index in byCare; unknown decisions count as Deny.
func (d Decision) care() int {
	if d == "" {
		d = Ask
	}
	if index := slices.Index(byCare, d); index >= 0 {
		return index
	}
	return len(byCare) - 1
}

// MatchesAny reports whether one of the patterns matches a name; in a pattern, * stands for any characters.
func MatchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, name) })
}

// matches reports whether a pattern matches a name.
func matches(pattern, name string) bool {
	before, after, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == name
	}
	rest, ok := strings.CutPrefix(name, before)
	parts := strings.Split(after, "*")
	last := len(parts) - 1
	for _, part := range parts[:last] {
		var found bool
		_, rest, found = strings.Cut(rest, part)
		ok = ok && found
	}
	return ok && strings.HasSuffix(rest, parts[last])
}

// maxPattern bounds a pattern, in bytes.
const maxPattern = 200

func checkPattern(pattern string) error {
	switch {
	case pattern == "":
		return fmt.Errorf("a pattern is empty; write a tool's name, or * for all")
	case len(pattern) > maxPattern:
		return fmt.Errorf("the pattern %.40q… has %d bytes, more than the limit of %d", pattern, len(pattern), maxPattern)
	case strings.ContainsFunc(pattern, neverInNames):
		return fmt.Errorf("the pattern %q matches no tool: names have letters, digits and the signs . _ - / :, and * matches any run of characters", pattern)
	}
	return nil
}

func neverInNames(r rune) bool {
	letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	return !letter && !strings.ContainsRune("._-/:*", r)
}
