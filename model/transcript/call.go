package transcript

import (
	"encoding/json"
	"strings"

	"github.com/continuo-log/continuo/render"
)

// maxCall bounds the text of one call, in bytes, and keptBytes is how many bytes of a longer one are kept.
const (
	maxCall   = 1 << 20
	keptBytes = 4 << 10
)

// callText is the text of one call as it arrives, parsed as far as needed to find its end.
type callText struct {
	text    strings.Builder
	over    bool // the text is complete
	tooLong bool

	begin    int // offset of the object in text; -1 when there is something else
	depth    int // of braces
	inString bool
	escaped  bool
	newlines int // consecutive line ends, if it is no object
}

// The bytes that may precede a call's object: white space, and the line that opens a code fence.
const (
	space     = " \t\r\n"
	fenceMark = "```"
)

// add adds text of the event and returns the rest that does not belong to the call.
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

// maybeLead reports whether an object may still follow: there is only the line of a fence so far.
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

// stepOther looks for the empty line after text that is no object.
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
		return render.MalformedCall, render.MalformedArguments(text[:keptBytes], cut)
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

// readPart returns the received part of an incomplete call. The name is empty while unknown.
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
			_ = json.Unmarshal(value, &name) // a name that is no string stays empty
		}
	}
	return name, arguments
}

// isClosing reports whether the text after a call is empty or closes a fence.
func isClosing(text string) bool { return strings.Trim(text, space+"`") == "" }
