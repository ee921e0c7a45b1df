package continuo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
)

// Range selects entries by seq, both ends included; To 0 means the newest.
type Range struct {
	From, To int64
	Backward bool
	// Expect is how many entries the reader will probably take: the first page has as many and a few more, since a
	// reader often learns from the next entry that it has enough. It changes nothing that is yielded. Default: a few;
	// further pages become larger.
	Expect int
	// Keeps says that the reader keeps the entries in memory until the end of its request; see [WithMemory].
	Keeps bool
	// Snapshot has entries that the caller has read already: they are taken from there. Default none.
	Snapshot *Snapshot

	isRaw bool // recalls of another user's words are not replaced
}

const (
	// firstPage is the number of rows of a reader's first page. The second page has twice as many and each further one
	// twice as many as the one before, up to pageSize: a reader that stops early has caused few reads in vain. A reader
	// that says how many entries it expects gets up to maxExpect of them, and moreThanExpected, as its first page.
	firstPage        = 4
	pageSize         = 64
	maxExpect        = 512
	moreThanExpected = 4
	// pageBytes bounds the stored form of a page's entries. Larger entries are read one by one, and only a few at once
	// in this process: decoding takes several times their size for a moment.
	pageBytes = 1 << 20
)

// Entries yields the current entries of a conversation, including those that a fork inherited, in ascending order or,
// with Backward, descending. It reads in pages, so a consumer that stops early has read little more than it took. It
// fails with ErrNotFound and ErrArchived.
func (l *Log) Entries(ctx context.Context, conversationID string, r Range) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		conversation, err := l.Conversation(ctx, conversationID)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		reader := pageReader{log: l, conversation: &conversation, isFresh: true}
		reader.read(ctx, r, func(entry *Entry, err error) bool {
			if err != nil {
				return yield(Entry{}, err)
			}
			return yield(*entry, nil)
		})
	}
}

// Read is [Log.Entries] up to the LastSeq of a conversation value: a value that was read before an append does not
// yield the appended entries.
func (l *Log) Read(ctx context.Context, conversation Conversation, r Range) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for entry, err := range l.ReadShared(ctx, conversation, r) {
			if err != nil {
				yield(Entry{}, err)
				return
			}
			if !yield(*entry, nil) {
				return
			}
		}
	}
}

// ReadShared is [Log.Read] for a reader that does not change the entries: they are not copied, and other readers may
// have the same ones.
func (l *Log) ReadShared(ctx context.Context, conversation Conversation, r Range) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		reader := pageReader{log: l, conversation: &conversation}
		reader.read(ctx, r, yield)
	}
}

// pageReader reads pages of one conversation for one reader.
type pageReader struct {
	log          *Log
	conversation *Conversation
	isFresh      bool // the conversation was read from the store for this reader

	// of is the conversation whose revision the reader last asked the store for, and view is what the cache had of it
	// before: empty where that was of another revision. The answer is revision; known is false for none.
	of       string
	revision int64
	known    bool
	view     entriesView
}

// read yields the entries of a range.
func (r *pageReader) read(ctx context.Context, of Range, yield func(*Entry, error) bool) {
	conversation := r.conversation
	if of.To == 0 || of.To > conversation.LastSeq {
		of.To = conversation.LastSeq
	}
	next, end, step := max(of.From, 1), of.To, int64(1)
	if of.Backward {
		next, end, step = end, next, -1
	}
	size, given, isFirst := firstPage, 0, true // first from the store, which what is in memory comes before
	memory, held := memoryOf(ctx), int64(0)
	defer func() { memory.give(held) }()
	for (end-next)*step >= 0 {
		memory.give(held)
		page, taken, err := of.Snapshot.page(conversation.ID, next, end, of.Backward), int64(0), error(nil)
		if page == nil {
			most := size
			if isFirst && of.Expect > given {
				most = min(of.Expect-given, maxExpect) + moreThanExpected
			}
			var fromMemory bool
			if page, taken, fromMemory, err = r.page(ctx, next, end, of.Backward, most); !fromMemory {
				size, isFirst = min(2*size, pageSize), false
			}
		}
		given += len(page)
		if held = taken; of.Keeps {
			held = 0
		}
		if err != nil {
			yield(nil, fmt.Errorf("read conversation %s: %w", conversation.ID, err))
			return
		}
		for i := range page {
			entry := &page[i]
			if of.Backward {
				entry = &page[len(page)-1-i]
			}
			if entry.isForAnother(conversation) && !of.isRaw {
				entry = r.log.redactedFor(conversation, entry)
			}
			if !yield(entry, nil) {
				return
			}
			next = entry.Seq + step
		}
	}
}

