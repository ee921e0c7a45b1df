package maintenance

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// Archivist archives conversations of a store and restores them. It is safe for concurrent use.
type Archivist struct {
	Store   Store
	Objects continuo.ObjectStore
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// header is the first line of an archive.
type header struct {
	Version      int    `json:"continuo_archive"`
	Conversation string `json:"conversation_id"`
}

// archiveVersion is the version of archives that this program writes and reads.
const archiveVersion = 1

// trailer is the last line of an archive.
type trailer struct {
	Records int    `json:"records"`
	SHA256  string `json:"sha256"` // of all lines before, with their line ends
}

// archiveTries is how often an archive is written again because its conversation has changed in the meantime.
const archiveTries = 3

// Archive writes a conversation into an archive and then removes it from the store, except for its own record and the
// entries that forks begin with. It fails with a *continuo.BusyError while a turn runs, with continuo.ErrArchived,
// continuo.ErrNotFound, and continuo.ErrInvalid for a memory. A process that ends in between leaves the conversation unchanged, perhaps with an archive that
// nothing refers to. If the store does not report the outcome, the archive stays, needed or not.
func (a Archivist) Archive(ctx context.Context, id string) (continuo.Conversation, error) {
	for try := 1; ; try++ {
		seen, err := a.Store.Conversation(ctx, id)
		switch {
		case err != nil:
		case !seen.ArchivedAt.IsZero():
			err = continuo.ErrArchived
		case seen.Kind == continuo.KindMemory:
			err = fmt.Errorf("%w: what is in an archive cannot be forgotten", continuo.ErrInvalid)
		}
		if err != nil {
			return continuo.Conversation{}, fmt.Errorf("archive conversation %s: %w", id, err)
		}
		at := a.now()
		name := continuo.ObjectName(id, ArchiveObject(at))
		if err := a.write(ctx, id, name); err != nil {
			return continuo.Conversation{}, fmt.Errorf("archive conversation %s: %w", id, err)
		}
		err = a.Store.Archive(ctx, seen, at)
		var changed *continuo.ConflictError
		if err == nil {
			return a.Store.Conversation(ctx, id)
		}
		isChanged := errors.As(err, &changed)
		if isChanged || errors.Is(err, continuo.ErrBusy) || errors.Is(err, continuo.ErrNotFound) || errors.Is(err, continuo.ErrArchived) {
			_ = a.Objects.DeleteObject(context.WithoutCancel(ctx), name)
		} // after any other error the conversation may be archived nevertheless, and this archive is its only copy
		if !isChanged || try == archiveTries {
			return continuo.Conversation{}, fmt.Errorf("archive conversation %s: %w", id, err)
		}
	}
}

func (a Archivist) now() time.Time {
	if a.Now != nil {
		return a.Now().UTC()
	}
	return time.Now().UTC()
}

// write makes the archive.
func (a Archivist) write(ctx context.Context, id, name string) error {
	reader, writer := io.Pipe()
	written := make(chan struct{})
	go func() {
		defer close(written)
		writer.CloseWithError(a.encode(ctx, id, writer))
	}()
	err := a.Objects.PutObject(ctx, name, reader)
	reader.CloseWithError(errors.Join(err, io.ErrClosedPipe)) // ends the goroutine
	<-written
	return err
}

// encode writes an archive.
func (a Archivist) encode(ctx context.Context, id string, into io.Writer) error {
	packed := gzip.NewWriter(into)
	sum := sha256.New()
	lines := bufio.NewWriter(io.MultiWriter(packed, sum))
	count := 0
	err := writeLine(lines, header{archiveVersion, id})
	for record, readErr := range records(ctx, a.Store, id) {
		if err = errors.Join(err, readErr); err == nil {
			err = writeLine(lines, record)
		}
		if err != nil {
			return err
		}
		count++
	}
	if err = errors.Join(err, lines.Flush()); err != nil {
		return err
	}
	return errors.Join(writeLine(packed, trailer{count, hex.EncodeToString(sum.Sum(nil))}), packed.Close())
}

func writeLine(into io.Writer, value any) error {
	line, err := rawjson.Marshal(value)
	if err == nil {
		_, err = into.Write(append(line, '\n'))
	}
	return err
}

// restoreAtOnce bounds what one transaction restores, in records and in bytes.
const (
	restoreAtOnce      = 256
	restoreBytesAtOnce = 4 << 20
)

// Restore restores an archived conversation, with entries, receipts and turns unchanged, and removes the archive. Its
// text is indexed again. It can be stopped and repeated. It fails with continuo.ErrObjectGone when the archive is
// missing and with a descriptive error when it is damaged: then nothing has changed. A conversation that is not
// archived is returned unchanged.
func (a Archivist) Restore(ctx context.Context, id string) (continuo.Conversation, error) {
	found, err := a.Store.Conversation(ctx, id)
	if err == nil && found.ArchivedAt.IsZero() {
		return found, nil
	}
	if err == nil {
		err = a.verify(ctx, found)
	}
	if err == nil {
		err = a.bringBack(ctx, found)
	}
	if err == nil {
		err = a.Store.Restore(ctx, id)
	}
	name := continuo.ObjectName(id, ArchiveObject(found.ArchivedAt))
	if err == nil {
		err = a.Objects.DeleteObject(ctx, name)
	}
	if err == nil { // the store had recorded that it is obsolete
		err = a.Store.Discarded(ctx, []string{name})
	}
	now, nowErr := a.Store.Conversation(ctx, id)
	fasterWasAnother := nowErr == nil && found.ID == id && !now.ArchivedAt.Equal(found.ArchivedAt)
	if err != nil && !fasterWasAnother {
		return continuo.Conversation{}, fmt.Errorf("restore conversation %s: %w", id, err)
	}
	return now, nowErr
}

// verify reads an archive to its end.
func (a Archivist) verify(ctx context.Context, c continuo.Conversation) error {
	return a.decode(ctx, c, func([]Record) error { return nil })
}

// Entries yields the own entries of an archived conversation, in order, without restoring it. It fails with
// continuo.ErrObjectGone when the archive is missing.
func (a Archivist) Entries(ctx context.Context, archived continuo.Conversation) iter.Seq2[*continuo.Entry, error] {
	return func(yield func(*continuo.Entry, error) bool) {
		stopped := errors.New("stopped")
		err := a.decode(ctx, archived, func(some []Record) error {
			for i := range some {
				if some[i].Entry != nil && !yield(some[i].Entry, nil) {
					return stopped
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, stopped) {
			yield(nil, fmt.Errorf("read the archive of conversation %s: %w", archived.ID, err))
		}
	}
}

// bringBack writes the records of an archive, except for the conversation's own, which the store has.
func (a Archivist) bringBack(ctx context.Context, c continuo.Conversation) error {
	return a.decode(ctx, c, func(some []Record) error { return a.Store.PutArchived(ctx, c.ID, c.ArchivedAt, some) })
}

// decode passes the records of an archive to take, in batches, without the conversation's own.
func (a Archivist) decode(ctx context.Context, c continuo.Conversation, take func([]Record) error) error {
	name := continuo.ObjectName(c.ID, ArchiveObject(c.ArchivedAt))
	object, err := a.Objects.ReadObject(ctx, name, 0, -1)
	if errors.Is(err, continuo.ErrNotFound) {
		return fmt.Errorf("%w: %s; put it back from a backup of the object store", continuo.ErrObjectGone, name)
	}
	if err != nil {
		return err
	}
	err = readArchive(object, c.ID, take)
	if err := errors.Join(err, object.Close()); err != nil {
		return fmt.Errorf("archive %s: %w", name, err)
	}
	return nil
}

// errDamaged says that an archive differs from what was written.
var errDamaged = errors.New("it is damaged: put it back from a backup of the object store")

func readArchive(packed io.Reader, id string, take func([]Record) error) error {
	plain, err := gzip.NewReader(packed)
	if err != nil {
		return fmt.Errorf("%w (%w)", errDamaged, err)
	}
	r := &archiveReader{lines: bufio.NewReader(plain), sum: sha256.New()}
	var head header
	if err := r.line(&head); err != nil {
		return err
	}
	if head.Version != archiveVersion || head.Conversation != id {
		return fmt.Errorf("it is archive version %d of conversation %q, and should be version %d of %q", head.Version, head.Conversation, archiveVersion, id)
	}
	for {
		some, end, err := r.some()
		if err != nil {
			return err
		}
		if len(some) > 0 {
			if err := take(some); err != nil {
				return err
			}
		}
		if end {
			return nil
		}
	}
}

type archiveReader struct {
	lines   *bufio.Reader
	sum     hash.Hash
	records int
}

// line decodes one line, which is not the last, into a value.
func (r *archiveReader) line(into any) error {
	text, err := r.lines.ReadBytes('\n')
	if err == nil {
		_, _ = r.sum.Write(text) // a hash never fails
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("%w (%w)", errDamaged, err)
	}
	return nil
}

// some reads records up to a bound, and returns whether that was the end of a complete archive.
func (r *archiveReader) some() (some []Record, end bool, err error) {
	for size := 0; len(some) < restoreAtOnce && size < restoreBytesAtOnce; {
		text, err := r.lines.ReadBytes('\n')
		if err != nil {
			return nil, false, fmt.Errorf("%w (%w)", errDamaged, err)
		}
		if bytes.HasPrefix(text, []byte(`{"records":`)) {
			return some, true, r.complete(text)
		}
		var record Record
		if err := json.Unmarshal(text, &record); err != nil {
			return nil, false, fmt.Errorf("%w (%w)", errDamaged, err)
		}
		_, _ = r.sum.Write(text)
		r.records++
		size += len(text)
		if record.Conversation == nil {
			some = append(some, record)
		}
	}
	return some, false, nil
}

// complete checks the trailer.
func (r *archiveReader) complete(text []byte) error {
	var last trailer
	if err := json.Unmarshal(text, &last); err != nil {
		return fmt.Errorf("%w (%w)", errDamaged, err)
	}
	if sum := hex.EncodeToString(r.sum.Sum(nil)); last.Records != r.records || last.SHA256 != sum {
		return fmt.Errorf("%w (%d records with SHA-256 %s, not %d with %s)", errDamaged, r.records, sum, last.Records, last.SHA256)
	}
	if _, err := r.lines.ReadByte(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w (something follows its end)", errDamaged)
	}
	return nil
}

// ArchiveObject is the id of the object of a conversation that was archived at a time. Each attempt to archive has its
// own time, so no other attempt writes or removes its object.
func ArchiveObject(at time.Time) string {
	return "archive-" + at.UTC().Format("20060102T150405.000000000Z") + ".jsonl.gz"
}

// IsArchiveObject reports whether an id is the id of an archive.
func IsArchiveObject(id string) bool { return strings.HasPrefix(id, "archive-") }
