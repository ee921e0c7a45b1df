package continuo

import (
	"container/list"
	"slices"
	"sync"

	"github.com/continuo-log/continuo/internal/pressure"
)

// entryCache keeps the newest entries of the conversations in use decoded, and the first ones, which some views show
// always. It is bounded in bytes, and gives way where the process nears its memory limit; the conversation that was not read for the longest
// time is dropped first.
//
// It is invisible: what it has is what the store would return. Stored entries change only together with the Revision of
// their conversation, and new ones have new seqs. A reader therefore asks the store for the revision, after it began, and
// uses only what is kept of that one; any other process may have changed it. Entries that were read before a change are
// never kept under the revision after it; the other way round is harmless, because nobody finds the old one again.
//
// The entries are shared by all readers and never written again.
type entryCache struct {
	limit    int64
	pressure func() pressure.Reading

	mu    sync.Mutex
	cycle uint64 // of the pressure that it last gave way to, or not
	bytes int64
	owned map[string]*cachedEntries // by conversation
	used  list.List                 // of *cachedEntries, the most recently used first
}

// cachedEntries are entries of one conversation.
type cachedEntries struct {
	id       string
	revision int64
	head     []Entry // from seq 1
	tail     []Entry // without a gap; up to the newest that was read
	bytes    int64
	used     *list.Element
}

const (
	// defaultCacheBytes is the default of LogOptions.CacheBytes.
	defaultCacheBytes = 64 << 20
	// cacheShare is the part of the process's memory limit (GOMEMLIMIT) that a cache uses at most: 1 in so many bytes.
	cacheShare = 16
	// conversationShare bounds the part of the cache that one conversation uses.
	conversationShare = 16
	// headEntries is how many entries from the beginning of a conversation are kept.
	headEntries = 4
)

// newEntryCache returns a cache of so many bytes; 0 means the default, and a negative number none.
func newEntryCache(limit int64) *entryCache {
	if limit == 0 {
		limit = defaultCacheBytes
	}
	if limit < 0 {
		return nil
	}
	return &entryCache{limit: pressure.Bound(limit, cacheShare), pressure: pressure.Read, owned: map[string]*cachedEntries{}}
}

// entriesView is what a cache has of a conversation's own entries at one moment.
type entriesView struct {
	revision int64
	head     []Entry
	tail     []Entry
}

