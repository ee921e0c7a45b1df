package server

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/continuo-log/continuo/internal/rawjson"
)

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
