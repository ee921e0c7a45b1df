package workflow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// The repairs of JSON that a model wrote, as recorded in the log.
const (
	repairedComma   = "a comma before a closing bracket was left out"
	repairedComment = "comments were left out"
	repairedBreaks  = "line breaks in strings were taken as they are"
	repairedEscape  = "backslashes that begin no escape were taken as they are"
	repairedQuotes  = "single quotes were read as double quotes"
	repairedName    = "names without quotes were read as names"
	repairedLiteral = "True, False and None were read as true, false and null"
)

// parseLenient reads one JSON value with the deviations that models write, where it has one meaning: comments, commas
// before closing brackets, line breaks in strings, single quotes, names without quotes, or Python's literals. It
// returns the repairs; valid JSON has none. The time is linear in the length of the text.
func parseLenient(text string) (value any, repairs []string, err error) {
	text = strings.TrimSpace(text)
	if json.Valid([]byte(text)) {
		if rawjson.Depth(json.RawMessage(text)) > maxDepth {
			return nil, nil, errTooDeep
		}
		err = json.NewDecoder(bytes.NewReader([]byte(text))).Decode(&value)
		return value, nil, err
	}
	p := &lenientParser{text: text}
	if value, err = p.value(0); err == nil {
		err = p.end()
	}
	return value, p.repairs, err
}

var errTooDeep = fmt.Errorf("nested more than %d levels deep", maxDepth)

// lenientParser is a parser at a position in a text.
type lenientParser struct {
	text    string
	at      int
	repairs []string
}

func (p *lenientParser) repaired(what string) {
	if !slices.Contains(p.repairs, what) {
		p.repairs = append(p.repairs, what)
	}
}

// end checks that only spaces and comments are left.
func (p *lenientParser) end() error {
	p.space()
	if p.at < len(p.text) {
		return errors.New("there is more after the JSON value")
	}
	return nil
}

// space skips spaces and comments.
func (p *lenientParser) space() {
	for p.at < len(p.text) {
		rest := p.text[p.at:]
		end := -1
		switch {
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0:
			p.at++
			continue
		case strings.HasPrefix(rest, "//"), rest[0] == '#':
			if end = strings.IndexByte(rest, '\n'); end < 0 {
				end = len(rest)
			}
		case strings.HasPrefix(rest, "/*"):
			if end = strings.Index(rest, "*/"); end < 0 {
				return
			}
			end += len("*/")
		default:
			return
		}
		p.at += end
		p.repaired(repairedComment)
	}
}

