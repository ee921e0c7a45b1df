package token

import (
	"crypto/sha256"
	"sync"
)

// onceEntries is how many counts of CountOnce are remembered.
const onceEntries = 512 // 32 KB

// onceCache remembers counts by key. Each key has one slot, and a later key in the same slot replaces it.
type onceCache struct {
	mu      sync.Mutex
	entries [onceEntries]onceEntry
}

type onceEntry struct {
	key           [sha256.Size]byte
	chars, tokens int
	used          bool
}

// CountOnce returns what count returns for texts that a key identifies, the SHA-256 of the texts. It calls count once as
// long as it remembers the key, which are some hundred: for texts that are counted again and again, such as a prompt.
func (e *Encoding) CountOnce(key [sha256.Size]byte, count func() (chars, tokens int)) (chars, tokens int) {
	slot := &e.once.entries[(int(key[0])<<8|int(key[1]))%onceEntries]
	e.once.mu.Lock()
	entry := *slot
	e.once.mu.Unlock()
	if entry.used && entry.key == key {
		return entry.chars, entry.tokens
	}
	chars, tokens = count()
	e.once.mu.Lock()
	*slot = onceEntry{key: key, chars: chars, tokens: tokens, used: true}
	e.once.mu.Unlock()
	return chars, tokens
}
