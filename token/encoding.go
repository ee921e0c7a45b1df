package token

import (
	_ "embed"
	"sync"
	"unsafe"
)

var (
	//go:embed vocab/o200k_base.gz
	o200kPacked string
	//go:embed vocab/cl100k_base.gz
	cl100kPacked string
)

var (
	o200k = sync.OnceValue(func() *Encoding {
		return newEncoding("o200k_base", patternO200k, o200kPacked)
	})
	cl100k = sync.OnceValue(func() *Encoding {
		return newEncoding("cl100k_base", patternCL100k, cl100kPacked)
	})
)

// O200k returns the encoding of gpt-4o and every OpenAI model since. The first call unpacks the vocabulary
// (some tens of milliseconds, about 10 MB); later calls return the same value.
func O200k() *Encoding { return o200k() }

// CL100k returns the encoding of gpt-4, gpt-3.5 and the text-embedding-3 models, unpacked on the first call
// like [O200k].
func CL100k() *Encoding { return cl100k() }

// Encoding turns text into token ids and counts them. Get one from [O200k], [CL100k] or [ForModel].
// All methods are safe for concurrent use.
type Encoding struct {
	name    string
	pattern pattern
	classes *classTable
	vocab   *vocab
	cache   *pieceCache
	once    *onceCache
}

func newEncoding(name string, p pattern, packed string) *Encoding {
	return &Encoding{name: name, pattern: p, classes: classes(), vocab: mustUnpack(name, packed), cache: new(pieceCache), once: new(onceCache)}
}

// Name returns the encoding's published name, such as "o200k_base".
func (e *Encoding) Name() string { return e.name }

// Count returns the number of tokens of text: len(e.Encode(text)), without building the ids and without
// allocating (but for pieces above 128 bytes, whose working memory is pooled).
//
// Text need not be valid UTF-8. A byte that belongs to no valid sequence takes part in the split as one symbol,
// as U+FFFD would, and is then encoded as itself, so that decoding gives the same bytes back. A provider that
// receives such text through JSON sees U+FFFD instead and may count it differently.
func (e *Encoding) Count(text string) int {
	s := e.scanner(text)
	var m merger
	total := 0
	for i := 0; i < len(text); {
		end := s.next(i)
		total += e.countPiece(text, i, end, &m)
		i = end
	}
	return total
}

// CountBytes is Count for a byte slice, without copying it. The caller must not change text during the call.
func (e *Encoding) CountBytes(text []byte) int {
	// The string lives for this call only: scanner and merger keep positions, and the cache copies its keys.
	return e.Count(unsafe.String(unsafe.SliceData(text), len(text)))
}

// Encode returns the token ids of text. Invalid UTF-8 is treated as [Encoding.Count] describes.
func (e *Encoding) Encode(text string) []int {
	s := e.scanner(text)
	var m merger
	var ids []int
	for i := 0; i < len(text); {
		end := s.next(i)
		if rank, _ := e.vocab.find(text, i, end); rank != noRank {
			ids = append(ids, int(rank))
		} else {
			ids = m.appendIDs(ids, e.vocab, text, i, end)
		}
		i = end
	}
	return ids
}

// Decode returns the bytes of the tokens. Ids outside the vocabulary, such as those of special tokens, have
// no bytes and are left out. Ids that end in the middle of a character give bytes that are not valid UTF-8.
func (e *Encoding) Decode(ids []int) []byte {
	var text []byte
	for _, id := range ids {
		if id >= 0 && id < e.vocab.size() {
			text = append(text, e.vocab.token(uint32(id))...)
		}
	}
	return text
}

func (e *Encoding) scanner(text string) scanner {
	return scanner{text: text, pattern: e.pattern, classes: e.classes}
}

// countPiece returns the number of tokens of the piece text[i:end]. Most pieces are one token; of the others,
// short ones repeat often enough that caching their count is worthwhile.
func (e *Encoding) countPiece(text string, i, end int, m *merger) int {
	switch end - i {
	case 1:
		return 1 // every byte is a token
	case 2:
		return e.vocab.countPair(text[i], text[i+1])
	case 3:
		if e.vocab.hasThree(text, i) {
			return 1
		}
		return e.vocab.countThree(text[i], text[i+1], text[i+2])
	}
	rank, hash := e.vocab.find(text, i, end)
	switch {
	case rank != noRank:
		return 1
	case end-i == 4:
		return e.vocab.countFour(text, i)
	case end-i > cachedPiece:
		return m.count(e.vocab, text, i, end)
	}
	if n, ok := e.cache.get(hash, text[i:end]); ok {
		return n
	}
	n := 0
	if end-i <= shortToken {
		n = e.vocab.countShort(text, i, end)
	} else {
		n = m.count(e.vocab, text, i, end)
	}
	e.cache.put(hash, text[i:end], n)
	return n
}
