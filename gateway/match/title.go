package match

import (
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/lazy"
)

// opening is the beginning of an element in which clients describe the environment, before the person's own words.
var opening = lazy.Regexp(`^<([a-z]+[_-][a-z_-]+)>`)

// Title returns the content of the first message of a user without the client's own reminders and descriptions of the
// environment, to name a new conversation by; absent where nobody said anything.
func Title(entries []continuo.Entry) continuo.Content {
	for i := range entries {
		if entries[i].Role != continuo.User {
			continue
		}
		if text := withoutContext(withoutReminders(entries[i].Content.String())); text != "" {
			return continuo.Text(text)
		}
	}
	return continuo.Content{}
}

// withoutContext removes the elements that a text begins with.
func withoutContext(text string) string {
	for {
		text = strings.TrimSpace(text)
		found := opening().FindStringSubmatch(text)
		if found == nil {
			return text
		}
		_, rest, closed := strings.Cut(text, "</"+found[1]+">")
		if !closed {
			return text
		}
		text = rest
	}
}
