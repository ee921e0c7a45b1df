package workflow

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/continuo-log/continuo/internal/yamlform"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/types"
)

// scope is the set of names that an expression can use at its position.
type scope struct {
	inputs  fieldList
	nodes   map[string]fieldList // those that may have finished by then
	later   []string             // the others
	node    string               // the node before which the later ones do not run
	outputs *fieldList           // outputs, and visit; nil where the expression has neither
}

// scopeOf computes the scope of a position. If edges could not be read, any node may have finished.
func (r *reader) scopeOf(at site) *scope {
	s := &scope{inputs: r.inputs, nodes: map[string]fieldList{}, node: at.node}
	index := slices.Index(r.nodeIDs(), at.node)
	if at.role == ofCheck || at.role == ofEdge {
		s.outputs = &fieldList{open: true}
		if index >= 0 {
			s.outputs = &r.drafts[index].outputs
		}
	}
	certain := at.role != ofRun && index >= 0 && !slices.ContainsFunc(r.edges, func(d draftEdge) bool { return !d.sound() })
	var before []string
	if certain {
		before = r.workflow.Ancestors(at.node)
	}
	for i, id := range r.nodeIDs() {
		if !certain || slices.Contains(before, id) || at.role == ofEdge && i == index {
			s.nodes[id] = r.drafts[i].outputs
		} else {
			s.later = append(s.later, id)
		}
	}
	return s
}

// types are the scope's names with their types, for the type checker; of the nodes, only those that the expression
// uses.
func (s *scope) types(named map[string]bool) types.Map {
	nodes := types.Map{types.Extra: types.Any}
	for id := range named {
		nodes[id] = s.nodes[id].types()
	}
	env := types.Map{"inputs": s.inputs.types(), "nodes": nodes}
	if s.outputs != nil {
		env["outputs"], env["visit"] = s.outputs.types(), types.Int
	}
	return env
}

func (f fieldList) types() types.Map {
	fields := types.Map{}
	for _, field := range f.list {
		fields[field.Name] = exprType(field)
	}
	if f.open {
		fields[types.Extra] = types.Any
	}
	return fields
}

// exprType is the type of a field's values; for a field that may be missing it is any type.
func exprType(field Field) types.Type {
	if field.Optional && field.Default == nil {
		return types.Any
	}
	switch field.Type {
	case String:
		return types.String
	case Number:
		return types.Float64
	case Integer:
		return types.Int
	case Boolean:
		return types.Bool
	case Array:
		return types.TypeOf([]any{})
	case Object:
		return types.TypeOf(map[string]any{})
	default:
		return types.Any
	}
}

// functions are those that expressions may call. Excluded are functions that read a clock (now, date, duration,
// timezone) or iterate over an object in random order (keys, values, toPairs, fromPairs, groupBy), those whose
// results can be far larger than their arguments (repeat, replace, reduce, uniq), and others that conditions do not
// need.
var functions = strings.Fields(`
	all any none one count filter find findIndex findLast findLastIndex map sum sortBy
	abs ceil concat first flatten float floor get hasPrefix hasSuffix indexOf int join last lastIndexOf len lower max mean median min
	reverse round sort split string take toJSON trim trimPrefix trimSuffix upper`)

func allowedFunction(name string) bool { return slices.Contains(functions, name) }

// nameCheck finds undefined names in an expression.
type nameCheck struct {
	scope  *scope
	source string
	named  map[string]bool  // the ids of the nodes that the expression uses
	read   map[string]bool  // those whose outputs it reads without ?.
	tested map[string]bool  // those that it tests with "id" in nodes
	own    bool             // it uses outputs
	wrong  *wrongExpression // the first in the text
}

// needed are the nodes whose outputs the expression requires, in the order of their ids.
func (c *nameCheck) needed() []string {
	var needed []string
	for id := range c.read {
		if !c.tested[id] {
			needed = append(needed, id)
		}
	}
	slices.Sort(needed)
	return needed
}

// complain keeps the error that is first in the text.
func (c *nameCheck) complain(at ast.Node, format string, args ...any) {
	found := positionInText(c.source, at.Location().From)
	if c.wrong == nil || found.Line < c.wrong.at.Line || found.Line == c.wrong.at.Line && found.Column < c.wrong.at.Column {
		c.wrong = &wrongExpression{found, fmt.Sprintf(format, args...)}
	}
}

func positionInText(text string, characters int) position {
	runes := []rune(text)
	before := string(runes[:min(max(characters, 0), len(runes))])
	line := strings.Count(before, "\n")
	return position{Line: line + 1, Column: utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1}
}

// Visit is called for a syntax node after its children.
func (c *nameCheck) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		c.checkName(n)
	case *ast.MemberNode:
		c.checkMember(n)
	case *ast.BinaryNode:
		c.checkComparison(n)
	case *ast.BuiltinNode:
		if !allowedFunction(n.Name) {
			c.complain(n, "the function %s cannot be used in workflows%s", n.Name, yamlform.DidYouMean(n.Name, functions))
		}
	case *ast.CallNode:
		if name, ok := n.Callee.(*ast.IdentifierNode); ok {
			c.complain(n, "there is no function %s%s", yamlform.Quoted(name.Value), yamlform.DidYouMean(name.Value, functions))
		} else {
			c.complain(n, "values have no functions of their own; write len(x) instead of x.len()")
		}
	case *ast.VariableDeclaratorNode, *ast.SequenceNode:
		c.complain(n, "let and ; cannot be used in workflows; write one expression")
	}
}

