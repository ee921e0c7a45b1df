package main

import (
	"errors"
	"fmt"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

// TestExitCodes maps each kind of error to its code, also when it is wrapped.
func TestExitCodes(t *testing.T) {
	for err, want := range map[error]int{
		errors.New("other"):       1,
		usage("wrong"):            2,
		continuo.ErrInvalid:       2,
		continuo.ErrBadRange:      2,
		continuo.ErrNotFound:      3,
		continuo.ErrBusy:          4,
		continuo.ErrExists:        4,
		&continuo.ConflictError{}: 4,
		&continuo.OverflowError{}: 5,
		&turnFailed{reason: continuo.ReasonContextOverflow}: 5,
		&turnFailed{reason: continuo.ReasonUpstream}:        1,
		continuo.ErrNewerSchema:                             1,
		&reportedError{continuo.ErrBusy}:                    4,
		usage("%w", errors.New("no")):                       2,
	} {
		if got := exitCode(fmt.Errorf("wrapped: %w", err)); got != want {
			t.Errorf("%v ends with %d, want %d", err, got, want)
		}
	}
	if got := exitCode(nil); got != 0 {
		t.Errorf("no error ends with %d", got)
	}
}
