package token

import (
	"sync"
	"unicode"
)

// class says which sets of a split pattern a character belongs to. The sets overlap: a Chinese character may
// be in the run of capitals as well as in the run of small letters that follows it.
type class uint8

const (
	upperRun class = 1 << iota // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
	lowerRun                   // [\p{Ll}\p{Lm}\p{Lo}\p{M}]
	letter                     // \p{L}
	number                     // \p{N}
	space                      // \s
	newline                    // [\r\n]
	symbol                     // [^\s\p{L}\p{N}], marks included
	slash                      // [/]

	bothRuns = upperRun | lowerRun
)

// classTable holds the class of every code point.
type classTable [unicode.MaxRune + 1]class

var classes = sync.OnceValue(newClassTable)

func newClassTable() *classTable {
	t := new(classTable)
	for r := range t {
		t[r] = symbol
	}
	t.set(upperRun|letter, unicode.Lu, unicode.Lt, addedUpper)
	t.set(lowerRun|letter, unicode.Ll, addedLower)
	t.set(bothRuns|letter, unicode.Lm, unicode.Lo, addedLetter)
	t.set(bothRuns|symbol, unicode.M, addedMark)
	t.set(number, unicode.N, addedNumber)
	t.set(space, unicode.White_Space)
	t.set(symbol, later)
	t['\r'] |= newline
	t['\n'] |= newline
	t['/'] |= slash
	return t
}

func (t *classTable) set(c class, tables ...*unicode.RangeTable) {
	for _, table := range tables {
		for _, r := range table.R16 {
			for x := rune(r.Lo); x <= rune(r.Hi); x += rune(r.Stride) {
				t[x] = c
			}
		}
		for _, r := range table.R32 {
			for x := rune(r.Lo); x <= rune(r.Hi); x += rune(r.Stride) {
				t[x] = c
			}
		}
	}
}

// The characters that Unicode 15.1 and 16 added to 15.0, the version of Go's tables up to Go 1.26 (Unicode
// Character Database, general category), and those of Unicode 17, which later Go tables will have and the
// reference does not. Measured over all code points: npm tiktoken 1.0.22 uses Unicode 16.
var (
	addedUpper = &unicode.RangeTable{
		R16: []unicode.Range16{{0x1c89, 0x1c89, 1}, {0xa7cb, 0xa7cc, 1}, {0xa7da, 0xa7dc, 2}},
		R32: []unicode.Range32{{0x10d50, 0x10d65, 1}},
	}
	addedLower = &unicode.RangeTable{
		R16: []unicode.Range16{{0x1c8a, 0x1c8a, 1}, {0xa7cd, 0xa7cd, 1}, {0xa7db, 0xa7db, 1}},
		R32: []unicode.Range32{{0x10d70, 0x10d85, 1}},
	}
	addedLetter = &unicode.RangeTable{
		R32: []unicode.Range32{
			{0x105c0, 0x105f3, 1},
			{0x10d4a, 0x10d4f, 1},
			{0x10d6f, 0x10d6f, 1},
			{0x10ec2, 0x10ec4, 1},
			{0x11380, 0x11389, 1},
			{0x1138b, 0x1138e, 3},
			{0x11390, 0x113b5, 1},
			{0x113b7, 0x113b7, 1},
			{0x113d1, 0x113d3, 2},
			{0x11bc0, 0x11be0, 1},
			{0x13460, 0x143fa, 1},
			{0x16100, 0x1611d, 1},
			{0x16d40, 0x16d6c, 1},
			{0x18cff, 0x18cff, 1},
			{0x1e5d0, 0x1e5ed, 1},
			{0x1e5f0, 0x1e5f0, 1},
			{0x2ebf0, 0x2ee5d, 1},
		},
	}
	addedMark = &unicode.RangeTable{
		R16: []unicode.Range16{{0x0897, 0x0897, 1}},
		R32: []unicode.Range32{
			{0x10d69, 0x10d6d, 1},
			{0x10efc, 0x10efc, 1},
			{0x113b8, 0x113c0, 1},
			{0x113c2, 0x113c5, 3},
			{0x113c7, 0x113ca, 1},
			{0x113cc, 0x113d0, 1},
			{0x113d2, 0x113d2, 1},
			{0x113e1, 0x113e2, 1},
			{0x11f5a, 0x11f5a, 1},
			{0x1611e, 0x1612f, 1},
			{0x1e5ee, 0x1e5ef, 1},
		},
	}
	addedNumber = &unicode.RangeTable{
		R32: []unicode.Range32{
			{0x10d40, 0x10d49, 1},
			{0x116d0, 0x116e3, 1},
			{0x11bf0, 0x11bf9, 1},
			{0x16130, 0x16139, 1},
			{0x16d70, 0x16d79, 1},
			{0x1ccf0, 0x1ccf9, 1},
			{0x1e5f1, 0x1e5fa, 1},
		},
	}
	later = &unicode.RangeTable{
		R16: []unicode.Range16{
			{0x088f, 0x088f, 1},
			{0x0c5c, 0x0c5c, 1},
			{0x0cdc, 0x0cdc, 1},
			{0x1acf, 0x1add, 1},
			{0x1ae0, 0x1aeb, 1},
			{0xa7ce, 0xa7cf, 1},
			{0xa7d2, 0xa7d4, 2},
			{0xa7f1, 0xa7f1, 1},
		},
		R32: []unicode.Range32{
			{0x10940, 0x10959, 1},
			{0x10ec5, 0x10ec7, 1},
			{0x10efa, 0x10efb, 1},
			{0x11b60, 0x11b67, 1},
			{0x11db0, 0x11ddb, 1},
			{0x11de0, 0x11de9, 1},
			{0x16ea0, 0x16eb8, 1},
			{0x16ebb, 0x16ed3, 1},
			{0x16ff2, 0x16ff6, 1},
			{0x187f8, 0x187ff, 1},
			{0x18d09, 0x18d1e, 1},
			{0x18d80, 0x18df2, 1},
			{0x1e6c0, 0x1e6de, 1},
			{0x1e6e0, 0x1e6f5, 1},
			{0x1e6fe, 0x1e6ff, 1},
			{0x2b73a, 0x2b73f, 1},
			{0x2cea2, 0x2cead, 1},
			{0x323b0, 0x33479, 1},
		},
	}
)
