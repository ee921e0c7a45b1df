package server

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// list is the form of every list.
type list[T any] struct {
	Data    []T  `json:"data"`
	HasMore bool `json:"has_more"`
	// NextCursor continues after this page; null on the last one.
	NextCursor *string `json:"next_cursor"`
}

// paged makes a page of the results of a query for limit+1 items; place returns the cursor that continues after an item.
func paged[T any](found []T, limit int64, place func(T) any) list[T] {
	if len(found) <= int(limit) {
		return list[T]{Data: found}
	}
	page := list[T]{Data: found[:limit], HasMore: true}
	page.NextCursor = writeCursor(place(page.Data[limit-1]))
	return page
}

// writeJSON answers with a value. An error means that nothing has been written.
func writeJSON(w http.ResponseWriter, status int, value any) error {
	body, err := rawjson.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	return writeBody(w, status, "application/json", append(body, '\n'))
}

func writeText(w http.ResponseWriter, text []byte) error {
	return writeBody(w, http.StatusOK, "text/plain; charset=utf-8", text)
}

// writeBody writes an answer in one piece. A client that has disconnected is not an error.
func writeBody(w http.ResponseWriter, status int, contentType string, body []byte) error {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body))) // ends the answer for the client while its request is still being drained
	w.WriteHeader(status)
	_, _ = w.Write(body)
	return nil
}
