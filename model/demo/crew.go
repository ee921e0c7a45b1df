package demo

import (
	"fmt"
	"regexp"
	"strings"

	continuo "github.com/continuo-log/continuo"
)

// crewRole is the model's role in a crew: its name, and the conversation that it was shown.
type crewRole struct {
	name     string
	messages []spokenMessage
}

// spokenMessage is a message of a crew's conversation.
type spokenMessage struct {
	user bool
	name string // of the sender; "" for a user without a name
	text string
}

// parseRole reads the system message that begins with CREW, and the text of the conversation; nil when there
// is no such message.
func parseRole(systems []string, messages []message) *crewRole {
	for _, text := range systems {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		if len(lines) < 2 || strings.TrimSpace(lines[0]) != "CREW" {
			continue
		}
		name, found := strings.CutPrefix(strings.TrimSpace(lines[1]), "- you: ")
		if !found {
			continue
		}
		role := &crewRole{name: name}
		role.readMessages(messages)
		return role
	}
	return nil
}

// readMessages reads the messages before the first call of its own turn: those of the user contain the
// conversation as text, the assistant's are its own answers.
func (s *crewRole) readMessages(messages []message) {
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
	s.messages = parseMessages(text.String())
}

var (
	label  = regexp.MustCompile(`^(User|Assistant)(?: \(([^()]+)\))?:(?: |$)`)
	blocks = map[string]string{
		"[SYSTEM REMINDER]": "[END REMINDER]", "[ORIGINAL REQUEST]": "[END REQUEST]", "[CURRENT REQUEST]": "[END REQUEST]", "[NOTES]": "[END NOTES]", "[CONTEXT SUMMARY]": "[RECENT]",
	}
)

// failureMark is the line that ends an incomplete message.
var failureMark = regexp.MustCompile(`\n\[broke off: [a-z_]+\]\s*$`)

// parseMessages finds the messages in the text that a role is shown; blocks before and between them are ignored.
// Lines of a message never look like a label or a block, because those are escaped by a backslash.
func parseMessages(text string) []spokenMessage {
	var messages []spokenMessage
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
		case strings.HasPrefix(line, "[RECALLED]"):
			end = "[END RECALLED]"
		case strings.HasPrefix(line, "[MORE"):
		case found != nil:
			messages = append(messages, spokenMessage{found[1] == "User", found[2], line[len(found[0]):]})
		case len(messages) > 0:
			messages[len(messages)-1].text += "\n" + line
		}
	}
	return messages
}

// replyCrew answers as a role of a crew: once after each user message.
func (r *request) replyCrew() (text string, calls []call) {
	if results, names := r.results(); len(results) > 0 {
		return r.describeResults(results, names), nil
	}
	asked, answered := -1, false
	for i, one := range r.role.messages {
		switch {
		case one.user:
			asked, answered = i, false
		case one.name == r.role.name:
			answered = !failureMark.MatchString(one.text)
		}
	}
	if asked < 0 || answered {
		return continuo.Placeholder, nil
	}
	newest := r.role.messages[asked].text
	calls, unknown := r.callsIn(newest)
	if len(calls) > 0 {
		return "As the user asked, I call " + names(calls) + ".", calls
	}
	var words []string
	if unknown != "" {
		words = append(words, r.refuse(unknown))
	}
	return strings.Join(append(words, introduction, r.role.reply(asked)), " "), nil
}

// reply says as which role the model speaks and what it was shown, and repeats the last messages of the user
// and of another role.
func (s *crewRole) reply(asked int) string {
	text := fmt.Sprintf("Here I am %s. I was shown %s of the conversation. The user says: %s", s.name, plural(len(s.messages), "message"), quote(s.messages[asked].text, maxQuote))
	if last := s.messages[len(s.messages)-1]; !last.user {
		text += fmt.Sprintf(" %s said last: %s", last.name, quote(last.text, maxQuote))
	}
	return text
}
