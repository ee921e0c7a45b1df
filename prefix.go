package continuo

import (
	"context"
	"encoding/hex"
	"fmt"
)

// Prefix identifies the beginning of a conversation, up to an entry, by what it says: a client that sends its whole
// history with each request is recognised by it. Package gateway/match makes and finds prefixes; a conversation that
// was never reached through the gateway has none. One beginning can have several prefixes: clients repeat it in more
// than one form.
type Prefix struct {
	ConversationID string `json:"conversation_id"`
	// Seq is the seq of the beginning's last entry.
	Seq int64 `json:"seq"`
	// Hash is a hash of the project and of what the entries up to Seq say.
	Hash PrefixHash `json:"hash"`
	// IDs is a hash of the call ids up to Seq, 0 without calls; System of the system prompt; Session of the client's name
	// for its session, 0 where it gave none. They distinguish conversations that say the same.
	IDs     int64 `json:"ids,omitempty"`
	System  int64 `json:"system,omitempty"`
	Session int64 `json:"session,omitempty"`
}

// PrefixHash is the hash of a prefix.
type PrefixHash [16]byte

// String writes the hash in hex.
func (h PrefixHash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText writes the hash in hex.
func (h PrefixHash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (h *PrefixHash) UnmarshalText(text []byte) error {
	if hex.DecodedLen(len(text)) != len(h) {
		return fmt.Errorf("%w: a prefix hash has %d characters, not %d", ErrInvalid, len(text), hex.EncodedLen(len(h)))
	}
	_, err := hex.Decode(h[:], text)
	return err
}

// PrefixStore finds conversations by their beginnings.
type PrefixStore interface {
	// Prefixes finds prefixes of a project: for each hash, in the order given, at most Limit, those of the conversations
	// with the greatest ids first, which are the newest, and of one conversation the greatest seq first. Conversations
	// that are deleted or archived have none. Where a fork inherits an entry, only the conversation that has it does. It
	// also returns the conversations of the prefixes as they are at the same moment, each once.
	Prefixes(ctx context.Context, query PrefixQuery) ([]Prefix, []Conversation, error)
}

// PrefixQuery selects prefixes.
type PrefixQuery struct {
	ProjectID string
	Hashes    []PrefixHash
	Session   int64 // of these only; 0: any
	Limit     int   // for each hash, at least 1
}
