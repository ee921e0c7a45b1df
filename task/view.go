package task

import (
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// Preset gives settings of views the preset handoff: of a conversation what a task's history would tell.
func (l Limits) Preset(settings *window.Settings) {
	l = l.orDefaults()
	settings.HandoffMaxMessages = l.MaxMessages
	settings.Handoff = &window.HandoffView{UserMaxChars: l.UserMaxChars, AssistantMaxChars: l.AssistantMaxChars, Tell: l.tell}
}

// tell tells of one entry, with the results of its calls.
func (l Limits) tell(entries []continuo.Entry) (told window.Told, ok bool) {
	history := l.history(entries)
	if len(history.Messages) == 0 {
		return window.Told{}, false
	}
	message := history.Messages[0]
	told = window.Told{Role: continuo.Assistant, Content: message.Content, Cut: message.Truncated}
	if message.Role == User {
		told.Role = continuo.User
	}
	return told, true
}

// Section writes the section of a task's prompt that tells of entries of the log, all of them; "" for nothing.
func (l Limits) Section(entries []continuo.Entry) string {
	history := l.orDefaults().history(entries)
	var b strings.Builder
	writeHistory(&b, &history)
	return b.String()
}

// history is what a history keeps of entries.
func (l Limits) history(entries []continuo.Entry) History {
	var history History
	s := shaper{limits: l}
	for _, message := range FromEntries(entries) {
		shaped := s.shape(&message)
		if shaped.Truncated {
			history.TruncatedCount++
		}
		history.Messages = append(history.Messages, shaped)
	}
	return history
}
