package workflow

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/yamltree"
	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"
)

const (
	maxExpression = 2000 // bytes
	maxTerms      = 500  // nodes of the syntax tree
)

// pendingExpression is compiled after the whole file was read.
type pendingExpression struct {
	*Expression
	value     *yamltree.Node
	what      string // the key, for error messages
	condition bool
	site      site
}

// role is the purpose of an expression.
type role int

const (
	ofRun    role = iota // the outputs of the run
	ofInputs             // of a node
	ofCheck              // of a node
	ofEdge               // that leaves a node
)

// site is the position of an expression in the workflow.
type site struct {
	role role
	node string // its id; "" for none, or for one that does not exist
}

// readExpression registers an expression; it is complete when compileExpressions has reported no error.
func (r *reader) readExpression(v *yamltree.Node, what string, at site) *Expression {
	e := &Expression{Line: v.At.Line}
	switch {
	case v.Kind == yamltree.List || v.Kind == yamltree.Mapping || v.Kind == yamltree.Null:
		r.Complain(v.At, "%s must be an expression, such as inputs.topic, not %s", what, v.Kind)
		return e
	case strings.TrimSpace(v.Text) == "":
		r.Complain(v.At, "%s is empty; write an expression, or remove the key", what)
		return e
	case len(v.Text) > maxExpression:
		r.Complain(v.At, "%s has %d bytes, more than the limit of %d for an expression", what, len(v.Text), maxExpression)
		return e
	}
	e.Text = strings.TrimRight(v.Text, " \t\r\n")
	r.pending = append(r.pending, pendingExpression{e, v, what, at.role == ofCheck || at.role == ofEdge, at})
	return e
}

func (r *reader) compileExpressions() {
	scopes := map[site]*scope{}
	for _, p := range r.pending {
		if scopes[p.site] == nil {
			scopes[p.site] = r.scopeOf(p.site)
		}
		compiled, wrong := compile(p.Text, scopes[p.site], p.condition)
		if wrong != nil {
			r.Complain(p.value.PlaceIn(wrong.at), "%s: %s", p.what, wrong.message)
			continue
		}
		p.program, p.nodes = compiled.program, slices.Sorted(maps.Keys(compiled.names.named))
		p.needs, p.own = compiled.names.needed(), compiled.names.own
	}
}

// wrongExpression is an error in an expression, and its position within it.
type wrongExpression struct {
	at      position
	message string
}

// compiled is an expression's program, with the names that it uses.
type compiled struct {
	program *vm.Program
	names   *nameCheck
}

// compile checks an expression against the known types of the values, and makes a program that does not rely on them:
// an optional value may be nil, a node may not have finished.
func compile(text string, s *scope, condition bool) (made compiled, wrong *wrongExpression) {
	defer func() {
		if panicked := recover(); panicked != nil {
			made, wrong = compiled{}, &wrongExpression{position{Line: 1, Column: 1}, fmt.Sprintf("the expression cannot be read: %v", panicked)}
		}
	}()
	config := conf.CreateNew()
	config.MaxNodes = maxTerms
	tree, err := parser.ParseWithConfig(text, config)
	if err != nil {
		return compiled{}, wrongFrom(err, "not a valid expression: ")
	}
	names := &nameCheck{scope: s, source: text, named: map[string]bool{}, read: map[string]bool{}, tested: map[string]bool{}}
	ast.Walk(&tree.Node, names)
	if names.wrong != nil {
		return compiled{}, names.wrong
	}
	config.WithEnv(s.types(names.named))
	if tree, err = checker.ParseCheck(text, config); err != nil {
		return compiled{}, wrongFrom(err, "")
	}
	if kind := tree.Node.Type().Kind(); condition && kind != reflect.Bool && kind != reflect.Interface {
		return compiled{}, &wrongExpression{position{Line: 1, Column: 1}, "a condition must be true or false, and this is of the type " + plainTypes(tree.Node.Type().String()) + "; compare it with something"}
	}
	program, wrong := compileOpen(text)
	return compiled{program, names}, wrong
}

// compileOpen makes the program, with step counting.
func compileOpen(text string) (*vm.Program, *wrongExpression) {
	open := types.Map{stepFunction: types.TypeOf(func(...any) any { return nil })}
	for _, name := range []string{"inputs", "nodes", "outputs", "visit"} {
		open[name] = types.Any
	}
	options := []expr.Option{expr.Env(open), expr.Optimize(false), expr.MaxNodes(2 * maxTerms), expr.Patch(stepCounter{})}
	for name := range conf.CreateNew().Builtins {
		if !allowedFunction(name) {
			options = append(options, expr.DisableBuiltin(name))
		}
	}
	program, err := expr.Compile(text, options...)
	if err != nil {
		return nil, wrongFrom(err, "")
	}
	return program, nil
}

// stepCounter inserts the counting of values that are made from each item of a list.
type stepCounter struct{}

// Visit is called for a syntax node after its children.
func (stepCounter) Visit(node *ast.Node) {
	predicate, ok := (*node).(*ast.PredicateNode)
	if !ok {
		return
	}
	callee := &ast.IdentifierNode{Value: stepFunction}
	call := &ast.CallNode{Callee: callee, Arguments: []ast.Node{predicate.Node}}
	callee.SetLocation(predicate.Node.Location())
	call.SetLocation(predicate.Node.Location())
	predicate.Node = call
}

func wrongFrom(err error, before string) *wrongExpression {
	var syntax *file.Error
	if !errors.As(err, &syntax) {
		return &wrongExpression{position{Line: 1, Column: 1}, before + plainTypes(err.Error())}
	}
	message := plainTypes(syntax.Message)
	if strings.Contains(message, `Operator("=")`) {
		message += "; write == to compare"
	}
	return &wrongExpression{position{Line: max(syntax.Line, 1), Column: syntax.Column + 1}, before + message}
}

var (
	goTypes  = regexp.MustCompile(`map\[string\]interface ?\{\}|\[\]interface ?\{\}|interface ?\{\}|\b(float64|bool|int)\b`)
	typeName = map[string]string{"float64": "number", "bool": "boolean", "int": "integer"}
)

// plainTypes replaces the names of Go types with those of workflows.
func plainTypes(message string) string {
	message = strings.NewReplacer("\n", " ", "unexpected token EOF", "it ends too early").Replace(message)
	return goTypes.ReplaceAllStringFunc(message, func(name string) string {
		switch {
		case typeName[name] != "":
			return typeName[name]
		case name[0] == 'm':
			return "object"
		case name[0] == '[':
			return "array"
		default:
			return "anything"
		}
	})
}
