package continuo

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Scope says which conversations a caller may reach: those of a project, or one user's among them. Runs, turns,
// tasks, attachments and search results belong to their conversations, so that this is the one rule for all of them.
type Scope struct {
	ProjectID string
	UserID    string // "": all conversations of the project, whoever's they are
}

// Has reports whether a conversation is within the scope.
func (s Scope) Has(conversation Conversation) bool {
	return conversation.ProjectID == s.ProjectID && (s.UserID == "" || conversation.UserID == s.UserID)
}

// Owner is whose a conversation is that is begun within the scope, or is looked for: the scope's user, else the one that is
// named. ErrOtherUser says that the scope has another user than the named one.
func (s Scope) Owner(userID string) (string, error) {
	if s.UserID == "" {
		return userID, CheckUserID(userID)
	}
	if userID != "" && userID != s.UserID {
		return "", fmt.Errorf("user_id %q: %w: the caller is bound to another user", userID, ErrOtherUser)
	}
	return s.UserID, nil
}

// Scope is what the conversation's own user may reach.
func (c *Conversation) Scope() Scope { return Scope{ProjectID: c.ProjectID, UserID: c.UserID} }

// MaxUserIDBytes bounds a user's id.
const MaxUserIDBytes = 256

// CheckUserID refuses an id that is too long, not UTF-8, or has control characters. "" is no user, and fine.
func CheckUserID(id string) error {
	switch {
	case len(id) > MaxUserIDBytes:
		return fmt.Errorf("%w: a user_id has at most %d bytes, not %d", ErrInvalid, MaxUserIDBytes, len(id))
	case !utf8.ValidString(id):
		return fmt.Errorf("%w: a user_id is UTF-8, unlike %q", ErrInvalid, id)
	case strings.ContainsFunc(id, unicode.IsControl):
		return fmt.Errorf("%w: the user_id %q has control characters", ErrInvalid, id)
	}
	return nil
}
