package yamltree

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/token"
)

// checkCharacters refuses what YAML files cannot contain: bytes that are not UTF-8, and control characters.
func checkCharacters(text string) error {
	at := Position{1, 1}
	for i, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd") {
			return &Error{at, "the file is not UTF-8 text"}
		}
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == '\x7f' {
			return &Error{at, fmt.Sprintf("the control character U+%04X is not allowed here", r)}
		}
		at.Column++
		if r == '\n' {
			at = Position{at.Line + 1, 1}
		}
	}
	return nil
}

// checkTokens refuses what would make the parser recurse too deep or run too long.
func checkTokens(tokens token.Tokens, limits Options) error {
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
		if limits.MaxKeys > 0 && keys > limits.MaxKeys {
			return complaint(t, fmt.Sprintf("the file has more than %d keys", limits.MaxKeys))
		}
		if brackets > limits.MaxNesting || dashes > limits.MaxNesting {
			return complaint(t, "values are nested too deeply for "+limits.For)
		}
	}
	return nil
}

// fromParser takes the parser's message and position, without the excerpt of the file that it adds: that could contain
// secrets.
func fromParser(err error) error {
	var syntaxError yaml.Error
	if !errors.As(err, &syntaxError) {
		return &Error{Position{1, 1}, "not valid YAML"}
	}
	message := strings.NewReplacer("\t", `\t`, "\n", " ", "\r", " ").Replace(syntaxError.GetMessage())
	return complaint(syntaxError.GetToken(), "not valid YAML: "+message)
}

func complaint(at *token.Token, message string) error {
	if at == nil || at.Position == nil {
		return &Error{Position{1, 1}, message}
	}
	return &Error{positionOf(at), message}
}

func positionOf(at *token.Token) Position { return Position{at.Position.Line, at.Position.Column} }
