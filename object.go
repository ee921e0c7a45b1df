package continuo

import (
	"context"
	"io"
	"iter"
	"strings"
	"time"
)

// ObjectStore stores large data outside of the database: tool outputs, attachments, archives. A name is a path of parts
// with the characters A-Z a-z 0-9 . _ - joined by slashes; the names of a conversation's objects begin with its id and
// a slash. It is safe for concurrent use. Package object implements it for a folder and a bucket.
type ObjectStore interface {
	// PutObject stores the bytes of data under a name, whole or not at all, and replaces an existing object. The object
	// is durable when PutObject returns.
	PutObject(ctx context.Context, name string, data io.Reader) error
	// ReadObject reads length bytes from offset, fewer at the object's end; a negative length reads to the end. It
	// fails with ErrNotFound. The caller closes the reader.
	ReadObject(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error)
	// DeleteObject removes an object; a missing one is no error.
	DeleteObject(ctx context.Context, name string) error
	// Objects lists the objects whose names begin with prefix, by name.
	Objects(ctx context.Context, prefix string) iter.Seq2[ObjectInfo, error]
}

// ObjectInfo describes an object in a list.
type ObjectInfo struct {
	Name       string
	Size       int64 // bytes
	ModifiedAt time.Time
}

// ObjectName is the name of a conversation's object; with an empty id, the prefix of all of its objects.
func ObjectName(conversationID, id string) string { return conversationID + "/" + id }

// DiscardStore lists objects that nothing refers to any more. A store records them in the transaction that removes the
// last reference, and the process that deletes the objects clears the record afterwards, so a crash in between leaks no
// object.
type DiscardStore interface {
	// Discards lists names of objects to remove, the oldest first. A name that ends with a slash is a prefix: all
	// objects under it are removed.
	Discards(ctx context.Context, limit int) ([]string, error)
	// Discarded deletes names from the list; a name that is not listed is no error.
	Discarded(ctx context.Context, names []string) error
}

// ResidueStore is a store whose write-ahead log may hold redacted or deleted data for a while.
type ResidueStore interface {
	// HasResidue reports whether that log still has such data. It is cleared as soon as no reader holds it.
	HasResidue() bool
}

// HasResidue reports whether redacted or deleted data may still be in the store's own write-ahead log.
func (l *Log) HasResidue() bool {
	store, ok := l.store.(ResidueStore)
	return ok && store.HasResidue()
}

// Objects returns the ids of the objects that an entry refers to. A store keeps them beside the entry, and discards an
// object with the last entry that refers to it.
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

// Sweep removes the objects that nothing refers to any more, and returns how many names it processed. After a failure,
// the next sweep removes the rest.
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

// sweepAtOnce is how many discarded names are read per query.
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
