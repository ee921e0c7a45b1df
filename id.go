package continuo

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"sync"
	"time"
)

// IDSource generates ids: a prefix, an underscore, and a version 7 UUID (RFC 9562) without hyphens. Ids of one source
// ascend, also within a millisecond. The zero value is ready to use; it is safe for concurrent use.
type IDSource struct {
	mu   sync.Mutex
	last uint64 // milliseconds << 12 | counter
}

// New returns an id such as conv_0199c5f0d1a27000b8f7c2a94f1e6d3a.
func (s *IDSource) New(prefix string, now time.Time) string {
	var id [16]byte
	binary.BigEndian.PutUint64(id[:8], s.stamp(now))
	_, _ = rand.Read(id[8:]) // never fails since Go 1.24
	id[8] = id[8]&0x3f | 0x80
	return prefix + "_" + hex.EncodeToString(id[:])
}

// stamp returns 48 bits of milliseconds, the version, and 12 bits that count within the millisecond.
func (s *IDSource) stamp(now time.Time) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = max(s.last+1, uint64(now.UnixMilli())<<12)
	return s.last>>12<<16 | 0x7000 | s.last&0xfff
}
