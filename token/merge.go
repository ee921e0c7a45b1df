package token

import "math"

// shortPiece is the length in bytes up to which a piece is merged by scanning an array. Above it a heap is
// faster, and avoids quadratic time.
const shortPiece = 128

// merger merges the bytes of one piece after the other: of all neighbouring parts whose concatenation is a token
// it joins those of the lowest rank, the leftmost first, until none are left. It belongs to one goroutine; the
// zero value is ready.
type merger struct {
	// A part is named by the offset of its first byte in the piece.
	key   [shortPiece]uint32    // rank of the part joined with its right neighbour << 8 | part, or noKey
	right [shortPiece + 1]uint8 // the next part, or the length of the piece
	left  [shortPiece + 1]uint8 // the part before
	steps int                   // comparisons and lookups so far; for tests of the growth
}

const noKey = math.MaxUint32

// count returns the number of tokens of the piece text[i:end].
func (m *merger) count(v *vocab, text string, i, end int) int {
	if end-i > shortPiece {
		h := takeHeapMerger()
		defer h.release()
		n := h.merge(v, text, i, end)
		m.steps += h.steps
		return n
	}
	return m.merge(v, text, i, end)
}

// appendIDs appends the token ids of the piece text[i:end] to ids.
func (m *merger) appendIDs(ids []int, v *vocab, text string, i, end int) []int {
	if end-i > shortPiece {
		h := takeHeapMerger()
		defer h.release()
		h.merge(v, text, i, end)
		for part := 0; part < end-i; part = int(h.right[part]) {
			ids = append(ids, int(v.rank(text, i+part, i+int(h.right[part]))))
		}
		return ids
	}
	m.merge(v, text, i, end)
	for part := 0; part < end-i; part = int(m.right[part]) {
		ids = append(ids, int(v.rank(text, i+part, i+int(m.right[part]))))
	}
	return ids
}

// merge leaves the parts of text[i:end] in m.right and returns their number.
func (m *merger) merge(v *vocab, text string, i, end int) int {
	n := end - i
	for part := range n {
		m.right[part], m.left[part+1] = uint8(part+1), uint8(part)
		m.key[part] = noKey
		if part+1 < n {
			m.key[part] = partKey(v.pair(text[i+part], text[i+part+1]), part)
		}
	}
	m.steps += n
	for parts := n; ; parts-- {
		lowest := m.lowest(n)
		if lowest == noKey {
			return parts
		}
		m.join(v, text, i, n, int(lowest&0xff))
	}
}

// join joins a part with its right neighbour and updates the keys that this changes.
func (m *merger) join(v *vocab, text string, i, n, part int) {
	merged := int(m.right[part])
	next := int(m.right[merged])
	m.right[part], m.left[next] = uint8(next), uint8(part)
	m.key[merged], m.key[part] = noKey, noKey
	if next < n {
		m.key[part] = partKey(v.rank(text, i+part, i+int(m.right[next])), part)
	}
	if part > 0 {
		before := int(m.left[part])
		m.key[before] = partKey(v.rank(text, i+before, i+next), before)
	}
	m.steps += 2
}

// lowest returns the lowest of the first n keys. It computes two minima in parallel, because each comparison
// depends on the one before.
func (m *merger) lowest(n int) uint32 {
	a, b := uint32(noKey), uint32(noKey)
	keys := m.key[:n]
	for len(keys) >= 4 {
		a = min(a, keys[0], keys[2])
		b = min(b, keys[1], keys[3])
		keys = keys[4:]
	}
	for _, k := range keys {
		a = min(a, k)
	}
	m.steps += n
	return min(a, b)
}

func partKey(rank uint32, part int) uint32 {
	if rank == noRank {
		return noKey
	}
	return rank<<8 | uint32(part)
}
