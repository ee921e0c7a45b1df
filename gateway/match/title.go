package match

import (
	"regexp"

	continuo "github.com/continuo-log/continuo"
)

// element is a text that is one element, in which clients describe the environment.
var element = regexp.MustCompile(`(?s)^<([a-z][a-z_-]*)>.*</([a-z][a-z_-]*)>$`)

// Title returns the content of the first message of a user that is not the client's own, such as its reminders and
// descriptions of the environment, to name a new conversation by; absent where there is none.
func Title(entries []continuo.Entry) continuo.Content {
	for i := range entries {
		if entries[i].Role != continuo.User {
			continue
		}
		text := trimmed(withoutReminders(entries[i].Content.String()))
		if found := element.FindStringSubmatch(text); text != "" && (found == nil || found[1] != found[2]) {
			return continuo.Text(text)
		}
	}
	return continuo.Content{}
}
