package window

import (
	"fmt"
	"iter"
	"math"

	continuo "github.com/continuo-log/continuo"
)

// Source is the log as a build reads it. The log of a conversation is one: see turn.Source. Nobody changes the entries:
// plans refer to them.
type Source interface {
	// Backward yields the entries at or before seq, the newest first, down to 1. Seq may be beyond the newest.
	Backward(seq int64) iter.Seq2[*continuo.Entry, error]
	// Forward yields the entries from seq up.
	Forward(seq int64) iter.Seq2[*continuo.Entry, error]
	// LatestUser finds the newest user entry at or before seq that is not hidden; continuo.ErrNotFound.
	LatestUser(seq int64) (*continuo.Entry, error)
}

// Paged is a Source that fetches entries in pages. Expecting returns it for a reader that will probably take so many
// entries of Backward, so that the first page has neither too few nor too many.
type Paged interface {
	Source
	Expecting(entries int) Source
}

// expecting tells a paged source how many entries a reader will probably take; 0 for unknown.
func expecting(source Source, entries int) Source {
	if paged, ok := source.(Paged); ok && entries > 0 {
		return paged.Expecting(entries)
	}
	return source
}

// Input is what a build needs besides the log and the view. The zero value plans a request at the current end
// of the log, for an unknown model.
type Input struct {
	// At is the newest seq to consider; continuo.ErrBadRange where the source has no such entry. Default 0:
	// the newest entry of the source.
	At int64
	// Counter counts tokens as the model does, or approximately. Default: [continuo.RoughCounter], with
	// Estimated set.
	Counter continuo.Counter
	// Prompt is the size of the system messages and tools. It counts against ModelWindow, not the view's
	// limits.
	Prompt continuo.Size
	// ModelWindow is the model's context window in tokens. 0: unknown.
	ModelWindow int
	// Output is the limit of the answer in tokens. 0: what the view's Reserve leaves.
	Output int
	// Provider and Model name the recipient of the request.
	Provider, Model string
	// Profiles finds what is known of the user. Default: no request shows it.
	Profiles Profiles
	// LeadIn is the user message that the renderer puts in front of messages that begin with the assistant.
	// Default "": none.
	LeadIn string
	// Prices are those of the model's cache, by which a view that is Priced moves its window. Default:
	// continuo.DefaultCachePrices.
	Prices continuo.CachePrices
	// Recorded is the window that the request recorded, where it is rebuilt: entries that it does not show, and by which its mark
	// and what it gives up were chosen, may have been redacted since. Nil: a move chooses them.
	Recorded *continuo.Window
	// Estimated says that the provider's reports on its requests in this log correct the counts, so that limits in tokens
	// are kept on the provider's count.
	Estimated bool
}

// WithDefaults fills in a missing Counter.
func (in Input) WithDefaults() Input {
	if in.Counter == nil {
		in.Counter, in.Estimated = continuo.RoughCounter{}, true
	}
	return in
}

// Begin completes the input of a build and makes its source fail for an At that it does not have. The Build
// of every view calls it first.
func Begin(source Source, in Input) (Source, Input, error) {
	in = in.WithDefaults()
	switch {
	case source == nil:
		return nil, in, fmt.Errorf("%w: there is no source to build from", continuo.ErrInvalid)
	case in.At == 0:
		newest, err := newestSeq(source)
		if err != nil {
			return nil, in, err
		}
		in.At = newest
	}
	return &boundSource{source, in.At}, in, nil
}

// newestSeq is the seq of a source's newest entry, 0 where it has none.
func newestSeq(source Source) (int64, error) {
	for entry, err := range source.Backward(math.MaxInt64) {
		if err != nil {
			return 0, err
		}
		return entry.Seq, nil
	}
	return 0, nil
}

// boundSource is a source that must have an entry with the seq at, and shows no later one.
type boundSource struct {
	Source
	at int64
}

// Expecting is part of Paged.
func (b *boundSource) Expecting(entries int) Source {
	return &boundSource{expecting(b.Source, entries), b.at}
}

// Backward is part of Source.
func (b *boundSource) Backward(seq int64) iter.Seq2[*continuo.Entry, error] {
	if seq != b.at || b.at == 0 {
		return b.Source.Backward(seq)
	}
	return func(yield func(*continuo.Entry, error) bool) {
		first := true
		for entry, err := range b.Source.Backward(seq) {
			if first && err == nil && entry.Seq != b.at {
				yield(nil, b.outOfRange())
				return
			}
			first = false
			if !yield(entry, err) {
				return
			}
		}
		if first {
			yield(nil, b.outOfRange())
		}
	}
}

// Forward is part of Source.
func (b *boundSource) Forward(seq int64) iter.Seq2[*continuo.Entry, error] {
	return func(yield func(*continuo.Entry, error) bool) {
		if seq > b.at {
			return
		}
		for entry, err := range b.Source.Forward(seq) {
			if err == nil && entry.Seq > b.at {
				return
			}
			if !yield(entry, err) || err != nil || entry.Seq == b.at {
				return
			}
		}
	}
}

func (b *boundSource) outOfRange() error {
	newest, err := newestSeq(b.Source)
	switch {
	case err != nil:
		return err
	case newest == 0:
		return fmt.Errorf("at %d: %w: the conversation has no entries", b.at, continuo.ErrBadRange)
	}
	return fmt.Errorf("at %d: %w: the conversation has entries 1 to %d", b.at, continuo.ErrBadRange, newest)
}
