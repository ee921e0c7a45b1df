package continuo

import (
	"errors"
	"fmt"
)

// Sentinel errors; compare with errors.Is.
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
	ErrUnavailable = errors.New("the storage is unreachable")
	ErrArchived    = errors.New("the conversation is archived; restore it first")
	ErrFeedPruned  = errors.New("turns after this position were removed from the feed of finished turns")
	ErrObjectGone  = errors.New("an object that the log names is missing")
)

// ConflictError says that the next seq of the log is not the one that an append expected.
type ConflictError struct {
	Want, Have int64 // the next seq that was expected, and the actual one
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("expected the next entry to be seq %d, but it would be %d: read the new entries and try again", e.Want, e.Have)
}

// LargeEntryError says that the first entry of a query is larger than its EntryQuery.MaxBytes.
type LargeEntryError struct {
	Seq   int64
	Bytes int64 // of the entry's stored form
}

func (e *LargeEntryError) Error() string {
	return fmt.Sprintf("entry %d has %d bytes, more than a page may have", e.Seq, e.Bytes)
}

// RuleError says which rule of the log an entry breaks. Nothing was appended.
type RuleError struct {
	Index   int    // of the entry in the append, from 0
	Rule    Rule   //
	Message string // what is wrong and how to fix it
}

func (e *RuleError) Error() string {
	return fmt.Sprintf("entries[%d] breaks the rule %s: %s", e.Index, e.Rule, e.Message)
}
