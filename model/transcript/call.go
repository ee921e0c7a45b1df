package transcript

import (
	"encoding/json"
	"strings"

	"github.com/continuo-log/continuo/render"
)

// maxCall bounds the text of one call, in bytes, and keptOfLong is how much of a longer one is kept.
const (
	maxCall    = 1 << 20
	keptOfLong = 4 << 10
)

// callText is the text of one call as it comes, read as far as is needed to find its end.
type callText struct {
	text    strings.Builder
	over    bool // all of it has come
	tooLong bool

	begin    int // where the object begins in text; -1 when something else stands there
	depth    int // of braces
	inString bool
	escaped  bool
	newlines int // line ends in a row, where it is no object
}

// The bytes that may stand before a call's object: white space, and the line that opens a code fence.
const (
	space     = " \t\r\n"
	fenceMark = "```"
)

// add takes more of the event's text and returns what does not belong to the call.
func (c *callText) add(text string) (rest string) {
	if c.text.Len() == 0 {
		text = strings.TrimLeft(text, space)
	}
	for i := range len(text) {
		c.text.WriteByte(text[i])
		c.step(text[i])
		if c.over {
			return text[i+1:]
		}
		if c.text.Len() == maxCall {
			c.over, c.tooLong = true, true
			return text[i+1:]
		}
	}
	return ""
}

func (c *callText) step(b byte) {
	switch {
	case c.depth > 0:
		c.stepObject(b)
	case c.begin >= 0 && b == '{':
		c.begin = c.text.Len() - 1
		c.depth = 1
	case c.begin >= 0 && c.maybeLead():
	default:
		c.begin = -1
		c.stepOther(b)
	}
}

// maybeLead reports whether an object may still begin behind what has come: nothing but a fence's line.
func (c *callText) maybeLead() bool {
	lead := c.text.String()
	if len(lead) > 64 {
		return false
	}
	if strings.HasPrefix(fenceMark, lead) {
		return true
	}
	info, fenced := strings.CutPrefix(lead, fenceMark)
	line, after, ended := strings.Cut(info, "\n")
	return fenced && !strings.ContainsAny(line, "`\"'(") && (!ended || strings.Trim(after, space) == "")
}

// stepObject looks for the brace that closes the object.
func (c *callText) stepObject(b byte) {
	switch {
	case c.escaped:
		c.escaped = false
	case c.inString && b == '\\':
		c.escaped = true
	case b == '"':
		c.inString = !c.inString
	case c.inString:
	case b == '{':
		c.depth++
	case b == '}':
		c.depth--
		c.over = c.depth == 0
	}
}

// stepOther looks for the empty line behind what is no object.
func (c *callText) stepOther(b byte) {
	switch b {
	case '\n':
		c.newlines++
		c.over = c.newlines == 2
	case '\r':
	default:
		c.newlines = 0
	}
}

// read returns the call, or a malformed one.
func (c *callText) read(cut render.CallCut) (name, arguments string) {
	text := c.text.String()
	if cut == render.CutLong {
		return render.MalformedCall, render.MalformedArguments(text[:keptOfLong], cut)
	}
	if c.begin > 0 {
		text = text[c.begin:]
	}
	name, arguments, err := render.ParseCall(text)
	if err != nil {
		return render.MalformedCall, render.MalformedArguments(strings.TrimSpace(text), cut)
	}
	return name, arguments
}

// readPart returns what has come of a call that was cut off. The name is empty while it is not known.
func (c *callText) readPart() (name, arguments string) {
	text := c.text.String()
	if c.depth == 0 {
		return "", text
	}
	text = text[c.begin:]
	decoder := json.NewDecoder(strings.NewReader(text))
	_, _ = decoder.Token() // the opening brace
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			break
		}
		if key == "args" {
			arguments = strings.TrimLeft(text[decoder.InputOffset():], ":"+space)
		}
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			break
		}
		if key == "name" {
			_ = json.Unmarshal(value, &name) // what is no text is no name
		}
	}
	return name, arguments
}

// isClosing reports whether text behind a call closes a fence, or is nothing.
func isClosing(text string) bool { return strings.Trim(text, space+"`") == "" }
