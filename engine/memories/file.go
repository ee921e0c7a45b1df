package memories

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// The bounds of a file.
const (
	MaxFileBytes = 64 << 20
	maxFileFacts = 20_000
	maxFileWord  = 400 // characters of a subject, an attribute, an id and who found it
)

// File is an export as it was read: its facts are complete and in order.
type File struct {
	ExportHead
	Facts []FileFact
}

// FileFact is a fact of a file.
type FileFact struct {
	Fact
	Line int // where it begins, from 1
}

// FileError says what is wrong with a file. It is an ErrInvalid.
type FileError struct {
	Line    int // from 1
	Message string
}

func (e *FileError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Message) }

// Unwrap makes it an ErrInvalid.
func (e *FileError) Unwrap() error { return continuo.ErrInvalid }

// ReadFile reads an export: JSON, or JSON Lines whose first line is the head. It fails with a *FileError.
func ReadFile(data []byte) (*File, error) {
	r := &fileReader{data: data}
	if len(data) > MaxFileBytes {
		return nil, r.fails(0, "the file has more than %d MiB", MaxFileBytes>>20)
	}
	if at := invalidUTF8(data); at >= 0 {
		return nil, r.fails(at, "text is not valid UTF-8")
	}
	r.decoder = json.NewDecoder(bytes.NewReader(data))
	r.decoder.DisallowUnknownFields()
	return r.read()
}

func invalidUTF8(data []byte) int {
	for at := 0; at < len(data); {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size <= 1 {
			return at
		}
		at += size
	}
	return -1
}

// fileReader reads a file, whose positions it turns into lines.
type fileReader struct {
	data    []byte
	decoder *json.Decoder
	file    File

	counted, lines int // the lines before an offset
}

func (r *fileReader) read() (*File, error) {
	var head struct {
		ExportHead
		Facts   *json.RawMessage `json:"facts"`
		Profile string           `json:"profile"`
	}
	begin := r.next(0)
	if err := r.decode(begin, &head); err != nil {
		return nil, err
	}
	if err := head.check(); err != nil {
		return nil, r.fails(begin, "%v", err)
	}
	r.file.ExportHead = head.ExportHead
	var err error
	if head.Facts == nil {
		err = r.facts(int(r.decoder.InputOffset()))
	} else {
		err = r.list(*head.Facts, int(r.decoder.InputOffset()))
	}
	if err != nil {
		return nil, err
	}
	return &r.file, nil
}

// list reads the facts of one JSON document that ends at an offset.
func (r *fileReader) list(raw json.RawMessage, end int) error {
	if at := r.next(end); at < len(r.data) {
		return r.fails(at, "the file has more than one export")
	}
	begin := bytes.Index(r.data, raw) // the only place with all of the facts
	if len(raw) == 0 || raw[0] != '[' {
		return r.fails(max(begin, 0), "facts is not a list")
	}
	r.decoder = json.NewDecoder(bytes.NewReader(raw))
	r.decoder.DisallowUnknownFields()
	if _, err := r.decoder.Token(); err != nil {
		return r.fails(begin, "%v", err)
	}
	for r.decoder.More() {
		at := r.next(begin + int(r.decoder.InputOffset()))
		if at < len(r.data) && r.data[at] == ',' {
			at = r.next(at + 1)
		}
		if err := r.fact(at); err != nil {
			return err
		}
	}
	return nil
}

// facts reads one fact after the other.
func (r *fileReader) facts(from int) error {
	for at := r.next(from); at < len(r.data); at = r.next(int(r.decoder.InputOffset())) {
		if err := r.fact(at); err != nil {
			return err
		}
	}
	return nil
}

// fact reads a fact that begins at an offset.
func (r *fileReader) fact(at int) error {
	fact := FileFact{Line: r.line(at)}
	if err := r.decode(at, &fact.Fact); err != nil {
		return err
	}
	if len(r.file.Facts) == maxFileFacts {
		return r.fails(at, "the file has more than %d facts", maxFileFacts)
	}
	var last int64
	if known := r.file.Facts; len(known) > 0 {
		last = known[len(known)-1].ID
	}
	if err := fact.check(last); err != nil {
		return r.fails(at, "%v", err)
	}
	r.file.Facts = append(r.file.Facts, fact)
	return nil
}