// page returns the entries from next towards end, at most limit, within one segment and one page, in ascending order.
// The caller must not change them. FromMemory says that the store was not asked for them. Taken is how many bytes of the context's memory budget it reserved.
func (r *pageReader) page(ctx context.Context, next, end int64, backward bool, limit int) (page []Entry, taken int64, fromMemory bool, err error) {
	segment := segmentOf(r.conversation, next)
	query := EntryQuery{From: next, To: min(end, segment.to), Limit: limit}
	if backward {
		query = EntryQuery{From: max(end, segment.from), To: next, Backward: true, Limit: limit}
	}
	first, last := query.seqs()
	view := r.confirmed(ctx, segment.id, first, last)
	if page = view.page(first, last, backward); page != nil {
		r.log.options.PageRead(true)
		taken, err = memoryOf(ctx).takeEntries(page)
		return page, taken, true, err
	}
	if n := len(view.tail); n > 0 && backward && view.tail[n-1].Seq < next {
		query.From = max(query.From, view.tail[n-1].Seq+1)
	}
	page, taken, err = r.log.entries(ctx, segment.id, query)
	if err == nil && (len(page) == 0 || page[0].Seq != next) {
		err = fmt.Errorf("%w: entry %d is missing from the store", ErrNotFound, next)
	}
	if err != nil {
		return nil, taken, false, err
	}
	r.log.options.PageRead(false)
	if backward {
		slices.Reverse(page)
	}
	if r.of == segment.id && r.known {
		r.log.cache.put(segment.id, r.revision, segment.to, page)
	} else if r.of != segment.id { // then it is the reader's own conversation
		r.log.cache.put(segment.id, r.conversation.Revision, segment.to, page)
	}
	return page, taken, false, nil
}

// confirmed returns what the cache has of a conversation, if it has entries of a range and they are what the store has
// now. It asks the store once in the life of a reader, and only if there is something to confirm: the revision of the
// reader's own conversation value may be out of date unless it isFresh, and that of an ancestor is unknown.
func (r *pageReader) confirmed(ctx context.Context, id string, first, last int64) *entriesView {
	switch {
	case r.log.cache == nil:
		return &r.view
	case r.of == id:
		return &r.view
	}
	view, found := r.log.cache.view(id)
	if isOwn := id == r.conversation.ID; isOwn && !(found && view.covers(first, last)) {
		return &entriesView{}
	}
	r.ask(ctx, id)
	if found && r.known && r.revision == view.revision {
		r.view = view
	}
	return &r.view
}

// ask reads the revision of a conversation. After a failure the entries are read from the store, which may fail too.
func (r *pageReader) ask(ctx context.Context, id string) {
	revision, err := r.conversation.Revision, error(nil)
	switch {
	case !r.isFresh || id != r.conversation.ID:
		revision, err = r.log.store.Revision(ctx, id)
	case !r.conversation.ArchivedAt.IsZero():
		err = ErrArchived
	}
	r.of, r.revision, r.known, r.view = id, revision, err == nil, entriesView{}
	switch {
	case err == nil:
		r.log.cache.drop(id, revision)
	case errors.Is(err, ErrNotFound):
		r.log.cache.drop(id, math.MaxInt64)
	}
}

// seqs returns the range of seqs of a page.
func (q *EntryQuery) seqs() (first, last int64) {
	if q.Backward {
		return max(q.From, q.To-int64(q.Limit)+1), q.To
	}
	return q.From, min(q.To, q.From+int64(q.Limit)-1)
}