// next is the first byte after spaces and comments, 0 at the end.
func (p *lenientParser) next() byte {
	p.space()
	if p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

func (p *lenientParser) value(depth int) (any, error) {
	switch c := p.next(); {
	case depth > maxDepth:
		return nil, errTooDeep
	case c == 0:
		return nil, errors.New("it ends in the middle of a value")
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.array(depth)
	case c == '"' || c == '\'':
		return p.quoted()
	default:
		return p.literal()
	}
}

func (p *lenientParser) object(depth int) (any, error) {
	p.at++ // the bracket
	object := map[string]any{}
	for {
		if done, err := p.closes('}', len(object) > 0); done || err != nil {
			return object, err
		}
		name, err := p.name()
		if err != nil {
			return nil, err
		}
		if p.next() != ':' {
			return nil, fmt.Errorf("the name %q is not followed by a colon", name)
		}
		p.at++
		if object[name], err = p.value(depth + 1); err != nil {
			return nil, err
		}
	}
}

func (p *lenientParser) array(depth int) (any, error) {
	p.at++ // the bracket
	array := []any{}
	for {
		if done, err := p.closes(']', len(array) > 0); done || err != nil {
			return array, err
		}
		value, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		array = append(array, value)
	}
}

// closes reads a closing bracket, or the comma that is required before a further member.
func (p *lenientParser) closes(bracket byte, begun bool) (bool, error) {
	comma := false
	if begun && p.next() == ',' {
		p.at++
		comma = true
	}
	switch c := p.next(); {
	case c == bracket:
		p.at++
		if comma {
			p.repaired(repairedComma)
		}
		return true, nil
	case c == 0:
		return false, fmt.Errorf("a %c is missing at its end", bracket)
	case begun && !comma:
		return false, fmt.Errorf("a comma is missing before %q", p.text[p.at:p.at+min(20, len(p.text)-p.at)])
	}
	return false, nil
}

// name reads the name of a member, in quotes or without.
func (p *lenientParser) name() (string, error) {
	if c := p.next(); c == '"' || c == '\'' {
		return p.quoted()
	}
	end := p.at
	for end < len(p.text) && isNameByte(p.text[end]) {
		end++
	}
	if end == p.at {
		return "", fmt.Errorf("a name is missing before %q", p.text[p.at:p.at+min(20, len(p.text)-p.at)])
	}
	name := p.text[p.at:end]
	p.at = end
	p.repaired(repairedName)
	return name, nil
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '$'
}

// literal reads a number or one of true, false, null, True, False and None.
func (p *lenientParser) literal() (any, error) {
	end := p.at
	for end < len(p.text) && (isNameByte(p.text[end]) || p.text[end] == '+' || p.text[end] == '.') {
		end++
	}
	literal := p.text[p.at:end]
	p.at = end
	switch literal {
	case "True", "False", "None":
		p.repaired(repairedLiteral)
	}
	switch literal {
	case "true", "True":
		return true, nil
	case "false", "False":
		return false, nil
	case "null", "None":
		return nil, nil
	}
	var number float64
	if err := json.Unmarshal([]byte(literal), &number); err != nil {
		return nil, fmt.Errorf("%q is no value of JSON", literal+p.text[end:min(end+1, len(p.text))])
	}
	return number, nil
}

// quoted reads a string in double or single quotes.
func (p *lenientParser) quoted() (string, error) {
	quote := p.text[p.at]
	if quote == '\'' {
		p.repaired(repairedQuotes)
	}
	p.at++
	var text strings.Builder
	for p.at < len(p.text) {
		c := p.text[p.at]
		p.at++
		switch {
		case c == quote:
			return strings.ToValidUTF8(text.String(), "\uFFFD"), nil
		case c == '\\':
			if err := p.escape(&text); err != nil {
				return "", err
			}
		default:
			if c < ' ' {
				p.repaired(repairedBreaks)
			}
			text.WriteByte(c)
		}
	}
	return "", errors.New("a string has no closing quote")
}

// escapes are the characters after a backslash, with the ones that they represent.
var escapes = map[byte]byte{'"': '"', '\'': '\'', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', '\n': '\n'}

// escape reads an escape sequence after its backslash.
func (p *lenientParser) escape(text *strings.Builder) error {
	if p.at == len(p.text) {
		return errors.New("a string has no closing quote")
	}
	c := p.text[p.at]
	p.at++
	plain, known := escapes[c]
	switch {
	case c == 'u':
		return p.unicode(text)
	case known:
		text.WriteByte(plain)
	default:
		p.repaired(repairedEscape)
		text.WriteByte('\\')
		text.WriteByte(c)
	}
	return nil
}

// unicode reads four hexadecimal digits, and the second half of a surrogate pair.
func (p *lenientParser) unicode(text *strings.Builder) error {
	first, err := p.hex()
	if err != nil {
		return err
	}
	quoted := fmt.Sprintf(`"\u%04x"`, first)
	if first >= 0xD800 && first < 0xDC00 && strings.HasPrefix(p.text[p.at:], `\u`) {
		p.at += len(`\u`)
		second, err := p.hex()
		if err != nil {
			return err
		}
		quoted = fmt.Sprintf(`"\u%04x\u%04x"`, first, second)
	}
	decoded, ok := rawjson.String(json.RawMessage(quoted))
	if !ok {
		decoded = string(utf8.RuneError)
	}
	text.WriteString(decoded)
	return nil
}

func (p *lenientParser) hex() (uint64, error) {
	if len(p.text)-p.at < 4 {
		return 0, errors.New(`\u needs four hexadecimal digits`)
	}
	code, err := strconv.ParseUint(p.text[p.at:p.at+4], 16, 32)
	if err != nil {
		return 0, errors.New(`\u needs four hexadecimal digits`)
	}
	p.at += 4
	return code, nil
}
