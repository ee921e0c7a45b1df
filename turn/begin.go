package turn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// Begin takes the conversation's lease for a new turn and appends the turn's input, in one commit. It fails like
// [Keeper.Begin], and with the errors of an input that cannot be appended; then nothing is written. If in.Conversation or
// in.At is set, it fails with a *continuo.ConflictError when the log has more entries. The caller must [Runner.Run] the
// journal with the same input, or [Keeper.Abandon] it, once.
func (r *Runner) Begin(ctx context.Context, keeper *Keeper, turn continuo.Turn, in Input) (*Journal, error) {
	r = r.withLog(keeper.options.Log)
	if err := r.check(); err != nil {
		return nil, err
	}
	begin := time.Now()
	for {
		journal, err := keeper.begin(ctx, turn, func(turn *continuo.Turn) (*firstEntries, error) { return r.firstEntries(ctx, turn, in) })
		conflict := new(continuo.ConflictError)
		if errors.As(err, &conflict) && in.Conversation.ID == "" && in.At == 0 {
			continue // another append came first
		}
		if err == nil {
			journal.measure(StageBegin, time.Since(begin))
		}
		return journal, err
	}
}

// withLog returns the runner with its log set.
func (r *Runner) withLog(log *continuo.Log) *Runner {
	if r.Log != nil {
		return r
	}
	own := *r
	own.Log = log
	return &own
}

// firstEntries is what a turn appends first: the results of open calls, and its input.
type firstEntries struct {
	snapshot *continuo.Snapshot // of the conversation before
	entries  []continuo.Entry   // empty for a resumed turn that needs no new entry
	newest   *continuo.Entry    // then the newest entry of the conversation
	mode     continuo.Mode      // the conversation's new active mode and agent; "" leaves them unchanged
	agent    string
	at       int64 // the seq that the first entry must get; 0 for any
	prefixes func(stored []continuo.Entry) []continuo.Prefix
	create   *continuo.Conversation // that the turn begins with; nil for one that exists
	blobs    []continuo.Blob        // that the turn's request names
	kept     func()                 // called when they are stored; nil for nothing
}

// started returns the turn's first event.
func (o *firstEntries) started(stored []continuo.Entry) []Event {
	if len(stored) == 0 {
		return []Event{{Kind: Started, Entry: o.newest}}
	}
	return []Event{{Kind: Started, Entry: &stored[len(stored)-1]}}
}

// firstEntries decides what a turn appends first, by the newest entries of its conversation. It may append them only if the
// log has not grown since, or under the turn's lease.
func (r *Runner) firstEntries(ctx context.Context, turn *continuo.Turn, in Input) (*firstEntries, error) {
	snapshot, err := in.snapshot(), error(nil)
	if snapshot == nil {
		snapshot, err = r.newestEntries(continuo.WithMemory(ctx, nil), turn.ConversationID, in.Conversation)
	}
	if err != nil {
		return nil, err
	}
	conversation := snapshot.Conversation
	if !conversation.ArchivedAt.IsZero() {
		return nil, continuo.ErrArchived
	}
	o := &firstEntries{at: in.At, snapshot: snapshot}
	if in.Create {
		o.create = &conversation
	}
	if r.Forward != nil {
		o.blobs, o.kept = r.Forward.blobs, r.Forward.kept
	}
	if o.at == 0 {
		o.at = conversation.LastSeq + 1
	}
	if turn.RunID == "" {
		o.mode, o.agent = in.Mode, in.AgentID
	}
	// The open calls may be those of another turn, which has ended.
	open, err := openResults(ctx, r.Log, o.snapshot)
	if err != nil {
		return nil, err
	}
	if in.Entries, err = r.withResults(in.Entries, open); err != nil {
		return nil, err
	}
	o.entries = unanswered(open, in.Entries)
	if err := r.openWith(ctx, o, in); err != nil {
		return nil, err
	}
	o.entries = withTurnFields(o.entries, turn, in)
	if in.Prefixes != nil {
		o.prefixes = in.Prefixes(o.entries, false)
	}
	return o, nil
}

// snapshot is the input's, if it is of the conversation as it was read last; nil for none.
func (in *Input) snapshot() *continuo.Snapshot {
	if known := in.Snapshot; known != nil {
		if has, now := &known.Conversation, &in.Conversation; has.ID == now.ID && has.LastSeq == now.LastSeq && has.Revision == now.Revision {
			return known
		}
	}
	return nil
}

// newestEntries reads the newest entries of a conversation, whose value is known if it was read just now.
func (r *Runner) newestEntries(ctx context.Context, id string, known continuo.Conversation) (*continuo.Snapshot, error) {
	switch {
	case known.ID == "":
		return r.Log.Latest(ctx, id, r.entriesPerRead())
	case !known.ArchivedAt.IsZero():
		return nil, continuo.ErrArchived
	}
	return r.Log.LatestOf(ctx, known, r.entriesPerRead())
}

// openWith adds the turn's input, or what a resumed turn needs, after the results of open calls.
func (r *Runner) openWith(ctx context.Context, o *firstEntries, in Input) (err error) {
	switch {
	case len(in.Entries) > 0:
		o.entries = append(o.entries, in.Entries[len(resultsOf(in.Entries)):]...)
	case in.Cue != nil:
		r.recall(ctx, o, continuo.Null())
		o.entries = append(o.entries, *in.Cue)
	case !in.Resume:
		if !in.Fits {
			err = r.CheckFits(ctx, o.snapshot.Conversation, in.Message)
		}
		if err == nil {
			r.recall(ctx, o, in.Message)
		}
		o.entries = append(o.entries, continuo.Entry{Role: continuo.User, Content: in.Message})
	case len(o.entries) > 0 && !o.entries[0].Hidden: // the turn continues from the results
	default:
		if o.newest, err = r.newest(ctx, o.snapshot); err != nil {
			return err
		}
		if o.newest.Role == continuo.Assistant && !window.IsFailedAttempt(o.newest) && !in.Again { // otherwise the model is asked again: there was no output, or its client says what it is asked
			o.entries = append(o.entries, continuo.Entry{Role: continuo.System, PartType: continuo.PartResume, Content: continuo.Text(strings.TrimSpace(resumeNote))})
		}
	}
	return err
}

