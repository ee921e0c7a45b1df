package server

import (
	"net/http"
	"slices"
)

// idempotencyHeader is the header that makes a retried append take effect only once.
const idempotencyHeader = "Idempotency-Key"

// idempotencyKey reads the header Idempotency-Key, "" when there is none.
func idempotencyKey(r *http.Request) (string, error) {
	values := r.Header.Values(idempotencyHeader)
	if len(values) == 0 {
		return "", nil
	}
	key := values[0]
	visible := !slices.ContainsFunc([]byte(key), func(b byte) bool { return b < '!' || b > '~' })
	if len(values) > 1 || key == "" || len(key) > 255 || !visible {
		return "", refuse(idempotencyHeader, "%s must be 1 to 255 visible ASCII characters, once", idempotencyHeader)
	}
	return key, nil
}