// decode reads the next value, which begins at an offset.
func (r *fileReader) decode(at int, into any) error {
	err := r.decoder.Decode(into)
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return r.fails(len(r.data), "the file ends too early")
	case errors.As(err, &syntax):
		return r.fails(at, "this is not valid JSON: %v", err)
	}
	return r.fails(at, "%s", rawjson.Explain(err))
}

// next is the offset of the next byte that is no space.
func (r *fileReader) next(at int) int {
	for at < len(r.data) && strings.IndexByte(" \t\r\n", r.data[at]) >= 0 {
		at++
	}
	return at
}

// line is the line of an offset, from 1. Offsets do not decrease from call to call.
func (r *fileReader) line(at int) int {
	at = min(at, len(r.data))
	if at > r.counted {
		r.lines += bytes.Count(r.data[r.counted:at], []byte{'\n'})
		r.counted = at
	}
	return r.lines + 1
}

func (r *fileReader) fails(at int, format string, args ...any) error {
	return &FileError{r.line(at), fmt.Sprintf(format, args...)}
}

// check refuses a fact that no memory would have; last is the id of the one before.
func (f *FileFact) check(last int64) error {
	switch {
	case f.ID <= last:
		return fmt.Errorf("the id %d of the fact does not follow %d: the oldest fact comes first", f.ID, last)
	case strings.TrimSpace(f.Text) == "" || utf8.RuneCountInString(f.Text) > continuo.MaxFactChars:
		return fmt.Errorf("a fact has 1 to %d characters", continuo.MaxFactChars)
	case !slices.Contains(continuo.FactKinds, f.Kind):
		return fmt.Errorf("the kind of a fact is one of %v, not %q", continuo.FactKinds, f.Kind)
	case !(f.Confidence >= 0 && f.Confidence <= 1):
		return errors.New("the confidence of a fact is between 0 and 1")
	case utf8.RuneCountInString(f.Subject) > maxFileWord || utf8.RuneCountInString(f.Attribute) > maxFileWord || utf8.RuneCountInString(f.By) > maxFileWord:
		return fmt.Errorf("subject, attribute and by have at most %d characters", maxFileWord)
	case f.ValidFrom.IsZero():
		return errors.New("the fact has no valid_from")
	case slices.ContainsFunc(f.Supersedes, func(id int64) bool { return id < 1 || id >= f.ID }):
		return fmt.Errorf("the fact supersedes %v, which are no earlier facts", f.Supersedes)
	case len(f.Sources) == 0:
		return errors.New("the fact has no source: a fact without a quote does not exist")
	}
	for _, source := range f.allSources() {
		switch {
		case source.ConversationID == "" || utf8.RuneCountInString(source.ConversationID) > maxFileWord || source.Seq < 1:
			return errors.New("a source names a conversation and the seq of an entry, from 1")
		case strings.TrimSpace(source.Quote) == "":
			return fmt.Errorf("the source %s %d has no quote: a fact without a quote does not exist", source.ConversationID, source.Seq)
		}
	}
	return nil
}

// allSources are the places that the fact was taken from, also before it was imported there, each once.
func (f *FileFact) allSources() []Source {
	all := slices.Clone(f.Sources)
	if f.Imported != nil {
		all = slices.Concat(f.Imported.Sources, f.Sources)
	}
	var once []Source
	for _, one := range all {
		same := func(s Source) bool { return s.ConversationID == one.ConversationID && s.Seq == one.Seq }
		if !slices.ContainsFunc(once, same) && len(once) < continuo.MaxFactSources {
			once = append(once, one)
		}
	}
	return once
}

// end is until when a fact was said to hold: the end that a newer fact has set is found again from that one.
func (f *File) end(fact *FileFact) time.Time {
	if fact.SupersededBy != 0 {
		at, ok := slices.BinarySearchFunc(f.Facts, fact.SupersededBy, func(other FileFact, id int64) int { return cmp.Compare(other.ID, id) })
		if ok && f.Facts[at].ValidFrom.Equal(fact.ValidTo) {
			return time.Time{}
		}
	}
	return fact.ValidTo
}
