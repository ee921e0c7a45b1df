package token

import "sync"

// cachedPiece is the length in bytes up to which the count of a piece is cached: it makes an entry fill one
// cache line. Those of up to four bytes are not: counting them takes no longer than looking, and they would displace longer
// ones.
const cachedPiece = 62

const (
	cacheShards  = 64  // a power of two
	cacheEntries = 256 // of each shard, a power of two
)

// pieceCache caches the token counts of pieces that are no single token. It is 1 MB and never grows: each
// piece has one slot, and a later piece in the same slot replaces it. It holds copies, never the caller's
// text.
type pieceCache [cacheShards]cacheShard

type cacheShard struct {
	mu      sync.Mutex
	entries [cacheEntries]cacheEntry
}

type cacheEntry struct {
	size  uint8 // bytes of the piece; 0 is free
	count uint8
	piece [cachedPiece]byte
}

// get returns the count of piece if it is cached. A shard that another goroutine holds counts as a miss:
// merging a short piece again is cheaper than waiting.
func (c *pieceCache) get(hash uint64, piece string) (count int, ok bool) {
	shard, entry := c.slot(hash)
	if !shard.mu.TryLock() {
		return 0, false
	}
	if int(entry.size) == len(piece) && string(entry.piece[:entry.size]) == piece {
		count, ok = int(entry.count), true
	}
	shard.mu.Unlock()
	return count, ok
}

// put caches the count of piece, which is 1 to cachedPiece bytes long, unless the shard is locked.
func (c *pieceCache) put(hash uint64, piece string, count int) {
	shard, entry := c.slot(hash)
	if !shard.mu.TryLock() {
		return
	}
	entry.size, entry.count = uint8(len(piece)), uint8(count)
	copy(entry.piece[:], piece)
	shard.mu.Unlock()
}

func (c *pieceCache) slot(hash uint64) (*cacheShard, *cacheEntry) {
	hash >>= 32 // the better bits of a product
	shard := &c[hash%cacheShards]
	return shard, &shard.entries[hash/cacheShards%cacheEntries]
}
