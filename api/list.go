package api

import (
	"encoding/base64"
	"encoding/json"
	"iter"
	"reflect"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// List is the form of every list.
type List[T any] struct {
	Data    []T  `json:"data"`
	HasMore bool `json:"has_more"`
	// NextCursor continues after this page; null on the last one.
	NextCursor *string `json:"next_cursor"`
}

// All is a list that is never split into pages, in the form of every list.
type All[T any] struct {
	Data       []T     `json:"data"`
	HasMore    bool    `json:"has_more" const:"false"`
	NextCursor *string `json:"next_cursor" const:"null"`
}

// AllOf makes the list of all items.
func AllOf[T any](items []T) All[T] { return All[T]{Data: append([]T{}, items...)} }

// Cursor is the input of lists that are read page by page.
type Cursor struct {
	// The `next_cursor` of the page before.
	Cursor *string `query:"cursor"`
}

// decode reads a cursor that listed wrote. Without a cursor it leaves the value as it is, and returns false.
func (c Cursor) decode(into any) (given bool, err error) {
	if c.Cursor == nil {
		return false, nil
	}
	if err := ReadCursor(*c.Cursor, into); err != nil {
		return false, Refuse("cursor", "the cursor is none that this list gave out")
	}
	return true, nil
}

// ReadCursor decodes a position in a list that WriteCursor encoded.
func ReadCursor(cursor string, into any) error {
	data, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	return err
}

// WriteCursor encodes a position in a list.
func WriteCursor(position any) *string {
	text := base64.RawURLEncoding.EncodeToString(rawjson.MustMarshal(position))
	return &text
}

// listed makes a page of the results of a query for limit+1 items; cursor returns the cursor that continues after an item.
func listed[T any](found []T, limit int, cursor func(T) any) List[T] {
	found = append([]T{}, found...)
	if len(found) <= limit {
		return List[T]{Data: found}
	}
	page := List[T]{Data: found[:limit], HasMore: true}
	page.NextCursor = WriteCursor(cursor(page.Data[limit-1]))
	return page
}

// Stream is a list of which the adapter writes one item after the other, so that it is never held in memory as a whole.
type Stream[T any] struct {
	Items iter.Seq2[T, error]
	Next  *string // the cursor that continues after a page with items; nil on the last one
}

// Form is the form of the list, for the document.
func (Stream[T]) Form() reflect.Type { return reflect.TypeFor[List[T]]() }
