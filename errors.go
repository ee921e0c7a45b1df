package continuo

import (
	"errors"
	"fmt"
)

// Sentinels; wrapped errors are compared with errors.Is.
var (
	ErrNotFound    = errors.New("not found")
	ErrInvalid     = errors.New("invalid input")
	ErrBadRange    = errors.New("seq out of range")
	ErrExists      = errors.New("already exists")
	ErrOtherUser   = errors.New("not this user's")
	ErrKeyReused   = errors.New("idempotency key was used for another request")
	ErrClosed      = errors.New("closed")
	ErrBusy        = errors.New("conversation is busy with another turn")
	ErrLeaseLost   = errors.New("the turn's lease was lost to another process")
	ErrNotRunning  = errors.New("the turn does not run any more")
	ErrNewerSchema = errors.New("the database was written by a newer version of continuo")
	ErrReadOnly    = errors.New("the store cannot be written")
	ErrFull        = errors.New("the disk is full")
	ErrUnavailable = errors.New("what keeps the data cannot be reached")
	ErrArchived    = errors.New("the conversation is archived; restore it first")
	ErrObjectGone  = errors.New("an object that the log names is missing")
)

// ConflictError says that an append expected another place in the log than it found.
type ConflictError struct {
	Want, Have int64 // the next seq that was expected, and the one that there is
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("expected the next entry to be seq %d, but it would be %d: read the new entries and try again", e.Want, e.Have)
}

// LargeEntryError says that the first entry of a query is larger than its EntryQuery.MaxBytes.
type LargeEntryError struct {
	Seq   int64
	Bytes int64 // of its stored form
}

func (e *LargeEntryError) Error() string {
	return fmt.Sprintf("entry %d has %d bytes, more than a page may have", e.Seq, e.Bytes)
}

// RuleError says which rule of the log an entry would break. Nothing was appended.
type RuleError struct {
	Index   int    // of the entry among those that were to be appended, from 0
	Rule    Rule   //
	Message string // what is wrong with it and what to do
}

func (e *RuleError) Error() string {
	return fmt.Sprintf("entries[%d] breaks the rule %s: %s", e.Index, e.Rule, e.Message)
}
