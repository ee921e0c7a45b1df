package fs

import (
	"bytes"
	"regexp"
	"unicode/utf8"
)

// cutAtMeaning returns where to cut a text that continues: after a declaration, or else between paragraphs,
// or else after a line, or else after a character. The first two must leave at least a third, so that a long
// declaration does not exclude most of the text that fits.
func cutAtMeaning(text []byte, extension string) int {
	for _, ends := range []func(last, next []byte) bool{declarationEnd(extension), paragraphEnd} {
		if end := lastLineEnd(text, ends); end*3 >= len(text) {
			return end
		}
	}
	if end := bytes.LastIndexByte(text, '\n') + 1; end > 0 {
		return end
	}
	return runeBoundary(text, len(text))
}

// lastLineEnd returns the last end of a line after which the text may be cut; 0 when there is none.
func lastLineEnd(text []byte, ends func(last, next []byte) bool) int {
	next := []byte(nil) // the text may end in the middle of a line, which decides nothing
	for end := bytes.LastIndexByte(text, '\n') + 1; end > 0; {
		begin := bytes.LastIndexByte(text[:end-1], '\n') + 1
		line := bytes.TrimRight(text[begin:end], "\r\n")
		if ends(line, next) {
			return end
		}
		end, next = begin, text[begin:end]
	}
	return 0
}

var (
	closing   = regexp.MustCompile(`^[})\]]+[;,]?$`)
	rubyEnd   = regexp.MustCompile(`^end\b`)
	topLevel  = regexp.MustCompile(`^(def|class|async def|if|@)\b|^@`)
	attached  = regexp.MustCompile(`^[@#]`)
	heading   = regexp.MustCompile(`^#{1,6} `)
	outermost = regexp.MustCompile(`^[^\s})\]]`)
)

// declarationEnd says, for a language, whether a declaration ends with the line last.
func declarationEnd(extension string) func(last, next []byte) bool {
	switch extension {
	case ".go", ".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".java", ".kt", ".scala", ".swift", ".rs", ".js", ".jsx", ".mjs", ".ts", ".tsx", ".php", ".css", ".scss", ".proto", ".tf", ".sh", ".json":
		return func(last, _ []byte) bool { return closing.Match(last) }
	case ".rb", ".lua", ".ex", ".exs":
		return func(last, _ []byte) bool { return rubyEnd.Match(last) }
	case ".py", ".pyi":
		return func(last, next []byte) bool {
			begins := topLevel.Match(next) || bytes.HasPrefix(next, []byte("#"))
			return begins && !attached.Match(last)
		}
	case ".md", ".markdown":
		return func(_, next []byte) bool { return heading.Match(next) }
	}
	return func(_, _ []byte) bool { return false }
}

// paragraphEnd reports an empty line before one that is not indented.
func paragraphEnd(last, next []byte) bool {
	return len(bytes.TrimSpace(last)) == 0 && outermost.Match(next)
}

// runeBoundary returns the largest end, at most end, that is not inside a character.
func runeBoundary(text []byte, end int) int {
	for back := 0; back < utf8.UTFMax-1 && end-back > 0 && end < len(text)+1; back++ {
		last := text[end-back-1]
		if utf8.RuneStart(last) {
			if !utf8.FullRune(text[end-back-1 : end]) {
				return end - back - 1
			}
			return end
		}
	}
	return end
}

// partialHead counts the bytes at the beginning of a text that end a character which begins before it.
func partialHead(text []byte, begin int64) int {
	skipped := 0
	for begin > 0 && skipped < len(text) && skipped < utf8.UTFMax-1 && !utf8.RuneStart(text[skipped]) {
		skipped++
	}
	return skipped
}
