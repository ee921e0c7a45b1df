package workflow

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// yamlKind is what a YAML value is.
type yamlKind int

const (
	yamlNull yamlKind = iota
	yamlText
	yamlWhole
	yamlNumber
	yamlBool
	yamlList
	yamlMapping
)

func (k yamlKind) String() string {
	return [...]string{"nothing", "a text", "a whole number", "a number", "true or false", "a list", "a mapping"}[k]
}

// yamlValue is a value of the file and its place.
type yamlValue struct {
	kind   yamlKind
	at     place
	text   string // of a scalar, as it is written; of a text, what it says
	form   token.Type
	items  []*yamlValue
	fields []yamlField // in order
	// source are the lines of the file from the one on which a text begins.
	source []string
}

// yamlField is one key of a mapping with its value.
type yamlField struct{ key, value *yamlValue }

// has reports whether a mapping has a key, with or without a value.
func (v *yamlValue) has(key string) bool {
	return slices.ContainsFunc(v.fields, func(f yamlField) bool { return f.key.text == key })
}

// yamlError is a complaint about the file's form.
type yamlError struct {
	at      place
	message string
}

const (
	maxFileBytes = 256 << 10
	// maxNesting bounds brackets within brackets, and dashes on one line: the parser recurses, and takes
	// time that grows with the square of the depth.
	maxNesting = 16
	// maxLevels bounds mappings and lists within each other, however they are written.
	maxLevels = 32
	// maxKeys bounds the keys of the whole file: the parser's time grows with the square of a mapping's.
	maxKeys = 5000
)

// parseYAML reads the file: one mapping, with plain scalars, lists and mappings below it.
func parseYAML(data []byte) (*yamlValue, *yamlError) {
	if len(data) > maxFileBytes {
		return nil, &yamlError{place{1, 1}, fmt.Sprintf("the file has %d bytes, more than the limit of %d; long texts belong into files that a step reads", len(data), maxFileBytes)}
	}
	text := strings.TrimPrefix(string(data), "\ufeff")
	if err := checkCharacters(text); err != nil {
		return nil, err
	}
	tokens := lexer.Tokenize(text)
	if err := checkNesting(tokens); err != nil {
		return nil, err
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, fromParser(err)
	}
	c := converter{lines: strings.Split(text, "\n")}
	return c.convertFile(file)
}

// checkCharacters refuses what YAML files cannot hold: bytes that are not UTF-8, and control characters.
func checkCharacters(text string) *yamlError {
	at := place{1, 1}
	for i, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd") {
			return &yamlError{at, "the file is not UTF-8 text"}
		}
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == '\x7f' {
			return &yamlError{at, fmt.Sprintf("the control character U+%04X cannot stand here", r)}
		}
		at.column++
		if r == '\n' {
			at = place{at.line + 1, 1}
		}
	}
	return nil
}

func checkNesting(tokens token.Tokens) *yamlError {
	brackets, dashes, line, keys := 0, 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			line, dashes = t.Position.Line, 0
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			brackets++
		case token.SequenceEndType, token.MappingEndType:
			brackets--
		case token.SequenceEntryType, token.MappingKeyType, token.TagType, token.AnchorType:
			dashes++
		case token.MappingValueType:
			keys++
		}
		if keys > maxKeys {
			return complaint(t, fmt.Sprintf("the file has more than %d keys", maxKeys))
		}
		if brackets > maxNesting || dashes > maxNesting {
			return complaint(t, "values are nested too deeply for a workflow")
		}
	}
	return nil
}

func fromParser(err error) *yamlError {
	var told yaml.Error
	if !errors.As(err, &told) {
		return &yamlError{place{1, 1}, "not valid YAML"}
	}
	message := strings.NewReplacer("\t", `\t`, "\n", " ").Replace(told.GetMessage())
	return complaint(told.GetToken(), "not valid YAML: "+message)
}

func complaint(at *token.Token, message string) *yamlError {
	if at == nil || at.Position == nil {
		return &yamlError{place{1, 1}, message}
	}
	return &yamlError{placeOf(at), message}
}

func placeOf(at *token.Token) place { return place{at.Position.Line, at.Position.Column} }

// converter makes values of the parser's nodes.
type converter struct {
	lines []string // of the file
	level int
}

