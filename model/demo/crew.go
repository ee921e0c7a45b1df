package demo

import (
	"fmt"
	"regexp"
	"strings"

	continuo "github.com/continuo-log/continuo"
)

// seat is the model's role in a crew: its name, and the conversation that it was shown.
type seat struct {
	name string
	talk []said
}

// said is a message of a crew's conversation.
type said struct {
	user bool
	name string // of the sender; "" for a user without a name
	text string
}

// parseSeat reads the system message that begins with CREW, and the text of the conversation; nil when there
// is no such message.
func parseSeat(systems []string, messages []message) *seat {
	for _, text := range systems {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		if len(lines) < 2 || strings.TrimSpace(lines[0]) != "CREW" {
			continue
		}
		name, found := strings.CutPrefix(strings.TrimSpace(lines[1]), "- you: ")
		if !found {
			continue
		}
		place := &seat{name: name}
		place.readTalk(messages)
		return place
	}
	return nil
}

// readTalk reads the messages before the first call of its own turn: those of the user contain the
// conversation as text, the assistant's are its own answers.
func (s *seat) readTalk(messages []message) {
	var text strings.Builder
	for _, m := range messages {
		if len(m.calls) > 0 || m.role == "tool" {
			break
		}
		if m.role == "assistant" {
			text.WriteString("Assistant (" + s.name + "): ")
		}
		text.WriteString(m.text + "\n\n")
	}
	s.talk = parseTalk(text.String())
}

var (
	label  = regexp.MustCompile(`^(User|Assistant)(?: \(([^()]+)\))?:(?: |$)`)
	blocks = map[string]string{
		"[SYSTEM REMINDER]": "[END REMINDER]", "[ORIGINAL REQUEST]": "[END REQUEST]", "[CURRENT REQUEST]": "[END REQUEST]", "[NOTES]": "[END NOTES]", "[CONTEXT SUMMARY]": "[RECENT]",
	}
)

// brokeOff is the line that ends an incomplete message.
var brokeOff = regexp.MustCompile(`\n\[broke off: [a-z_]+\]\s*$`)

// parseTalk finds the messages in the text that a role is shown; blocks before and between them are ignored.
// Lines of a message never look like a label or a block, because those are escaped by a backslash.
func parseTalk(text string) []said {
	var talk []said
	end := "" // the line that ends the current block
	for line := range strings.SplitSeq(text, "\n") {
		found := label.FindStringSubmatch(line)
		switch {
		case end != "":
			if line == end {
				end = ""
			}
		case blocks[line] != "":
			end = blocks[line]
		case strings.HasPrefix(line, "[MORE"):
		case found != nil:
			talk = append(talk, said{found[1] == "User", found[2], line[len(found[0]):]})
		case len(talk) > 0:
			talk[len(talk)-1].text += "\n" + line
		}
	}
	return talk
}

// replyCrew answers as a role of a crew: once after each user message.
func (r *request) replyCrew() (text string, calls []call) {
	if results, names := r.results(); len(results) > 0 {
		return r.tellResults(results, names), nil
	}
	asked, answered := -1, false
	for i, one := range r.seat.talk {
		switch {
		case one.user:
			asked, answered = i, false
		case one.name == r.seat.name:
			answered = !brokeOff.MatchString(one.text)
		}
	}
	if asked < 0 || answered {
		return continuo.Placeholder, nil
	}
	newest := r.seat.talk[asked].text
	calls, unknown := r.callsIn(newest)
	if len(calls) > 0 {
		return "As the user asked, I call " + names(calls) + ".", calls
	}
	var words []string
	if unknown != "" {
		words = append(words, r.refuse(unknown))
	}
	return strings.Join(append(words, introduction, r.seat.tell(asked)), " "), nil
}

// tell says as which role the model speaks and what it was shown, and repeats the last messages of the user
// and of another role.
func (s *seat) tell(asked int) string {
	text := fmt.Sprintf("Here I am %s. I was shown %s of the talk. The user says: %s", s.name, plural(len(s.talk), "message"), quote(s.talk[asked].text, maxQuote))
	if last := s.talk[len(s.talk)-1]; !last.user {
		text += fmt.Sprintf(" %s said last: %s", last.name, quote(last.text, maxQuote))
	}
	return text
}
