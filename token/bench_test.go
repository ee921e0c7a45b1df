package token

import (
	"strings"
	"testing"
)

// BenchmarkCount measures one core, next to the oracle on the same text, cut to 64 kB because it takes its time.
// "ours-new" empties the piece cache before each round.
func BenchmarkCount(b *testing.B) {
	texts := []struct {
		name, text string
		natural    bool
	}{
		{"english", english(1 << 18), true},
		{"code", code(1 << 18), true},
		{"chinese", chinese(1 << 18), true},
		{"one-letter", strings.Repeat("a", 1<<18), false},
		{"spaces", strings.Repeat(" ", 1<<18), false},
		{"newlines", strings.Repeat("\n", 1<<18), false},
		{"apostrophes", strings.Repeat("'", 1<<18), false},
		{"marks", strings.Repeat("\u0301", 1<<17), false},
		{"digits", strings.Repeat("7", 1<<18), false},
		{"mixed-case", strings.Repeat("aB", 1<<17), false},
		{"one-letter-1MB", strings.Repeat("a", 1<<20), false},
	}
	for _, enc := range []*Encoding{O200k(), CL100k()} {
		for _, t := range texts {
			b.Run(enc.Name()+"/"+t.name+"/ours", func(b *testing.B) {
				b.SetBytes(int64(len(t.text)))
				b.ReportAllocs()
				for b.Loop() {
					enc.Count(t.text)
				}
			})
			b.Run(enc.Name()+"/"+t.name+"/ours-new", func(b *testing.B) {
				b.SetBytes(int64(len(t.text)))
				for b.Loop() {
					b.StopTimer()
					*enc.cache = pieceCache{}
					b.StartTimer()
					enc.Count(t.text)
				}
			})
			if t.natural {
				b.Run(enc.Name()+"/"+t.name+"/oracle", func(b *testing.B) {
					text := t.text[:1<<16]
					b.SetBytes(int64(len(text)))
					for b.Loop() {
						oracleCount(b, enc, text)
					}
				})
			}
		}
	}
}

// BenchmarkUnpack measures what the first use of an encoding waits for.
func BenchmarkUnpack(b *testing.B) {
	b.Run("classes", func(b *testing.B) {
		for b.Loop() {
			newClassTable()
		}
	})
	b.Run("o200k_base", func(b *testing.B) {
		for b.Loop() {
			mustUnpack("o200k_base", o200kPacked)
		}
	})
	b.Run("cl100k_base", func(b *testing.B) {
		for b.Loop() {
			mustUnpack("cl100k_base", cl100kPacked)
		}
	})
}