// view returns what is kept of a conversation. It is valid for a reader that finds its revision in the store afterwards.
func (c *entryCache) view(id string) (view entriesView, found bool) {
	if c == nil {
		return view, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	cached := c.owned[id]
	if cached == nil {
		return view, false
	}
	c.used.MoveToFront(cached.used)
	return entriesView{cached.revision, cached.head, cached.tail}, true
}

// covers reports whether the view has an entry of a range of seqs.
func (v *entriesView) covers(first, last int64) bool {
	for _, kept := range [][]Entry{v.tail, v.head} {
		if n := len(kept); n > 0 && kept[0].Seq <= last && kept[n-1].Seq >= first {
			return true
		}
	}
	return false
}

// page returns the entries of a range, in ascending order, as far as the view has them without a gap from its beginning
// or, backward, its end; nil for none.
func (v *entriesView) page(first, last int64, backward bool) []Entry {
	if page := within(v.tail, first, last, backward); page != nil {
		return page
	}
	return within(v.head, first, last, backward)
}

// within is entriesView.page for entries without a gap.
func within(kept []Entry, first, last int64, backward bool) []Entry {
	if len(kept) == 0 {
		return nil
	}
	oldest, newest := kept[0].Seq, kept[len(kept)-1].Seq
	if !backward && (first < oldest || first > newest) || backward && (last < oldest || last > newest) {
		return nil
	}
	first, last = max(first, oldest), min(last, newest)
	return kept[first-oldest : last-oldest+1 : last-oldest+1]
}

// put keeps entries of a conversation that were read when it had a revision, or later, in ascending order: those at the
// beginning of the log, those that end with its newest entry, and those next to others that are kept. Nobody may change
// them afterwards, or append to them.
func (c *entryCache) put(id string, revision, newest int64, found []Entry) {
	if c == nil || len(found) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	cached := c.owned[id]
	if cached != nil && cached.revision > revision {
		return
	}
	if cached != nil && cached.revision < revision {
		c.remove(cached)
		cached = nil
	}
	if cached == nil {
		cached = &cachedEntries{id: id, revision: revision}
		cached.used = c.used.PushFront(cached)
		c.owned[id] = cached
	}
	c.bytes -= cached.bytes
	cached.add(found, newest, c.limit/conversationShare)
	c.bytes += cached.bytes
	for c.bytes > c.limit {
		c.removeOldest()
	}
	c.giveWay()
}

// removeOldest removes what was not read for the longest time.
func (c *entryCache) removeOldest() { c.remove(c.used.Back().Value.(*cachedEntries)) }

// isContinued reports whether extend would keep entries from a seq on.
func (c *entryCache) isContinued(id string, revision, first int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.continues(c.owned[id], revision, first)
}

func (c *entryCache) continues(cached *cachedEntries, revision, first int64) bool {
	if cached == nil {
		return first == 1
	}
	return cached.revision == revision && len(cached.tail) > 0 && cached.tail[len(cached.tail)-1].Seq+1 == first
}

// extend keeps entries that were appended when a conversation had a revision or a later one, if they are its first or continue
// what is kept of that revision. Nobody may change them afterwards.
func (c *entryCache) extend(id string, revision int64, appended []Entry) {
	c.mu.Lock()
	isContinued := c.continues(c.owned[id], revision, appended[0].Seq)
	c.mu.Unlock()
	if isContinued {
		c.put(id, revision, appended[len(appended)-1].Seq, appended)
	}
}

func (c *entryCache) remove(cached *cachedEntries) {
	c.bytes -= cached.bytes
	c.used.Remove(cached.used)
	delete(c.owned, cached.id)
}

// drop forgets what is kept of a conversation at revisions before one.
func (c *entryCache) drop(id string, before int64) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if cached := c.owned[id]; cached != nil && cached.revision < before {
		c.remove(cached)
	}
}

// add adds entries in ascending order, and removes the oldest of the tail that exceed the limit of bytes.
func (c *cachedEntries) add(found []Entry, newest, limit int64) {
	first, last := found[0].Seq, found[len(found)-1].Seq
	if head := found[:min(len(found), headEntries)]; first == 1 && len(c.head) < len(head) && costOf(head) < limit/4 {
		c.bytes += costOf(head) - costOf(c.head)
		c.head = slices.Clone(head)
	}
	oldest, end := int64(0), int64(0) // of the tail, which ends before end
	if len(c.tail) > 0 {
		oldest, end = c.tail[0].Seq, c.tail[len(c.tail)-1].Seq+1
	}
	switch {
	case end > 0 && first <= end && last >= end: // they continue it
		more := found[end-first:]
		c.tail, c.bytes = append(c.tail, more...), c.bytes+costOf(more)
	case end > 0 && first < oldest && last >= oldest-1: // they precede it
		more := found[:oldest-first]
		c.tail, c.bytes = append(slices.Clone(more), c.tail...), c.bytes+costOf(more)
	case last == newest && last >= end:
		c.bytes += costOf(found) - costOf(c.tail)
		c.tail = found
	}
	if c.bytes <= limit {
		return
	}
	surplus := 0
	for ; surplus < len(c.tail) && c.bytes > limit-limit/4; surplus++ { // not one at each append
		c.bytes -= costOf(c.tail[surplus : surplus+1])
	}
	c.tail = slices.Clone(c.tail[surplus:])
}

// costOf estimates the memory that entries take, together with the texts that they were decoded from.
func costOf(entries []Entry) (sum int64) {
	for i := range entries {
		sum += 2 * entries[i].bytes()
	}
	return sum
}
