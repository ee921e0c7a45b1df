package token

import (
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/bits"
	"strings"
)

// noRank means that a string is no token. It is above every rank.
const noRank = math.MaxUint32

// vocab maps tokens to ranks and back. Ranks are the numbers from 0 without gaps, and every single byte is a
// token. It is immutable once built.
//
// Lookups of strings that are no tokens are most of the merge, so they are cheap: pairs of bytes have a table
// of their own, strings below 8 bytes are their own hash key and mostly ruled out by a bit set that stays in
// the processor's cache, and of longer ones a tag is compared before the bytes are.
type vocab struct {
	text    string   // all tokens, in order of rank
	starts  []uint32 // token r is text[starts[r]:starts[r+1]]
	longest int      // bytes of the longest token

	pairs []uint32 // by first byte << 8 | second byte: rank or noRank
	short []shortSlot
	maybe []uint64 // bit set by the upper bits of the hash of short tokens
	long  []uint64 // tag << 32 | rank + 1; zero is free

	shortShift int    // hash >> shortShift is a slot of short
	longMask   uint64 // hash & longMask is a slot of long
}

// shortSlot holds a token below 8 bytes under its [shortKey]; a key of zero is free.
type shortSlot struct {
	key  uint64
	rank uint32
}

// shortToken is the length in bytes up to which a token fits its key.
const shortToken = 7

// maybeShift leaves 21 bits of a hash: 256 kB, of which the tokens set a fifteenth at most.
const maybeShift = 43

// hashFactor spreads keys over slots: 2^64 divided by the golden ratio.
const hashFactor = 0x9e3779b97f4a7c15

// mustUnpack builds the vocabulary from its embedded form. It panics if the form is broken, which only a broken
// build can cause.
func mustUnpack(name, packed string) *vocab {
	lengths, text, err := unpack(packed)
	if err != nil {
		panic(fmt.Sprintf("unpack embedded vocabulary %s: %v", name, err))
	}
	return newVocab(lengths, text)
}

// unpack reads the stored form, a gzip stream of: the number of tokens (4 bytes, little-endian), one length byte
// per token, the bytes of all tokens. Tokens are in order of rank.
func unpack(packed string) (lengths []byte, text string, err error) {
	gz, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil {
		return nil, "", err
	}
	data, err := io.ReadAll(gz)
	if err != nil {
		return nil, "", err
	}
	if len(data) < 4 {
		return nil, "", io.ErrUnexpectedEOF
	}
	n, data := uint64(binary.LittleEndian.Uint32(data)), data[4:]
	if uint64(len(data)) < n {
		return nil, "", io.ErrUnexpectedEOF
	}
	lengths = data[:n]
	total := 0
	for _, l := range lengths {
		total += int(l)
	}
	if total != len(data)-len(lengths) {
		return nil, "", fmt.Errorf("lengths sum to %d, %d bytes follow", total, len(data)-len(lengths))
	}
	return lengths, string(data[n:]), nil
}

func newVocab(lengths []byte, text string) *vocab {
	v := &vocab{
		text: text, starts: make([]uint32, len(lengths)+1),
		pairs: make([]uint32, 1<<16), maybe: make([]uint64, 1<<(64-maybeShift)/64),
	}
	shorts := 0
	for r, l := range lengths {
		v.starts[r+1] = v.starts[r] + uint32(l)
		v.longest = max(v.longest, int(l))
		if l <= shortToken {
			shorts++
		}
	}
	for i := range v.pairs {
		v.pairs[i] = noRank
	}
	shortBits := bits.Len(uint(shorts)*2 - 1) // at most half full
	v.short, v.shortShift = make([]shortSlot, 1<<shortBits), 64-shortBits
	longBits := bits.Len(uint(len(lengths)-shorts)*2 - 1)
	v.long, v.longMask = make([]uint64, 1<<longBits), 1<<longBits-1
	for r := range lengths {
		v.insert(uint32(r))
	}
	return v
}

