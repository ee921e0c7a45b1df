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
// of their own, strings below 16 bytes are their own key and mostly ruled out by a bit set that stays in the
// processor's cache, and of longer ones a tag is compared before the bytes are. A lookup of a token takes about as
// long as its reads of memory: keys are apart from ranks, which a count does not need.
type vocab struct {
	text    string   // all tokens, in order of rank
	starts  []uint32 // token r is text[starts[r]:starts[r+1]]
	longest int      // bytes of the longest token

	pairs      []uint32    // by first byte << 8 | second byte: rank or noRank
	triples    []uint64    // a bit for each string of three ASCII characters; see [triple]
	short      []uint64    // [shortKey] of tokens below 8 bytes; zero is free
	shortRanks []uint32    // by slot of short
	middle     []middleKey // of tokens from 8 to 15 bytes
	midRanks   []uint32    // by slot of middle
	maybe      []uint64    // bit set by the upper bits of the hash of short and middle tokens
	long       []uint64    // tag << 32 | rank + 1; zero is free

	shortShift, midShift int    // hash >> shift is a slot
	longMask             uint64 // hash & longMask is a slot of long
}

// middleKey holds 8 to 15 bytes, and their number in the last byte of tail; a tail of zero is free.
type middleKey struct{ head, tail uint64 }

// The lengths in bytes up to which a token fits a short key and a middle one.
const (
	shortToken  = 7
	middleToken = 15
)

// maybeShift leaves 21 bits of a hash: 256 kB, of which the tokens set a tenth at most.
const maybeShift = 43

// hashFactor spreads keys over slots: 2^64 divided by the golden ratio.
const hashFactor = 0x9e3779b97f4a7c15

// mixFactor is a constant of wyhash.
const mixFactor = 0xa0761d6478bd642f

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
		pairs: make([]uint32, 1<<16), triples: make([]uint64, tripleBits/64), maybe: make([]uint64, 1<<(64-maybeShift)/64),
	}
	shorts, middles := 0, 0
	for r, l := range lengths {
		v.starts[r+1] = v.starts[r] + uint32(l)
		v.longest = max(v.longest, int(l))
		switch {
		case l <= shortToken:
			shorts++
		case l <= middleToken:
			middles++
		}
	}
	for i := range v.pairs {
		v.pairs[i] = noRank
	}
	slots := func(tokens int) int { return bits.Len(uint(max(tokens, 1))*2 - 1) } // at most half full
	shortBits, midBits, longBits := slots(shorts), slots(middles), slots(len(lengths)-shorts-middles)
	v.short, v.shortRanks, v.shortShift = make([]uint64, 1<<shortBits), make([]uint32, 1<<shortBits), 64-shortBits
	v.middle, v.midRanks, v.midShift = make([]middleKey, 1<<midBits), make([]uint32, 1<<midBits), 64-midBits
	v.long, v.longMask = make([]uint64, 1<<longBits), 1<<longBits-1
	for r := range lengths {
		v.insert(uint32(r))
	}
	return v
}

func (v *vocab) insert(rank uint32) {
	i, end := int(v.starts[rank]), int(v.starts[rank+1])
	if end-i > middleToken {
		hash := longHash(v.text, i, end)
		at := hash & v.longMask
		for v.long[at] != 0 {
			at = (at + 1) & v.longMask
		}
		v.long[at] = hash>>32<<32 | uint64(rank+1)
		return
	}
	if end-i > shortToken {
		key, hash := middleKeyOf(v.text, i, end)
		v.set(hash)
		at := int(hash >> v.midShift)
		for v.middle[at].tail != 0 {
			at = (at + 1) & (len(v.middle) - 1)
		}
		v.middle[at], v.midRanks[at] = key, rank
		return
	}
	if end-i == 2 {
		v.pairs[int(v.text[i])<<8|int(v.text[i+1])] = rank
	}
	if end-i == 3 {
		if at := triple(v.text[i], v.text[i+1], v.text[i+2]); at < tripleBits {
			v.triples[at/64] |= 1 << (at % 64)
		}
	}
	key := shortKey(v.text, i, end)
	hash := key * hashFactor
	v.set(hash)
	at := int(hash >> v.shortShift)
	for v.short[at] != 0 {
		at = (at + 1) & (len(v.short) - 1)
	}
	v.short[at], v.shortRanks[at] = key, rank
}

// set sets the bit of a hash.
func (v *vocab) set(hash uint64) {
	bit := hash >> maybeShift
	v.maybe[bit/64] |= 1 << (bit % 64)
}

// isSet reports whether the bit of a hash is set: whether a token may have it.
func (v *vocab) isSet(hash uint64) bool {
	bit := hash >> maybeShift
	return v.maybe[bit/64]>>(bit%64)&1 != 0
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
		return v.findShort(key, hash), hash
	}
	if end-i <= middleToken {
		return v.findMiddle(text, i, end)
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

// findShort returns the rank of the token with a [shortKey] and its hash, or noRank.
func (v *vocab) findShort(key, hash uint64) uint32 {
	if !v.isSet(hash) {
		return noRank
	}
	at := int(hash >> v.shortShift)
	for v.short[at] != key {
		if v.short[at] == 0 {
			return noRank
		}
		at = (at + 1) & (len(v.short) - 1)
	}
	return v.shortRanks[at]
}

// findMiddle is find for 8 to 15 bytes.
func (v *vocab) findMiddle(text string, i, end int) (rank uint32, hash uint64) {
	key, hash := middleKeyOf(text, i, end)
	if !v.isSet(hash) {
		return noRank, hash
	}
	for at := int(hash >> v.midShift); ; at = (at + 1) & (len(v.middle) - 1) {
		switch slot := &v.middle[at]; {
		case *slot == key:
			return v.midRanks[at], hash
		case slot.tail == 0:
			return noRank, hash
		}
	}
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

// middleKeyOf returns the key of the 8 to 15 bytes of text[i:end], and its hash.
func middleKeyOf(text string, i, end int) (key middleKey, hash uint64) {
	n := uint(end - i)
	key = middleKey{load64(text, i), load64(text, end-8)>>(8*(16-n)) | uint64(n)<<56}
	hi, lo := bits.Mul64(key.head^hashFactor, key.tail^mixFactor)
	return key, hi ^ lo
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
	hi, lo := bits.Mul64(x^hashFactor, mixFactor)
	return hi ^ lo
}

// load64 reads text[i:i+8]; the compiler makes one load of it.
func load64(text string, i int) uint64 {
	t := text[i : i+8]
	return uint64(t[0]) | uint64(t[1])<<8 | uint64(t[2])<<16 | uint64(t[3])<<24 |
		uint64(t[4])<<32 | uint64(t[5])<<40 | uint64(t[6])<<48 | uint64(t[7])<<56
}
