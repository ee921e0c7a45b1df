package window

import (
	"bytes"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// attempt filters failed attempts without any text of an answer out of a log that is read backward. They are
// not shown, nor is the message before them if the next message repeats it verbatim: the request is then the
// one that the first attempt would have made.
type attempt struct {
	newer  *continuo.Entry // the entry that follows among those shown; nil for none
	failed bool            // failed attempts are between it and the next older entry
}

// leavesOut reads the next older entry that may be shown, and reports whether it is left out.
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

// IsFailedAttempt reports whether an entry is an answer that failed before any output.
func IsFailedAttempt(e *continuo.Entry) bool {
	return e.Role == continuo.Assistant && e.Error != nil && len(e.Error.PartialToolCalls) == 0 && !e.HasCalls() &&
		!e.Content.IsParts() && strings.TrimSpace(e.Content.String()) == ""
}

// isResume reports whether an entry asks the model to continue an interrupted answer.
func isResume(e *continuo.Entry) bool { return e.IsCue() && e.PartType == continuo.PartResume }

// asks reports whether an entry requests an answer of a model.
func asks(e *continuo.Entry) bool { return e.Role == continuo.User || e.IsCue() }

// repeats reports whether a message has the same content as an older one.
func repeats(e, older *continuo.Entry) bool {
	if e.Role != older.Role || e.PartType != older.PartType || e.Name != older.Name {
		return false
	}
	if e.Content.IsText() && older.Content.IsText() {
		return e.Content.String() == older.Content.String()
	}
	return bytes.Equal(rawjson.MustMarshal(e.Content), rawjson.MustMarshal(older.Content))
}
