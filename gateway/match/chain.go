package match

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
	"sync"

	continuo "github.com/continuo-log/continuo"
)

// Chain is the state of the rolling hash after some entries. It is a value: adding entries returns another one.
type Chain struct {
	hash     continuo.PrefixHash
	ids      int64
	system   int64
	session  int64
	answered bool
	results  []string // the calls of the newest answer that have a result; some clients repeat one
	// Before is the state before an answer that broke off, and cut its text: a client that asks the model to continue may
	// send both halves as one answer later.
	before *Chain
	cut    string
}

// newChain returns the state before the first entry.
func newChain(projectID, system, session string) Chain {
	return Chain{
		hash: hashOf(continuo.PrefixHash{}, 'P', projectID), system: shortHash(0, systemHead(system)), session: sessionHash(session),
	}
}

// systemHeadBytes is how much of a system prompt distinguishes conversations: what is appended to it later, such as
// excerpts of documents, does not.
const systemHeadBytes = 256

func systemHead(system string) string {
	text := withoutDates(withoutReminders(strings.TrimSpace(system)))
	return text[:min(len(text), systemHeadBytes)]
}

func sessionHash(session string) int64 {
	if session == "" {
		return 0
	}
	return shortHash(0, session)
}

// hashOf is the hash of what came before and of a unit.
func hashOf(before continuo.PrefixHash, tag byte, text string) (hash continuo.PrefixHash) {
	buffer := buffers.Get().(*[]byte)
	*buffer = append(append(append((*buffer)[:0], before[:]...), tag), text...)
	sum := sha256.Sum256(*buffer)
	buffers.Put(buffer)
	copy(hash[:], sum[:])
	return hash
}

// buffers hold what is hashed.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// shortHash is a hash of 63 bits, never 0.
func shortHash(before int64, text string) int64 {
	sum := sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, uint64(before)), text...))
	return int64(binary.BigEndian.Uint64(sum[:])>>1 | 1)
}

// add returns the state after an entry. Those that say nothing do not change it, nor do hidden entries, unless a repair of
// the client's history hid them, nor the results that stand for missing ones.
func (c Chain) add(e *continuo.Entry) Chain {
	if e.Hidden && len(e.Repairs) == 0 || e.PartType == continuo.PartInterrupted {
		return c
	}
	said := units(e, c.answered)
	if len(said) == 0 || e.Role == continuo.Tool && slices.Contains(c.results, e.ToolCallID) {
		return c
	}
	next := c
	for _, u := range said {
		next.hash = hashOf(next.hash, u.tag, u.text)
	}
	switch {
	case isCut(e):
		next.before, next.cut = &c, strings.Clone(e.Content.String()) // a trail may keep it
	case e.Role == continuo.Assistant:
		next.before, next.cut = nil, ""
	}
	if e.Role == continuo.Tool {
		next.results = append(slices.Clip(c.results), strings.Clone(e.ToolCallID))
	}
	if e.Role == continuo.Assistant {
		next.answered, next.results = true, nil
		for i := range e.ToolCalls {
			next.ids = shortHash(next.ids, e.ToolCalls[i].ID)
		}
	}
	return next
}

// merged returns the state in which an answer and the broken one before it are one; not ok when none broke off.
func (c Chain) merged(e *continuo.Entry) (Chain, bool) {
	if c.before == nil || e.Role != continuo.Assistant || e.Error != nil {
		return Chain{}, false
	}
	whole := *e
	whole.Content = continuo.Text(c.cut + e.Content.String())
	return c.before.add(&whole), true
}

func (c Chain) prefix(seq int64) continuo.Prefix {
	return continuo.Prefix{Seq: seq, Hash: c.hash, IDs: c.ids, System: c.system, Session: c.session}
}

// Add returns the state after entries that are appended, and their prefixes as [continuo.AppendOptions] takes them. The
// entries are those that the client sent or received, before large outputs are shortened.
func (c Chain) Add(entries []continuo.Entry) (Chain, func(stored []continuo.Entry) []continuo.Prefix) {
	type state struct {
		at    int
		chain Chain
	}
	var states []state
	for i := range entries {
		if merged, ok := c.merged(&entries[i]); ok {
			states = append(states, state{i, merged})
		}
		next := c.add(&entries[i])
		if next.hash != c.hash {
			states = append(states, state{i, next})
		}
		c = next
	}
	return c, func(stored []continuo.Entry) []continuo.Prefix {
		prefixes := make([]continuo.Prefix, 0, len(states))
		for _, s := range states {
			if s.at < len(stored) {
				prefixes = append(prefixes, s.chain.prefix(stored[s.at].Seq))
			}
		}
		return prefixes
	}
}