func (v *vocab) insert(rank uint32) {
	i, end := int(v.starts[rank]), int(v.starts[rank+1])
	if end-i > shortToken {
		hash := longHash(v.text, i, end)
		at := hash & v.longMask
		for v.long[at] != 0 {
			at = (at + 1) & v.longMask
		}
		v.long[at] = hash>>32<<32 | uint64(rank+1)
		return
	}
	if end-i == 2 {
		v.pairs[int(v.text[i])<<8|int(v.text[i+1])] = rank
	}
	key := shortKey(v.text, i, end)
	hash := key * hashFactor
	bit := hash >> maybeShift
	v.maybe[bit/64] |= 1 << (bit % 64)
	at := int(hash >> v.shortShift)
	for v.short[at].key != 0 {
		at = (at + 1) & (len(v.short) - 1)
	}
	v.short[at] = shortSlot{key, rank}
}

// size returns the number of tokens.
func (v *vocab) size() int { return len(v.starts) - 1 }

// token returns the bytes of the token with that rank, which must be below size.
func (v *vocab) token(rank uint32) string { return v.text[v.starts[rank]:v.starts[rank+1]] }

// rank returns the rank of text[i:end], or noRank.
func (v *vocab) rank(text string, i, end int) uint32 {
	rank, _ := v.find(text, i, end)
	return rank
}

// find returns the rank of text[i:end], or noRank, and a hash of it, which is zero above the longest token.
// It takes the surrounding text because reading eight bytes at once is faster than reading fewer.
func (v *vocab) find(text string, i, end int) (rank uint32, hash uint64) {
	if end-i <= shortToken {
		key := shortKey(text, i, end)
		hash = key * hashFactor
		if bit := hash >> maybeShift; v.maybe[bit/64]>>(bit%64)&1 == 0 {
			return noRank, hash
		}
		at := int(hash >> v.shortShift)
		for {
			slot := &v.short[at]
			if slot.key == key {
				return slot.rank, hash
			}
			if slot.key == 0 {
				return noRank, hash
			}
			at = (at + 1) & (len(v.short) - 1)
		}
	}
	if end-i > v.longest {
		return noRank, 0
	}
	hash = longHash(text, i, end)
	for at := hash & v.longMask; v.long[at] != 0; at = (at + 1) & v.longMask {
		if slot := v.long[at]; slot>>32 == hash>>32 {
			if rank := uint32(slot) - 1; v.token(rank) == text[i:end] {
				return rank, hash
			}
		}
	}
	return noRank, hash
}

// pair returns the rank of the two bytes, or noRank.
func (v *vocab) pair(a, b byte) uint32 { return v.pairs[int(a)<<8|int(b)] }

// shortKey returns the 1 to 7 bytes of text[i:end] and their number as one integer, never zero.
func shortKey(text string, i, end int) uint64 {
	n := uint(end - i)
	if i+8 <= len(text) {
		return load64(text, i)&(1<<(8*n)-1) | uint64(n)<<56
	}
	key := uint64(n) << 56
	for k := range n {
		key |= uint64(text[i+int(k)]) << (8 * k)
	}
	return key
}

// longHash hashes the 8 or more bytes of text[i:end].
func longHash(text string, i, end int) uint64 {
	hash := uint64(end - i)
	for ; i+8 < end; i += 8 {
		hash = mix(hash ^ load64(text, i))
	}
	return mix(hash ^ load64(text, end-8))
}

func mix(x uint64) uint64 {
	hi, lo := bits.Mul64(x^hashFactor, 0xa0761d6478bd642f) // the second is a constant of wyhash
	return hi ^ lo
}

// load64 reads text[i:i+8]; the compiler makes one load of it.
func load64(text string, i int) uint64 {
	t := text[i : i+8]
	return uint64(t[0]) | uint64(t[1])<<8 | uint64(t[2])<<16 | uint64(t[3])<<24 |
		uint64(t[4])<<32 | uint64(t[5])<<40 | uint64(t[6])<<48 | uint64(t[7])<<56
}
