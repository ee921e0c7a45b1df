package window

import (
	"bytes"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// attempt follows a log back over attempts that failed without a word of answer. They are not shown, nor is the message
// before them where the next message repeats it word for word: the request is then the one that the first attempt would
// have made.
type attempt struct {
	newer  *continuo.Entry // the entry that follows, of what is shown; nil for none
	failed bool            // attempts that failed stand between it and the next older entry
}

// leavesOut takes the next older entry of those that may be shown, and reports whether it is left out.
func (a *attempt) leavesOut(e *continuo.Entry) bool {
	switch {
	case IsFailedAttempt(e):
		a.failed = true
		return true
	case a.failed && a.newer != nil && asks(a.newer) && (isResume(e) || repeats(a.newer, e)):
		a.failed = false
		return true
	}
	return false
}

// IsFailedAttempt reports whether an entry is an answer that failed before it showed anything.
func IsFailedAttempt(e *continuo.Entry) bool {
	return e.Role == continuo.Assistant && e.Error != nil && len(e.Error.PartialToolCalls) == 0 && !e.HasCalls() &&
		!e.Content.IsParts() && strings.TrimSpace(e.Content.String()) == ""
}

// isResume reports whether an entry asks the model to go on with what broke off.
func isResume(e *continuo.Entry) bool { return e.IsCue() && e.PartType == continuo.PartResume }

// asks reports whether a model is to answer an entry.
func asks(e *continuo.Entry) bool { return e.Role == continuo.User || e.IsCue() }

// repeats reports whether a message says word for word what an older one said.
func repeats(e, older *continuo.Entry) bool {
	if e.Role != older.Role || e.PartType != older.PartType || e.Name != older.Name {
		return false
	}
	if e.Content.IsText() && older.Content.IsText() {
		return e.Content.String() == older.Content.String()
	}
	return bytes.Equal(rawjson.MustMarshal(e.Content), rawjson.MustMarshal(older.Content))
}
