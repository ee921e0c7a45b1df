package conversations

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/continuo-log/continuo/engine/internal/brief"

	continuo "github.com/continuo-log/continuo"
)

// DefinitionIDPattern is the form of the ids of workflows and crews.
var DefinitionIDPattern = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)

// KeyPattern is the form of a conversation's key.
var KeyPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$`)

// CheckKey refuses a key that does not match KeyPattern or looks like an id.
func CheckKey(key string) error {
	if !KeyPattern.MatchString(key) {
		return fmt.Errorf("%w: %q cannot be a session id: use 1 to 128 letters, digits and . _ : @ -, beginning with a letter or digit", continuo.ErrInvalid, brief.Shorten(key, 60))
	}
	if strings.HasPrefix(key, "conv_") {
		return fmt.Errorf("%w: %q: session ids that begin with conv_ are assigned by the server", continuo.ErrInvalid, brief.Shorten(key, 60))
	}
	return nil
}

// TakesMessages refuses messages to the conversations of tasks and of their agents, which only record work.
func TakesMessages(conversation continuo.Conversation) error {
	if conversation.Kind == continuo.KindUser {
		return nil
	}
	return &KindError{conversation}
}

// KindError refuses a message to a conversation that takes none; it is a [continuo.ErrInvalid].
type KindError struct{ Conversation continuo.Conversation }

func (e *KindError) Error() string {
	return fmt.Sprintf("%v: conversation %s is of the kind %s: only conversations of people accept messages; fork it to continue from there", continuo.ErrInvalid, e.Conversation.ID, e.Conversation.Kind)
}

// Unwrap is part of [errors.Is].
func (e *KindError) Unwrap() error { return continuo.ErrInvalid }

// OwnID is the form of the ids that the log gives to conversations.
var OwnID = regexp.MustCompile(`^conv_[0-9a-f]{32}$`)

// TitleOf makes a title from the first line of a message, without control characters.
func TitleOf(message continuo.Content) string {
	line, _, _ := strings.Cut(strings.TrimSpace(message.String()), "\n")
	return brief.Shorten(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, line), 60)
}

// OnceKey is the key of a conversation that an idempotency key creates; idempotency keys are separate per user.
func OnceKey(scope continuo.Scope, key string) string {
	if scope.UserID != "" {
		key += "\n" + scope.UserID // no key and no user id has a line end
	}
	return "once-" + brief.Hash(key)
}