func (c *converter) convertFile(file *ast.File) (*yamlValue, *yamlError) {
	var bodies []ast.Node
	for _, document := range file.Docs {
		if document.Body != nil {
			bodies = append(bodies, document.Body)
		}
	}
	if len(bodies) == 0 {
		return nil, &yamlError{place{1, 1}, "the file says nothing; a workflow has nodes, and edges between them"}
	}
	root, err := c.convert(bodies[0])
	switch {
	case err != nil:
		return nil, err
	case len(bodies) > 1:
		return nil, complaint(bodies[1].GetToken(), "a second YAML document begins here; write each workflow into a file of its own")
	case root.kind != yamlMapping:
		return nil, &yamlError{root.at, "the file must be a mapping with the keys nodes and edges, not " + root.kind.String()}
	}
	return root, nil
}

func (c *converter) convert(from ast.Node) (*yamlValue, *yamlError) {
	token := from.GetToken()
	to := &yamlValue{text: token.Value, at: placeOf(token), form: token.Type}
	switch from := from.(type) {
	case *ast.NullNode:
		to.kind = yamlNull
	case *ast.StringNode:
		to.kind, to.text = yamlText, from.Value
	case *ast.LiteralNode:
		to.kind, to.text = yamlText, from.Value.Value
	case *ast.IntegerNode:
		to.kind = yamlWhole
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		to.kind = yamlNumber
	case *ast.BoolNode:
		to.kind = yamlBool
	case *ast.SequenceNode:
		return to, c.nested(token, func() *yamlError { return c.convertItems(to, from) })
	case *ast.MappingNode:
		return to, c.nested(token, func() *yamlError { return c.convertFields(to, from) })
	case *ast.AliasNode, *ast.AnchorNode, *ast.MergeKeyNode:
		return nil, complaint(token, "anchors and aliases cannot be used in workflows; write the value out")
	case *ast.TagNode:
		return nil, complaint(token, "tags cannot be used in workflows; write the value without one")
	default:
		return nil, complaint(token, "this form of YAML cannot be used in workflows")
	}
	if line := to.at.line - 1; line >= 0 && line < len(c.lines) {
		to.source = c.lines[line:]
	}
	return to, nil
}

func (c *converter) nested(at *token.Token, convert func() *yamlError) *yamlError {
	if c.level == maxLevels {
		return complaint(at, "values are nested too deeply for a workflow")
	}
	c.level++
	defer func() { c.level-- }()
	return convert()
}

func (c *converter) convertItems(to *yamlValue, from *ast.SequenceNode) *yamlError {
	to.kind = yamlList
	for _, value := range from.Values {
		item, err := c.convert(value)
		if err != nil {
			return err
		}
		to.items = append(to.items, item)
	}
	return nil
}

func (c *converter) convertFields(to *yamlValue, from *ast.MappingNode) *yamlError {
	to.kind = yamlMapping
	seen := map[string]bool{}
	for _, pair := range from.Values {
		key, err := c.convert(pair.Key)
		if err != nil {
			return err
		}
		if key.kind != yamlText {
			return complaint(pair.Key.GetToken(), "a key must be a text; put it in quotes")
		}
		if seen[key.text] {
			return complaint(pair.Key.GetToken(), "the key "+word(key.text)+" is there twice")
		}
		seen[key.text] = true
		value, err := c.convert(pair.Value)
		if err != nil {
			return err
		}
		if value.kind == yamlNull { // often nothing is there to point at
			value.at = key.at
		}
		to.fields = append(to.fields, yamlField{key, value})
	}
	if len(to.fields) > 0 && to.form != token.MappingStartType {
		to.at = to.fields[0].key.at
	}
	return nil
}

// placeIn is the place in the file of a character of a text, as well as it can be told: exact in texts that stand on
// one line without escapes, and in those after a bar. Line and column count from 1 within the text.
func (v *yamlValue) placeIn(within place) place {
	if len(v.source) == 0 || v.kind != yamlText {
		return v.at
	}
	switch v.form {
	case token.LiteralType:
		return place{v.at.line + within.line, v.indent() + within.column}
	case token.StringType:
		return v.placeInLine(0, within)
	case token.SingleQuoteType, token.DoubleQuoteType:
		return v.placeInLine(1, within)
	}
	return v.at
}

// indent counts the spaces before the text that follows a bar: those of its first line that says something.
func (v *yamlValue) indent() int {
	for _, line := range v.source[1:] {
		if text := strings.TrimLeft(line, " "); strings.TrimSpace(text) != "" {
			return len(line) - len(text)
		}
	}
	return 0
}

func (v *yamlValue) placeInLine(quote int, within place) place {
	line := []rune(v.source[0])
	start := min(v.at.column-1+quote, len(line))
	if within.line == 1 && strings.HasPrefix(string(line[start:]), strings.TrimRight(v.text, "\n")) {
		return place{v.at.line, start + within.column}
	}
	return v.at
}
