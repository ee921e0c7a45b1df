package continuo

import (
	"context"
	"io"
	"iter"
	"strings"
	"time"
)

// ObjectStore keeps large bytes outside of the store: outputs of tools, attachments, archives. Names are
// parts of the characters A-Z a-z 0-9 . _ - joined by slashes; those of a conversation begin with its id
// and a slash. It is safe for concurrent use. Package object has one over a folder or a bucket.
type ObjectStore interface {
	// PutObject keeps what data yields under a name, whole or not at all, in the place of what was there.
	// Once it returned, the object is durable.
	PutObject(ctx context.Context, name string, data io.Reader) error
	// ReadObject reads length bytes from offset, fewer at the object's end; a length below 0 reads to the end.
	// It fails with ErrNotFound. The caller closes what it returns.
	ReadObject(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error)
	// DeleteObject removes one; that there is none is no error.
	DeleteObject(ctx context.Context, name string) error
	// Objects lists those whose names begin with prefix, in the order of their names.
	Objects(ctx context.Context, prefix string) iter.Seq2[ObjectInfo, error]
}

// ObjectInfo is what a list tells of an object.
type ObjectInfo struct {
	Name       string
	Size       int64 // bytes
	ModifiedAt time.Time
}

// ObjectName is the name of a conversation's object; with an empty id, what the names of all begin with.
func ObjectName(conversationID, id string) string { return conversationID + "/" + id }

// ArchiveObject is the id of the object that a conversation is kept in which was archived at a time. Each
// attempt to archive has a time of its own, and so an object that no other one writes or removes.
func ArchiveObject(at time.Time) string {
	return "archive-" + at.UTC().Format("20060102T150405.000000000Z") + ".jsonl.gz"
}

// IsArchiveObject reports whether an id is one of ArchiveObject.
func IsArchiveObject(id string) bool { return strings.HasPrefix(id, "archive-") }

// DiscardStore remembers which objects nothing names any more. A store notes them in the transaction that
// makes them so, and whoever removes them from the object store says so afterwards: a process that ends
// in between leaves nothing behind.
type DiscardStore interface {
	// Discards lists names of objects to remove, the oldest first. One that ends with a slash stands for
	// all objects whose names begin with it.
	Discards(ctx context.Context, limit int) ([]string, error)
	// Discarded forgets them; that one is not there is no error.
	Discarded(ctx context.Context, names []string) error
}

// ResidueStore is a store that may keep, for a while, what was redacted or deleted in a log of its own.
type ResidueStore interface {
	// HasResidue reports whether that log still holds something of it. It is cleared as soon as no reader holds it.
	HasResidue() bool
}

// HasResidue reports whether what was redacted or deleted may still be in the store's own write-ahead log.
func (l *Log) HasResidue() bool {
	store, ok := l.store.(ResidueStore)
	return ok && store.HasResidue()
}

// Objects are the ids of the objects that an entry needs. A store keeps them beside the entry, and
// discards them with the last entry that needs them.
func (e *Entry) Objects() []string {
	var ids []string
	if e.Output != nil {
		ids = append(ids, e.Output.ID)
	}
	for _, attachment := range e.Attachments {
		ids = append(ids, attachment.ID)
	}
	return ids
}

// Sweep removes the objects that nothing names any more, and returns how many names it came to. Where it
// fails, the rest is left for the next sweep.
func (l *Log) Sweep(ctx context.Context) (swept int, err error) {
	if l.options.Objects == nil {
		return 0, nil
	}
	for {
		names, err := l.store.Discards(ctx, sweepAtOnce)
		if err != nil || len(names) == 0 {
			return swept, err
		}
		for _, name := range names {
			if err := l.removeObjects(ctx, name); err != nil {
				return swept, err
			}
		}
		if err := l.store.Discarded(ctx, names); err != nil {
			return swept, err
		}
		swept += len(names)
	}
}

// sweepAtOnce is how many discarded names are read at once.
const sweepAtOnce = 100

func (l *Log) removeObjects(ctx context.Context, name string) error {
	if !strings.HasSuffix(name, "/") {
		return l.options.Objects.DeleteObject(ctx, name)
	}
	for object, err := range l.options.Objects.Objects(ctx, name) {
		if err == nil {
			err = l.options.Objects.DeleteObject(ctx, object.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
