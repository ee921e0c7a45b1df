package search

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"slices"

	"github.com/continuo-log/continuo/fulltext/index"
)

// cursor is where the next page begins.
type cursor struct {
	index.CursorHead
	// Newest and To bound what the pages rank, so that entries that are added later change nothing: in a project the order
	// in the index, in a conversation the seq.
	Newest int64 `json:"n,omitempty"`
	To     int64 `json:"t,omitempty"`
	// Shown has a mark of four bytes for each ranked match that was shown.
	Shown []byte `json:"s,omitempty"`
	// InRest says that all ranked matches were shown; Rest is the cursor of the search for the others.
	InRest bool   `json:"r,omitempty"`
	Rest   string `json:"c,omitempty"`
}

const (
	cursorVersion = 2
	markBytes     = 4
	// maxCursor is above the length of a cursor with marks of all entries that are ranked, and the cursor of the rest.
	maxCursor = 10_000
)

// parseCursor parses the cursor of a search; "" means the first page.
func parseCursor(text, query string) (cursor, error) {
	head := index.CursorHead{Version: cursorVersion, Query: query}
	if text == "" {
		return cursor{CursorHead: head}, nil
	}
	return index.DecodeCursor[cursor](text, head, maxCursor)
}

// IsValid is part of index.Cursor.
func (c cursor) IsValid() bool {
	return c.To >= 0 && len(c.Shown)%markBytes == 0 && (c.InRest || c.Rest == "")
}

// mark identifies an entry among those that are ranked together.
func mark(conversation string, seq int64) [markBytes]byte {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(conversation))
	_ = binary.Write(hash, binary.LittleEndian, seq)
	return [markBytes]byte(binary.BigEndian.AppendUint32(nil, hash.Sum32()))
}

func (c *cursor) add(conversation string, seq int64) {
	one := mark(conversation, seq)
	c.Shown = append(c.Shown, one[:]...)
}

func (c *cursor) has(conversation string, seq int64) bool {
	one := mark(conversation, seq)
	for known := range slices.Chunk(c.Shown, markBytes) {
		if bytes.Equal(known, one[:]) {
			return true
		}
	}
	return false
}

// after bounds the pages that follow the first one.
func (c cursor) after(request index.Request, ranking Ranking) cursor {
	if request.Conversation != nil {
		if c.To == 0 {
			c.To = request.Conversation.LastSeq
		}
		return c
	}
	if c.Newest == 0 {
		for i := range ranking.Found {
			c.Newest = max(c.Newest, ranking.Found[i].Hit.Order)
		}
	}
	return c
}
