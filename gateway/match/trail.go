package match

import (
	"container/list"
	"hash/maphash"
	"math/bits"
	"slices"
	"strconv"
	"sync"

	continuo "github.com/continuo-log/continuo"
)

// trail is the hash of a request's entries, state by state. Clients send their whole history with each request, so a matcher
// keeps the trails of the newest requests: of the next one, only what follows the common entries is hashed. A trail is not
// changed once it is made.
type trail struct {
	marks []uint64 // of the entries, by markOf
	// states are the states of the hash before the first entry and after each; positions the numbers of entries after which
	// the state changed.
	states    []Chain
	positions []int
}

// trailOf returns the trail of entries that begin in a state, with what other trails with the same beginning have of it.
func (m *Matcher) trailOf(first Chain, entries []continuo.Entry) *trail {
	marks := make([]uint64, len(entries))
	for i := range entries {
		marks[i] = markOf(&entries[i])
	}
	key := trailKey(first, marks)
	made := m.trails.continued(key, marks)
	if made == nil {
		made = &trail{states: append(make([]Chain, 0, len(entries)+1), first), positions: make([]int, 0, len(entries))}
	}
	chain := made.states[len(made.states)-1]
	for i := len(made.states) - 1; i < len(entries); i++ {
		next := chain.add(&entries[i])
		if next.hash != chain.hash {
			made.positions = append(made.positions, i+1)
		}
		chain = next
		made.states = append(made.states, chain)
	}
	made.marks = marks
	m.trails.keep(key, made)
	return made
}

// last returns the number of entries that a position's hash stands for: entries that say nothing do not change it.
func (t *trail) last(position int) int {
	for position+1 < len(t.states) && t.states[position+1].hash == t.states[position].hash {
		position++
	}
	return position
}

// after finds a hash after a number of entries: how many entries it stands for.
func (t *trail) after(from int, hash continuo.PrefixHash) (int, bool) {
	for position := from + 1; position < len(t.states); position++ {
		if t.states[position].hash == hash {
			return t.last(position), true
		}
	}
	return 0, false
}

// trailBeginning is how many entries tell one trail from another.
const trailBeginning = 3

// trailKey is what trails with the same beginning share.
func trailKey(first Chain, marks []uint64) string {
	key := append([]byte{}, first.hash[:]...)
	for _, number := range []int64{first.system, first.session} {
		key = append(strconv.AppendInt(key, number, 16), ' ')
	}
	for _, mark := range marks[:min(len(marks), trailBeginning)] {
		key = append(strconv.AppendUint(key, mark, 16), ' ')
	}
	return string(key)
}

// markSeed is another one in each process: nobody can make two entries with the same mark.
var markSeed = maphash.MakeSeed()

// markOf is a hash of all of an entry that Chain.add looks at.
func markOf(e *continuo.Entry) uint64 {
	flags := uint64(len(e.ToolCalls)) << 4
	if e.Hidden {
		flags |= 1
	}
	if e.Error != nil {
		flags |= 2
	}
	if len(e.Repairs) > 0 {
		flags |= 4
	}
	if e.PartType == continuo.PartInterrupted {
		flags |= 8
	}
	mark := mixed(mixed(flags, string(e.Role)), e.ToolCallID)
	if e.Content.IsParts() {
		for _, part := range e.Content.Parts() {
			mark = mixed(mixed(mark, part.Text), string(part.Raw))
		}
	} else {
		mark = mixed(^mark, e.Content.String())
	}
	for i := range e.ToolCalls {
		call := &e.ToolCalls[i]
		mark = mixed(mixed(mixed(mark, call.ID), call.Name), call.Arguments)
	}
	return mark
}

// mixed adds a text to a mark.
func mixed(mark uint64, text string) uint64 {
	return (bits.RotateLeft64(mark, 23) ^ maphash.String(markSeed, text)) * 0x9e3779b97f4a7c15
}

// trails keeps the trails that were used last. It is safe for concurrent use.
type trails struct {
	mu      sync.Mutex
	byKey   map[string]*list.Element // of *keptTrail
	order   list.List                // the most recently used first
	entries int                      // of all of them
}

type keptTrail struct {
	key string
	*trail
}

// The bounds of trails: an entry takes about 120 bytes. A trail of a few entries is as quickly made again.
const (
	maxTrailEntries = 200_000
	minTrailEntries = 16
)

// continued returns the part of a kept trail that some entries begin with; nil for none. The caller may append to it.
func (t *trails) continued(key string, marks []uint64) *trail {
	t.mu.Lock()
	element := t.byKey[key]
	if element != nil {
		t.order.MoveToFront(element)
	}
	t.mu.Unlock()
	if element == nil {
		return nil
	}
	kept, common := element.Value.(*keptTrail), 0
	for common < min(len(marks), len(kept.marks)) && marks[common] == kept.marks[common] {
		common++
	}
	positions, _ := slices.BinarySearch(kept.positions, common+1)
	more := len(marks) - common
	return &trail{
		states:    slices.Grow(slices.Clip(kept.states[:common+1]), more),
		positions: slices.Grow(slices.Clip(kept.positions[:positions]), more),
	}
}

// keep keeps a trail instead of the one with its key, and forgets those that were not used for the longest time.
func (t *trails) keep(key string, made *trail) {
	if len(made.marks) < minTrailEntries {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byKey == nil {
		t.byKey = map[string]*list.Element{}
	}
	if old := t.byKey[key]; old != nil {
		t.forget(old)
	}
	t.byKey[key] = t.order.PushFront(&keptTrail{key, made})
	for t.entries += len(made.marks); t.entries > maxTrailEntries && t.order.Len() > 1; {
		t.forget(t.order.Back())
	}
}

func (t *trails) forget(element *list.Element) {
	kept := t.order.Remove(element).(*keptTrail)
	t.entries -= len(kept.marks)
	delete(t.byKey, kept.key)
}
