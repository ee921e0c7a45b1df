package token

import (
	"math/bits"
	"sync"
)

// heapMerger does for long pieces what [merger] does for short ones, in n log n: the pairs are in a heap, and
// a pair that a later join changed is recognised by its rank when it is popped.
type heapMerger struct {
	rank  []uint32 // by part: rank of the part joined with its right neighbour; noRank if none or gone
	right []uint32 // the next part, or the length of the piece
	left  []uint32
	heap  []uint64 // rank << 32 | part, a binary min-heap
	steps int
}

// heapMergerKept is the piece length in bytes above which the working memory (about 30 bytes per byte) is left
// to the garbage collector instead of the pool.
const heapMergerKept = 1 << 18

var heapMergers = sync.Pool{New: func() any { return new(heapMerger) }}

func takeHeapMerger() *heapMerger {
	h := heapMergers.Get().(*heapMerger)
	h.steps = 0
	return h
}

func (h *heapMerger) release() {
	if cap(h.rank) <= heapMergerKept {
		heapMergers.Put(h)
	}
}

// merge leaves the parts of text[i:end] in h.right and returns their number.
func (h *heapMerger) merge(v *vocab, text string, i, end int) int {
	n := end - i
	h.reset(v, text[i:end])
	parts := n
	for len(h.heap) > 0 {
		lowest := h.pop()
		part := int(uint32(lowest))
		if h.rank[part] != uint32(lowest>>32) {
			continue
		}
		parts--
		merged := h.right[part]
		next := int(h.right[merged])
		h.right[part] = uint32(next)
		h.rank[merged], h.rank[part] = noRank, noRank
		if next < n {
			h.left[next] = uint32(part)
			h.offer(part, v.rank(text, i+part, i+int(h.right[next])))
		}
		if part > 0 {
			before := int(h.left[part])
			h.offer(before, v.rank(text, i+before, i+next))
		}
	}
	return parts
}

// reset makes every byte of the piece a part and fills the heap with the pairs.
func (h *heapMerger) reset(v *vocab, piece string) {
	n := len(piece)
	if cap(h.rank) < n {
		size := 1 << bits.Len(uint(n-1)) // so that slowly growing pieces do not allocate each time
		h.rank, h.right, h.left = make([]uint32, size), make([]uint32, size), make([]uint32, size)
		h.heap = make([]uint64, 0, size)
	}
	h.rank, h.right, h.left, h.heap = h.rank[:n], h.right[:n], h.left[:n], h.heap[:0]
	for part := range n {
		h.right[part], h.left[part] = uint32(part+1), uint32(part-1)
		h.rank[part] = noRank
		if part+1 < n {
			h.rank[part] = v.pair(piece[part], piece[part+1])
		}
		if h.rank[part] != noRank {
			h.heap = append(h.heap, uint64(h.rank[part])<<32|uint64(part))
		}
	}
	for at := len(h.heap)/2 - 1; at >= 0; at-- {
		h.down(at)
	}
	h.steps += n
}

// offer sets the rank of a part and puts it into the heap.
func (h *heapMerger) offer(part int, rank uint32) {
	h.rank[part] = rank
	if rank == noRank {
		return
	}
	entry := uint64(rank)<<32 | uint64(part)
	h.heap = append(h.heap, entry)
	at := len(h.heap) - 1
	for at > 0 && h.heap[(at-1)/2] > entry {
		h.heap[at] = h.heap[(at-1)/2]
		at = (at - 1) / 2
		h.steps++
	}
	h.heap[at] = entry
}

func (h *heapMerger) pop() uint64 {
	lowest, last := h.heap[0], len(h.heap)-1
	h.heap[0] = h.heap[last]
	h.heap = h.heap[:last]
	if last > 0 {
		h.down(0)
	}
	return lowest
}

func (h *heapMerger) down(at int) {
	entry := h.heap[at]
	for {
		child := 2*at + 1
		if child >= len(h.heap) {
			break
		}
		if child+1 < len(h.heap) && h.heap[child+1] < h.heap[child] {
			child++
		}
		if h.heap[child] >= entry {
			break
		}
		h.heap[at] = h.heap[child]
		at = child
		h.steps++
	}
	h.heap[at] = entry
}