func (c *nameCheck) checkName(n *ast.IdentifierNode) {
	known := []string{"inputs", "nodes"}
	if c.scope.outputs != nil {
		known = append(known, "outputs", "visit")
	}
	_, isNode := c.scope.nodes[n.Value]
	c.own = c.own || n.Value == "outputs"
	switch {
	case slices.Contains(known, n.Value):
	case n.Value == "outputs" || n.Value == "visit":
		c.complain(n, "%s can be spoken of in the condition of an edge and the check of a node only; write nodes.<id>.<output>", n.Value)
	case isNode:
		c.complain(n, "there is no %s here; write nodes.%s", n.Value, n.Value)
	case slices.ContainsFunc(c.scope.inputs.list, func(f Field) bool { return f.Name == n.Value }):
		c.complain(n, "there is no %s here; write inputs.%s", n.Value, n.Value)
	case c.scope.outputs != nil && slices.ContainsFunc(c.scope.outputs.list, func(f Field) bool { return f.Name == n.Value }):
		c.complain(n, "there is no %s here; write outputs.%s", n.Value, n.Value)
	default:
		c.complain(n, "there is no %s here%s", yamlform.Quoted(n.Value), yamlform.DidYouMean(n.Value, known))
	}
}

// checkMember checks inputs.x, outputs.x, nodes.x and nodes.x.y, in any notation.
func (c *nameCheck) checkMember(n *ast.MemberNode) {
	property, ok := n.Property.(*ast.StringNode)
	if !ok {
		return
	}
	switch base := unchained(n.Node).(type) {
	case *ast.IdentifierNode:
		switch {
		case base.Value == "inputs":
			c.checkField(property, c.scope.inputs, "the workflow has no input %s%s")
		case base.Value == "outputs" && c.scope.outputs != nil:
			c.checkField(property, *c.scope.outputs, "the node "+c.scope.node+" has no output %s%s")
		case base.Value == "nodes":
			c.checkNode(property)
		}
	case *ast.MemberNode:
		if id, outputs, ok := c.nodeOf(base); ok {
			if !n.Optional {
				c.read[id] = true
			}
			c.checkField(property, outputs, "the node "+id+" has no output %s%s")
		}
	}
}

func (c *nameCheck) checkNode(id *ast.StringNode) {
	if _, ok := c.scope.nodes[id.Value]; ok {
		c.named[id.Value] = true
		return
	}
	if slices.Contains(c.scope.later, id.Value) {
		hint := "no edges lead from it to here"
		if id.Value == c.scope.node {
			hint = "it has only begun itself"
			if c.scope.outputs != nil {
				hint = "write outputs for its own outputs"
			}
		}
		c.complain(id, "the node %s need not have finished by then: %s", id.Value, hint)
		return
	}
	known := slices.Collect(maps.Keys(c.scope.nodes))
	c.complain(id, "there is no node %s%s", yamlform.Quoted(id.Value), yamlform.DidYouMean(id.Value, slices.Concat(known, c.scope.later)))
}

func (c *nameCheck) checkField(name *ast.StringNode, fields fieldList, format string) {
	names := []string{}
	for _, field := range fields.list {
		names = append(names, field.Name)
	}
	if !fields.open && !slices.Contains(names, name.Value) {
		c.complain(name, format, yamlform.Quoted(name.Value), yamlform.DidYouMean(name.Value, names))
	}
}

// checkComparison finds comparisons with a text that the other side can never equal.
func (c *nameCheck) checkComparison(n *ast.BinaryNode) {
	switch n.Operator {
	case "==", "!=":
		c.checkChoice(n.Left, n.Right)
		c.checkChoice(n.Right, n.Left)
	case "in":
		if list, ok := n.Right.(*ast.ArrayNode); ok {
			for _, item := range list.Nodes {
				c.checkChoice(n.Left, item)
			}
		}
		if base, ok := n.Right.(*ast.IdentifierNode); ok && base.Value == "nodes" {
			if id, ok := n.Left.(*ast.StringNode); ok {
				c.tested[id.Value] = true
				c.checkNode(id)
			}
		}
	}
}

func (c *nameCheck) checkChoice(field, text ast.Node) {
	value, ok := text.(*ast.StringNode)
	member, isMember := unchained(field).(*ast.MemberNode)
	if !ok || !isMember {
		return
	}
	if f := c.fieldOf(member); len(f.Enum) > 0 && !slices.Contains(f.Enum, value.Value) {
		c.complain(value, "%s is never %q: it is one of %s", f.Name, yamlform.Shorten(value.Value), quotedList(f.Enum))
	}
}

// fieldOf finds the declared field of a member expression; the zero Field when there is none.
func (c *nameCheck) fieldOf(n *ast.MemberNode) Field {
	var fields fieldList
	switch base := unchained(n.Node).(type) {
	case *ast.IdentifierNode:
		if base.Value == "inputs" {
			fields = c.scope.inputs
		} else if base.Value == "outputs" && c.scope.outputs != nil {
			fields = *c.scope.outputs
		}
	case *ast.MemberNode:
		_, fields, _ = c.nodeOf(base)
	}
	name, _ := n.Property.(*ast.StringNode)
	for _, field := range fields.list {
		if name != nil && field.Name == name.Value {
			return field
		}
	}
	return Field{}
}

// nodeOf finds the node of a nodes.x expression.
func (c *nameCheck) nodeOf(n *ast.MemberNode) (id string, outputs fieldList, ok bool) {
	base, isName := unchained(n.Node).(*ast.IdentifierNode)
	name, isText := n.Property.(*ast.StringNode)
	if !isName || !isText || base.Value != "nodes" {
		return "", fieldList{}, false
	}
	outputs, ok = c.scope.nodes[name.Value]
	return name.Value, outputs, ok
}

func unchained(n ast.Node) ast.Node {
	if chain, ok := n.(*ast.ChainNode); ok {
		return chain.Node
	}
	return n
}
