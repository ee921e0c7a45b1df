package index

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// ErrCursor is wrapped by all errors about a Request.Cursor.
var ErrCursor = errors.New("cursor")

// CursorHead is what every cursor begins with: the version of its form, and the search that gave it out.
type CursorHead struct {
	Version int    `json:"v"`
	Query   string `json:"q"` // Request.Fingerprint
}

// Head is part of Cursor.
func (h CursorHead) Head() CursorHead { return h }

// Cursor is where the next page of a search begins, as JSON.
type Cursor interface {
	Head() CursorHead
	// IsValid reports whether a search can have given the cursor out.
	IsValid() bool
}

// EncodeCursor returns a cursor in the form that clients get.
func EncodeCursor(c Cursor) string {
	return base64.RawURLEncoding.EncodeToString(rawjson.MustMarshal(c))
}

// DecodeCursor reads a cursor of at most so many bytes that a client sent back. An error is ErrCursor and continuo.ErrInvalid.
func DecodeCursor[T Cursor](text string, want CursorHead, most int) (T, error) {
	var read, none T
	wrong := fmt.Errorf("%w: %w: it is not a next_cursor of this search; leave it out for the first page", ErrCursor, continuo.ErrInvalid)
	if len(text) > most {
		return none, wrong
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return none, wrong
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if decoder.Decode(&read) != nil {
		return none, wrong
	}
	if _, err := decoder.Token(); err != io.EOF {
		return none, wrong
	}
	switch head := read.Head(); {
	case head.Version != want.Version, !read.IsValid():
		return none, wrong
	case head.Query != want.Query:
		return none, fmt.Errorf("%w: %w: it belongs to another search: continue with the same query and filters", ErrCursor, continuo.ErrInvalid)
	}
	return read, nil
}

// cursor is where the next page begins: within a stretch of matches that were ranked together, or after it.
type cursor struct {
	CursorHead
	// Start is the last candidate before the stretch; zero for the first stretch.
	Start Hit `json:"s,omitzero"`
	// End is the stretch's last candidate, Shown the last match of it that was shown; both are zero at the
	// beginning of a stretch.
	End   Hit  `json:"e,omitzero"`
	Shown rank `json:"a,omitzero"`
	// Last says that no candidates follow End.
	Last bool `json:"l,omitempty"`
}

const (
	cursorVersion = 1
	maxCursor     = 2000 // bytes
)

// parseCursor parses the cursor of a search; "" means the first page.
func parseCursor(text, query string) (cursor, error) {
	head := CursorHead{cursorVersion, query}
	if text == "" {
		return cursor{CursorHead: head}, nil
	}
	return DecodeCursor[cursor](text, head, maxCursor)
}

// IsValid is part of Cursor.
func (c cursor) IsValid() bool {
	return c.Start.Seq >= 0 && c.End.Seq >= 0 && !(c.inside() && c.Shown == rank{})
}

// inside reports whether some matches of the stretch were already shown.
func (c cursor) inside() bool { return c.End != Hit{} }

// passes reports whether a place is after the stretch's end, which may no longer exist. Within a conversation
// seqs decide if the index cannot.
func (c cursor) passes(hit Hit, inConversation bool) bool {
	same := hit.ConversationID == c.End.ConversationID
	switch {
	case !c.inside():
		return false
	case inConversation && (!same || hit.Order == 0 || c.End.Order == 0), same && hit.Order == c.End.Order:
		return hit.Seq < c.End.Seq
	}
	return hit.Order < c.End.Order
}

// Fingerprint identifies a search in its cursors.
func (r Request) Fingerprint() string {
	conversation := ""
	if r.Conversation != nil {
		conversation = r.Conversation.ID
	}
	sum := sha256.Sum256(rawjson.MustMarshal([]any{r.ProjectID, r.UserID, r.Labels, conversation, r.Query, r.Role, r.From, r.To, r.Kinds}))
	return hex.EncodeToString(sum[:8])
}
