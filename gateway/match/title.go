package match

import continuo "github.com/continuo-log/continuo"

// Title returns the content of the first message of a user without the client's own reminders, to name a new conversation
// by; absent where nobody said anything.
func Title(entries []continuo.Entry) continuo.Content {
	for i := range entries {
		if entries[i].Role != continuo.User {
			continue
		}
		if text := trimmed(withoutReminders(entries[i].Content.String())); text != "" {
			return continuo.Text(text)
		}
	}
	return continuo.Content{}
}
