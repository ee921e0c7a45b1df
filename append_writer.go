package continuo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// appendRequest is one caller's request to a writer.
type appendRequest struct {
	ctx         context.Context
	entries     []Entry
	options     AppendOptions
	fingerprint string

	stored []Entry
	err    error
	// isNew says that the request's own commit stored the entries, when the conversation had the revision or a later one.
	isNew    bool
	revision int64
	settled  bool
	done     chan struct{} // closed when stored and err are set
	lead     chan struct{} // closed when the caller is to lead the writer
}

// finish settles the request; only the first call counts.
func (r *appendRequest) finish(err error) {
	if !r.settled {
		r.settled, r.err = true, err
		close(r.done)
	}
}

// writer orders the appends to one conversation (group commit). A caller that finds it idle leads: it takes all waiting
// requests, checks them against the tail in order, commits them as one batch, and hands the lead to the next caller.
type writer struct {
	log *Log
	id  string

	mu      sync.Mutex
	waiting []*appendRequest
	leading bool

	tail *tailState // used by the leader only; nil when it must be read
}

// tailState is the state at the end of a conversation that the rules need.
type tailState struct {
	conversation Conversation
	last         int64
	group        Group
	refs         map[string]bool // output refs of entries that are not stored yet
	stored       storedRefs
}

// maxWriters bounds how many idle conversations keep their tail in memory.
const maxWriters = 4096

func (l *Log) writer(id string) *writer {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.writers[id]
	if w == nil {
		if len(l.writers) >= maxWriters {
			l.dropIdleWriters()
		}
		w = &writer{log: l, id: id}
		l.writers[id] = w
	}
	return w
}

func (l *Log) dropIdleWriters() {
	for id, w := range l.writers {
		w.mu.Lock()
		idle := !w.leading && len(w.waiting) == 0
		w.mu.Unlock()
		if idle {
			delete(l.writers, id)
		}
	}
}

// submit returns when the request is settled.
func (w *writer) submit(request *appendRequest) {
	w.mu.Lock()
	w.waiting = append(w.waiting, request)
	lead := !w.leading
	w.leading = true
	w.mu.Unlock()
	if !lead {
		select {
		case <-request.done:
			return
		case <-request.lead:
		}
	}
	w.mu.Lock()
	requests := w.take()
	w.mu.Unlock()
	defer w.handOver()
	defer w.settle(requests)
	w.commit(requests)
}

// take removes the requests of the next batch from those that wait; the caller's own is the first. A request that begins
// a turn is a batch of its own: it may be refused because of another turn, and the others then go through. The caller
// holds mu.
func (w *writer) take() []*appendRequest {
	count := len(w.waiting)
	for i, request := range w.waiting {
		if request.options.Begin != nil {
			count = max(i, 1)
			break
		}
	}
	taken := w.waiting[:count:count]
	w.waiting = slices.Clone(w.waiting[count:])
	return taken
}

// settle fails the requests that commit left without a result because a store or a counter panicked. Waiting callers
// must not block permanently; the panic continues in the leader.
func (w *writer) settle(requests []*appendRequest) {
	for _, request := range requests {
		if !request.settled {
			w.tail = nil
			request.finish(fmt.Errorf("append to conversation %s: the write failed inside", w.id))
		}
	}
}

// handOver makes the first waiting caller the leader.
func (w *writer) handOver() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 {
		w.leading = false
		return
	}
	close(w.waiting[0].lead)
}

// commitTries bounds how often a batch is refused as conflicting although the conversation has not grown since it was
// read. Conflicts with other writers have no bound: each one means that another append succeeded, and callers leave by
// their contexts.
const commitTries = 64

// commit checks and appends the requests. The leader works for other callers too, so its own cancellation must not end
// the work: only a request that was cancelled before it began is left out.
func (w *writer) commit(requests []*appendRequest) {
	ctx := context.WithoutCancel(requests[0].ctx)
	for try, after := 0, int64(-1); ; {
		batch, accepted, done := w.check(ctx, requests)
		if !done {
			continue // the tail in memory was stale
		}
		if len(accepted) == 0 {
			return
		}
		err := w.log.store.Append(ctx, batch)
		var conflict *ConflictError
		if errors.As(err, &conflict) {
			if batch.After != after {
				try, after = 0, batch.After
			}
			if try++; try < commitTries {
				w.tail, requests = nil, accepted
				continue
			}
		}
		if err != nil && len(accepted) > 1 && isAboutOne(err) {
			w.tail = nil // a bad request must not fail the others
			for _, request := range accepted {
				w.commit([]*appendRequest{request})
			}
			return
		}
		switch {
		case err != nil && batch.Begin != nil:
			w.tail = nil
		case err != nil:
			w.tail = nil
			err = fmt.Errorf("append to conversation %s: %w", w.id, err)
		default:
			w.tail.conversation.LastSeq = w.tail.last
			w.tail.stored.add(batch.Entries)
			w.tail.refs = nil
		}
		for _, request := range accepted {
			if err == nil {
				request.isNew, request.revision = true, w.tail.conversation.Revision
			}
			request.finish(err)
		}
		return
	}
}

// isAboutOne reports whether an error says that one of the requests cannot be written, and that none was. After any
// other error, such as ErrUnavailable, all of them may have been written, so they must not be written again.
func isAboutOne(err error) bool {
	return slices.ContainsFunc([]error{ErrInvalid, ErrExists, ErrLeaseLost, ErrNotRunning}, func(known error) bool { return errors.Is(err, known) })
}

