package postgres

import (
	"errors"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// An address that the driver tries with and without TLS is named once, and the error is one line.
func TestADatabaseThatCannotBeReached(t *testing.T) {
	_, err := Open(t.Context(), "postgres://u@127.0.0.1:1/x?sslmode=prefer", Options{Patience: time.Millisecond})
	if !errors.Is(err, continuo.ErrUnavailable) || strings.Contains(err.Error(), "\n") || strings.Count(err.Error(), "connection refused") != 1 || strings.Contains(err.Error(), "dial") {
		t.Errorf("%q", err)
	}
}