// recall adds the earlier entries that the turn's input may need.
func (r *Runner) recall(ctx context.Context, o *firstEntries, message continuo.Content) {
	if r.Recaller == nil || r.Forward != nil {
		return
	}
	if recalled := r.Recaller.Recall(ctx, r, o.snapshot, message); recalled != nil {
		o.entries = append(o.entries, *recalled)
	}
}

// newest reads the conversation's newest entry that is not hidden.
func (r *Runner) newest(ctx context.Context, snapshot *continuo.Snapshot) (*continuo.Entry, error) {
	for entry, err := range r.Log.Read(ctx, snapshot.Conversation, continuo.Range{Backward: true, Snapshot: snapshot}) {
		if err != nil || !entry.Hidden {
			return &entry, err
		}
	}
	return nil, fmt.Errorf("%w: there is nothing to resume in an empty conversation", continuo.ErrInvalid)
}

// The number of entries that a turn reads at its beginning: what its view can show and a few more, which the view leaves
// out; mostEntries where the view has no limit on messages.
const (
	extraEntries = 8
	mostEntries  = 128
)

// entriesPerRead bounds how many entries a request reads with one query.
func (r *Runner) entriesPerRead() int {
	if most := r.View.MaxMessages(); most > 0 {
		return min(most+extraEntries, mostEntries)
	}
	return mostEntries / 2
}

// withTurnFields sets the turn's fields on its entries.
func withTurnFields(entries []continuo.Entry, turn *continuo.Turn, in Input) []continuo.Entry {
	for i := range entries {
		entries[i].Mode, entries[i].AgentID = in.Mode, in.AgentID
		entries[i].NoMemory = in.NoMemory
		if tag(&entries[i], turn, in.Author); entries[i].HoldsRecall() {
			entries[i].TurnID = "" // it can be redacted while the turn runs: nothing of the turn is in it
		}
	}
	return entries
}

// begin takes the conversation's lease for a new turn. Open returns what the turn appends in the same commit, nil for
// nothing. It is called again when a turn whose process is gone was closed first.
func (k *Keeper) begin(ctx context.Context, turn continuo.Turn, open func(*continuo.Turn) (*firstEntries, error)) (*Journal, error) {
	if turn.ConversationID == "" {
		return nil, fmt.Errorf("begin a turn: %w: it names no conversation", continuo.ErrInvalid)
	}
	if turn.ID == "" {
		turn.ID = k.options.Log.NewID("turn")
	}
	turn.Owner = k.options.Owner
	k.mu.Lock()
	if _, runs := k.journals[turn.ID]; runs {
		k.mu.Unlock()
		return nil, fmt.Errorf("begin a turn: %w", continuo.ErrExists)
	}
	k.journals[turn.ID] = nil
	k.mu.Unlock()
	j, err := k.commitBegin(ctx, turn, open)
	var busy *continuo.BusyError
	if errors.As(err, &busy) && k.abandoned(busy.Turn) {
		if _, err = k.Recover(ctx, busy.Turn); err == nil {
			j, err = k.commitBegin(ctx, turn, open)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		delete(k.journals, turn.ID)
		return nil, fmt.Errorf("begin a turn: %w", err)
	}
	k.journals[turn.ID] = j
	return j, nil
}

// commitBegin begins a turn in the store and creates its journal.
func (k *Keeper) commitBegin(ctx context.Context, turn continuo.Turn, open func(*continuo.Turn) (*firstEntries, error)) (*Journal, error) {
	o, err := open(&turn)
	if err != nil {
		return nil, err
	}
	var begin *continuo.TurnBegin
	var emitted []Event
	options := continuo.AppendOptions{Begin: func(stored []continuo.Entry) *continuo.TurnBegin {
		begin = &continuo.TurnBegin{Turn: turn, Lease: k.options.Lease}
		if o == nil {
			return begin
		}
		begin.Mode, begin.Agent = o.mode, o.agent
		emitted = o.started(stored)
		for i := range emitted {
			emitted[i].ID, emitted[i].TurnID = int64(i)+1, turn.ID
			begin.Events = append(begin.Events, encode(&emitted[i]))
		}
		return begin
	}}
	var entries []continuo.Entry
	if o != nil {
		entries, options.ExpectSeq, options.Snapshot, options.Prefixes = o.entries, o.at, o.snapshot, o.prefixes
		options.Create, options.Blobs, options.Repaired = o.create, o.blobs, true
	}
	started := time.Now()
	stored, err := k.options.Log.Append(ctx, turn.ConversationID, entries, options)
	if err != nil {
		return nil, err
	}
	j := newJournal(ctx, k, begin.Begun)
	if o != nil && o.kept != nil {
		o.kept()
	}
	if o != nil {
		j.opened, j.snapshot = true, o.snapshot.With(stored)
		j.conversation = o.snapshot.Conversation
		j.measure(StageAppend, time.Since(started))
	}
	if len(stored) > 0 {
		j.through = stored[len(stored)-1].Seq
	}
	j.keeper.options.Meter.EventsFlushed(len(emitted))
	for _, e := range emitted {
		j.observe(e) // counted before readers see it
	}
	j.show(emitted...)
	return j, nil
}