// check settles the requests that cannot be appended and returns a batch of those that can. When the tail in memory
// would refuse a request, check settles none and reports false: another process may have moved the tail, so it must be
// read again before a request is refused.
func (w *writer) check(ctx context.Context, requests []*appendRequest) (batch Batch, accepted []*appendRequest, done bool) {
	w.adoptSnapshot(ctx, requests)
	fresh := w.tail == nil
	if created := requests[0].options.Create; fresh && created != nil {
		w.tail = newTail(*created, Group{})
	} else if fresh {
		if err := w.loadTail(ctx); err != nil {
			for _, request := range requests {
				request.finish(err)
			}
			return Batch{}, nil, true
		}
	}
	batch = Batch{ConversationID: w.id, After: w.tail.last}
	refused := map[*appendRequest]error{}
	for _, request := range requests {
		settled, err := w.checkOne(ctx, request, &batch)
		if err != nil || settled {
			refused[request] = err
			continue
		}
		accepted = append(accepted, request)
	}
	for _, err := range refused {
		if err != nil && !fresh {
			w.tail = nil
			return Batch{}, nil, false
		}
	}
	for request, err := range refused {
		request.finish(err)
	}
	return batch, accepted, true
}

// checkOne adds a request's entries to the batch. It reports true when the request is settled already because its key
// appended the same entries earlier. A request whose key is in this batch already is settled with the batch.
func (w *writer) checkOne(ctx context.Context, request *appendRequest, batch *Batch) (settled bool, err error) {
	if err := request.ctx.Err(); err != nil {
		return false, err
	}
	if key := request.options.Key; key != "" {
		receipt, pending, err := w.receipt(ctx, request, batch)
		switch {
		case err != nil:
			return false, err
		case pending:
			offset := receipt.First - batch.After - 1
			request.stored = batch.Entries[offset : offset+receipt.Last-receipt.First+1]
			return false, nil
		case receipt.Key != "":
			request.stored, err = w.log.appended(ctx, w.id, receipt)
			return true, err
		}
	}
	first := w.tail.last + 1
	if want := request.options.ExpectSeq; want != 0 && want != first {
		return false, &ConflictError{Want: want, Have: first}
	}
	undo := *w.tail
	stored := make([]Entry, len(request.entries))
	for i := range request.entries {
		stored[i] = request.entries[i]
		if err := w.log.prepare(ctx, &w.tail.conversation, w.tail, &stored[i]); err != nil {
			*w.tail = undo
			return false, atIndex(err, i)
		}
	}
	request.stored = stored
	batch.Entries = append(batch.Entries, stored...)
	batch.Runs = append(batch.Runs, RunChanges(stored)...)
	if request.options.Turn != nil {
		update := request.options.Turn(stored)
		batch.Blobs, update.Blobs = append(batch.Blobs, update.Blobs...), nil
		batch.Turns = append(batch.Turns, update)
	}
	if request.options.Begin != nil {
		batch.Begin, batch.Create = request.options.Begin(stored), request.options.Create
	}
	batch.Blobs = append(batch.Blobs, request.options.Blobs...)
	if request.options.Prefixes != nil {
		for _, prefix := range request.options.Prefixes(stored) {
			prefix.ConversationID = w.id
			batch.Prefixes = append(batch.Prefixes, prefix)
		}
	}
	if key := request.options.Key; key != "" {
		batch.Receipts = append(batch.Receipts, Receipt{Key: key, Fingerprint: request.fingerprint, First: first, Last: w.tail.last})
	}
	return false, nil
}

// receipt returns the record of what a request's key appended: from the store or, pending, from earlier in the same
// batch. Its Key is empty when there is no record.
func (w *writer) receipt(ctx context.Context, request *appendRequest, batch *Batch) (receipt Receipt, pending bool, err error) {
	key := request.options.Key
	receipt, err = w.log.store.Receipt(ctx, w.id, key)
	if errors.Is(err, ErrNotFound) {
		receipt, err = Receipt{}, nil
		for _, earlier := range batch.Receipts {
			if earlier.Key == key {
				receipt, pending = earlier, true
			}
		}
	}
	if err == nil && receipt.Key != "" && receipt.Fingerprint != request.fingerprint {
		err = fmt.Errorf("%w: key %q", ErrKeyReused, key)
	}
	return receipt, pending, err
}

// adoptSnapshot takes the tail from a request's snapshot where that is newer than the tail in memory. A snapshot is used
// once: it may be out of date, and then the tail must be read.
func (w *writer) adoptSnapshot(ctx context.Context, requests []*appendRequest) {
	for _, request := range requests {
		known := request.options.Snapshot
		request.options.Snapshot = nil
		if known == nil || known.Conversation.ID != w.id {
			continue
		}
		if w.tail != nil {
			w.tail.conversation.Revision = max(w.tail.conversation.Revision, known.Conversation.Revision)
		}
		if w.tail != nil && w.tail.last >= known.Conversation.LastSeq {
			continue
		}
		if group, err := w.log.OpenGroupOf(ctx, known); err == nil {
			w.tail = newTail(known.Conversation, group)
		}
	}
}

func (w *writer) loadTail(ctx context.Context) error {
	conversation, err := w.log.Conversation(ctx, w.id)
	if err != nil {
		return err
	}
	group, err := w.log.OpenGroup(ctx, conversation)
	if err != nil {
		return err
	}
	w.tail = newTail(conversation, group)
	return nil
}

func newTail(conversation Conversation, group Group) *tailState {
	return &tailState{conversation: conversation, last: conversation.LastSeq, group: group, stored: storedRefs{all: conversation.LastSeq == 0}}
}
