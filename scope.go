package continuo

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Scope says which conversations a caller may access: those of a project, or of one user in it. Runs, turns, tasks,
// attachments and search results belong to conversations, so this one rule applies to all of them.
type Scope struct {
	ProjectID string
	UserID    string // "": the conversations of all users of the project
}

// Has reports whether a conversation is within the scope.
func (s Scope) Has(conversation Conversation) bool {
	return conversation.ProjectID == s.ProjectID && (s.UserID == "" || conversation.UserID == s.UserID)
}

// Owner returns the user for a conversation that is created or looked up within the scope: the scope's user, otherwise
// userID. It fails with ErrOtherUser when both are set and differ.
func (s Scope) Owner(userID string) (string, error) {
	if s.UserID == "" {
		return userID, CheckUserID(userID)
	}
	if userID != "" && userID != s.UserID {
		return "", fmt.Errorf("user_id %q: %w: the caller is bound to another user", userID, ErrOtherUser)
	}
	return s.UserID, nil
}

// Scope returns the scope of the conversation's own user.
func (c *Conversation) Scope() Scope { return Scope{ProjectID: c.ProjectID, UserID: c.UserID} }

// MaxUserIDBytes bounds a user's id.
const MaxUserIDBytes = 256

// CheckUserID refuses an id that is too long, not UTF-8, or has control characters. "" means no user and is valid.
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
