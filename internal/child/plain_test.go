package child

import (
	"strings"
	"testing"
	"unicode/utf8"

	_ "github.com/continuo-log/continuo/internal/rapidseed" // the same values in every run
	"pgregory.net/rapid"
)

func plainOf(pieces ...string) string {
	var p Plain
	var text strings.Builder
	for _, piece := range pieces {
		text.WriteString(p.Text([]byte(piece)))
	}
	return text.String() + p.End()
}

func TestPlain(t *testing.T) {
	for given, want := range map[string]string{
		"plain":           "plain",
		"two\nlines \n\n": "two\nlines",
		"a\r\nb\rc":       "a\nb\nc",
		"\x1b[1;31mred\x1b[0m and \x1b[38;5;196mmore":  "red and more",
		"\x1b]0;title\x07text \x1b]8;;http://x\x1b\\a": "text a",
		"\x1b]never closed\nnext line":                 "\nnext line",
		"\x1b(B\x1b=\x1b7saved\x1b8":                   "saved",
		"\x1bPdevice\x1b\\done":                        "done",
		"bell\x07 back\x08space \x00zero":              "bell backspace zero",
		"c1 \u009b31m":                                 "c1 31m",
		"é世🙂":                                          "é世🙂",
		"half \xe4\xb8":                                "half \uFFFD\uFFFD",
		"\xff\xfe":                                     "\uFFFD\uFFFD",
		"\x1b":                                         "",
		"\x1b[":                                        "",
		"\x1b[31\nx":                                   "\nx",
		"tab\there":                                    "tab\there",
		"":                                             "",
		" \n ":                                         "",
	} {
		if got := plainOf(given); got != want {
			t.Errorf("%q: got %q, want %q", given, got, want)
		}
	}
}

// Where the pieces end makes no difference, and what comes is text that the log can hold.
func TestPlainIsTheSameHoweverItIsSplit(t *testing.T) {
	parts := rapid.SampledFrom([]string{"\x1b", "[", "31", "m", "]", "\\", "\x07", "\r", "\n", " ", "a", "é", "世", "\xe4", "\xb8", "\xff", "\u009b", "🙂", "\x1b[0m", "\x1b]8;;x\x1b\\"})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(parts).Draw(t, "text"), "")
		whole := plainOf(text)
		if !utf8.ValidString(whole) || strings.ContainsAny(whole, "\x1b\r\x07") {
			t.Fatalf("%q becomes %q", text, whole)
		}
		var pieces []string
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		if got := plainOf(pieces...); got != whole {
			t.Fatalf("%q in one piece is %q, in %q it is %q", text, whole, pieces, got)
		}
	})
}
