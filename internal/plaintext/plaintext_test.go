package plaintext_test

import (
	"strings"
	"testing"

	"github.com/continuo-log/continuo/internal/plaintext"
)

func TestIsBlank(t *testing.T) {
	for name, text := range map[string]string{
		"nothing": "", "white space": " \t\r\n\u00a0\u2003", "zero width": "\u200b\u200c\u200d\ufeff", "soft hyphen": "\u00ad",
		"filler": "\u3164\u2800\u115f", "selector": "\ufe0f", "control": "\x00\x07\x7f\u0085", "direction": "\u202e\u2066",
		"escape sequence": "\x1b[31m\x1b[0m", "title": "\x1b]0;title\x07", "mark alone": "\u0301",
	} {
		if !plaintext.IsBlank(text) {
			t.Errorf("%s: %q says something", name, text)
		}
	}
	for _, text := range []string{".", "\u200ba", "é", "e\u0301", "👍🏽", "\x1b[31mx\x1b[0m", "…"} {
		if plaintext.IsBlank(text) {
			t.Errorf("%q says nothing", text)
		}
	}
}

func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"plain \ttext\r\n": "plain \ttext\r\n", "a\x1b[1;31mb\x1b[0mc": "abc", "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\": "link",
		"\x1b]0;t\x07x": "x", "\u009b2Jx": "x", "\u009dtitle\x07x": "x", "a\u202eb\u2069c": "abc", "\x1b(Bx": "x", "x\x1b": "x", "\x1b[31": "",
		"\x1b]never ended\nnext": "\nnext", "\x1b\x1b[0mx": "x", "\x1bcx": "x", "bad \xff byte": "bad \xff byte", "\x1b[3\nx": "\nx",
	} {
		if got := plaintext.Clean(text); got != want {
			t.Errorf("Clean(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestTrimInvisible(t *testing.T) {
	for text, want := range map[string]string{
		"\x1b[2K\u200b **User: x": "User: x", "User": "User", "": "", "\x1b[0m": "", "x\x1b[0m": "x\x1b[0m",
	} {
		if got := plaintext.TrimInvisible(text, "*"); got != want {
			t.Errorf("TrimInvisible(%q) = %q, want %q", text, got, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	for _, text := range []string{"plain", "a\x1b[1mb", "\x1b]0;t\x07x", "\x1b\x1b[", "\u202e\u009b", "\xff\x1b(", "\xc2\u009b\x9b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		clean := plaintext.Clean(text)
		if strings.ContainsAny(clean, "\x1b\u009b\u202e\u2066") {
			t.Fatalf("Clean(%q) = %q still steers a terminal", text, clean)
		}
		if again := plaintext.Clean(clean); again != clean {
			t.Fatalf("Clean(%q) = %q, and again %q", text, clean, again)
		}
	})
}
