package task

import (
	"strings"

	continuo "github.com/continuo-log/continuo"
)

// Section writes the section of a task's prompt for all the given entries of the log; "" for none.
func (l Limits) Section(entries []continuo.Entry) string {
	history := l.orDefaults().history(entries)
	var b strings.Builder
	writeHistory(&b, &history)
	return b.String()
}

// history is the history that the limits keep of entries.
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