// entries reads a page: as many entries as the query asks for and pageBytes allows, or one larger entry. Taken is how
// many bytes of the context's memory budget it reserved; see [WithMemory].
func (l *Log) entries(ctx context.Context, id string, query EntryQuery) (page []Entry, taken int64, err error) {
	memory := memoryOf(ctx)
	query.MaxBytes = pageBytes
	page, err = l.store.Entries(ctx, id, query)
	if err == nil {
		if taken, err = memory.takeEntries(page); err != nil {
			return nil, 0, err
		}
		return page, taken, nil
	}
	var large *LargeEntryError
	if !errors.As(err, &large) {
		return nil, 0, err
	}
	if err := memory.take(large.Bytes); err != nil {
		return nil, 0, err
	}
	select {
	case l.large <- struct{}{}:
		query.Limit, query.MaxBytes = 1, 0
		page, err = l.store.Entries(ctx, id, query)
		<-l.large
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		memory.give(large.Bytes)
		return nil, 0, err
	}
	return page, large.Bytes, nil
}

type segment struct {
	id       string
	from, to int64
}

func segmentOf(conversation *Conversation, seq int64) segment {
	from := int64(1)
	for _, s := range conversation.Lineage {
		if seq <= s.Through {
			return segment{s.ConversationID, from, s.Through}
		}
		from = s.Through + 1
	}
	return segment{conversation.ID, from, conversation.LastSeq}
}

// Sizes adds up the sizes of entries, each as one message, as counted at append. It does not read their content.
func (l *Log) Sizes(ctx context.Context, conversation Conversation, from, to int64) (sum Size, err error) {
	to = min(to, conversation.LastSeq)
	for next := from; next <= to; {
		segment := segmentOf(&conversation, next)
		last := min(to, segment.to)
		sizes, err := l.store.EntrySizes(ctx, segment.id, next, last)
		if err == nil && int64(sizes.Messages) != last-next+1 {
			err = fmt.Errorf("%w: the store has %d of the entries %d to %d", ErrNotFound, sizes.Messages, next, last)
		}
		if err != nil {
			return Size{}, fmt.Errorf("sizes of conversation %s: %w", conversation.ID, err)
		}
		sum, next = sum.Add(sizes), last+1
	}
	return sum, nil
}

// LatestUser finds the newest user entry at or before seq at that is not hidden; ErrNotFound.
func (l *Log) LatestUser(ctx context.Context, conversation Conversation, at int64) (Entry, error) {
	return l.search(ctx, conversation, at, EntryQuery{UsersOnly: true, Backward: true, Limit: 1})
}

// EntryByOutputRef finds the newest entry with an alias path; ErrNotFound.
func (l *Log) EntryByOutputRef(ctx context.Context, conversation Conversation, ref string) (Entry, error) {
	return l.search(ctx, conversation, conversation.LastSeq, EntryQuery{OutputRef: ref, Backward: true, Limit: 1})
}

// search runs a query for one entry over the segments of a conversation, the newest first.
func (l *Log) search(ctx context.Context, conversation Conversation, at int64, query EntryQuery) (Entry, error) {
	for at >= 1 {
		segment := segmentOf(&conversation, at)
		query.From, query.To = segment.from, at
		found, _, err := l.entries(ctx, segment.id, query)
		if err != nil {
			return Entry{}, fmt.Errorf("search conversation %s: %w", conversation.ID, err)
		}
		if len(found) > 0 {
			return found[0], nil
		}
		at = segment.from - 1
	}
	return Entry{}, ErrNotFound
}

// appended reads the entries that an append with a key stored.
func (l *Log) appended(ctx context.Context, id string, receipt Receipt) (all []Entry, err error) {
	for next := receipt.First; next <= receipt.Last; next = receipt.First + int64(len(all)) {
		page, _, err := l.entries(ctx, id, EntryQuery{From: next, To: receipt.Last, Limit: int(receipt.Last - next + 1)})
		if err != nil || len(page) == 0 {
			return nil, cmp.Or(err, fmt.Errorf("%w: entry %d is missing from the store", ErrNotFound, next))
		}
		all = append(all, page...)
	}
	return all, nil
}
