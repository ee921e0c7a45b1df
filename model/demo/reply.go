package demo

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	introduction = "I am Continuo's built-in demo model, not a real one: I can only tell what I was shown."
	maxQuote     = 120 // characters repeated of a message
	maxResult    = 400 // characters repeated of a tool result
)

// reply decides the text and the calls of the answer.
func (r *request) reply() (text string, calls []call) {
	if r.step != nil {
		return r.replyStep()
	}
	if r.role != nil {
		return r.replyCrew()
	}
	if results, names := r.results(); len(results) > 0 {
		return r.describeResults(results, names), nil
	}
	users := r.users()
	if len(users) == 0 {
		return introduction + " " + r.count(), nil
	}
	newest := users[len(users)-1]
	calls, unknown := r.callsIn(newest)
	if len(calls) > 0 {
		return "As you asked, I call " + names(calls) + ".", calls
	}
	var parts []string
	if unknown != "" {
		parts = append(parts, r.refuse(unknown))
	}
	if isQuestion(newest) && len(users) > 1 {
		parts = append(parts, recall(newest, users[:len(users)-1]))
	}
	return strings.Join(append(parts, introduction, r.count(), describeUsers(users)), " "), nil
}

func names(calls []call) string {
	var list []string
	for _, call := range calls {
		list = append(list, call.name)
	}
	return strings.Join(list, " and ")
}

func (r *request) refuse(tool string) string {
	if len(r.tools) == 0 {
		return fmt.Sprintf("I cannot call %s: I was offered no tools.", tool)
	}
	return fmt.Sprintf("I cannot call %s: I was offered only %s.", tool, strings.Join(r.tools, ", "))
}

// count says how many messages were shown.
func (r *request) count() string {
	text := fmt.Sprintf("I was shown %s", plural(len(r.messages), "message"))
	if len(r.systems) > 0 {
		text += " and " + plural(len(r.systems), "system message")
	}
	if r.marker != "" {
		text += fmt.Sprintf("; a marker says that earlier ones were left out: %s", r.marker)
	}
	return text + "."
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// describeUsers repeats the user's messages that show continuity.
func describeUsers(users []string) string {
	newest := quote(users[len(users)-1], maxQuote)
	switch len(users) {
	case 1:
		return "You say: " + newest
	case 2:
		return fmt.Sprintf("You said before: %s Now you say: %s", quote(users[0], maxQuote), newest)
	default:
		return fmt.Sprintf("You began with: %s You said before: %s Now you say: %s",
			quote(users[0], maxQuote), quote(users[len(users)-2], maxQuote), newest)
	}
}

func (r *request) describeResults(results []message, names []string) string {
	parts := []string{introduction, r.count()}
	for i, result := range results {
		parts = append(parts, describeResult(result, names[i]))
	}
	return strings.Join(parts, " ")
}

func describeResult(result message, name string) string {
	return fmt.Sprintf("%s returned %s: %s", name, plural(utf8.RuneCountInString(result.text), "character"), quote(result.text, maxResult))
}

// quote puts a text into quotation marks, on one line, at most limit characters of it.
func quote(text string, limit int) string {
	text = strings.Join(strings.Fields(text), " ")
	if characters := []rune(text); len(characters) > limit {
		text = string(characters[:limit]) + "…"
	}
	return "“" + text + "”"
}

var directive = regexp.MustCompile(`(?i)\b(?:call|use)\s+([A-Za-z0-9_.-]+)`)

// callsIn finds the calls that a text asks for. unknown is the first tool that is called with arguments but
// not offered; without arguments, "use" and "call" are ordinary words.
func (r *request) callsIn(text string) (calls []call, unknown string) {
	for end := 0; ; {
		at := directive.FindStringSubmatchIndex(text[end:])
		if at == nil {
			return calls, unknown
		}
		written := text[end+at[2] : end+at[3]]
		end += at[1]
		arguments := object(text[end:])
		end += len(arguments)
		name := r.offered(written)
		switch {
		case name != "":
			calls = append(calls, call{name, orEmptyObject(strings.TrimSpace(arguments))})
		case arguments != "" && unknown == "":
			unknown = written
		}
	}
}

// offered returns the name under which a tool is offered, empty when it is not.
func (r *request) offered(written string) string {
	written = strings.TrimRight(written, ".")
	for _, name := range []string{written, strings.ReplaceAll(written, ".", "_")} {
		if slices.Contains(r.tools, name) {
			return name
		}
	}
	return ""
}

// object returns the JSON object that a text begins with, the space before it included. A broken object
// extends to the end of its line.
func object(text string) string {
	trimmed := strings.TrimLeft(text, " \t")
	space := len(text) - len(trimmed)
	if !strings.HasPrefix(trimmed, "{") {
		return ""
	}
	decoder := json.NewDecoder(strings.NewReader(trimmed))
	var value json.RawMessage
	if decoder.Decode(&value) == nil {
		return text[:space+int(decoder.InputOffset())]
	}
	line, _, _ := strings.Cut(text, "\n")
	return line
}

func orEmptyObject(arguments string) string {
	if arguments == "" {
		return "{}"
	}
	return arguments
}
