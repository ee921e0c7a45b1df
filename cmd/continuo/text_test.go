package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
)

func TestNumbers(t *testing.T) {
	for want, got := range map[string]string{
		"0": number(0), "999": number(999), "1 000": number(1000), "-12 400": number(-12400), "1 234 567": number(1234567),
		"1 entry": count(1, "entry"), "2 entries": count(2, "entry"), "2 keys": count(2, "key"), "0 messages": count(0, "message"),
		"812 B": byteSize(812), "1.4 MB": byteSize(1_400_000), "1.0 MB": byteSize(999_990), "2.5 TB": byteSize(2_500_000_000_000),
		"3 of 50 messages": ofLimit(3, 50, "message"), "3 messages": ofLimit(3, 0, "message"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestOneLineIsHarmless holds for any text: one line, no wider than asked for, nothing that steers a terminal.
func TestOneLineIsHarmless(t *testing.T) {
	for _, text := range []string{
		"", " a\n\tb ", "\x1b[31mred\x1b[0m", "\x00\x07\x7f\u0085\u009b31m", "a\u202eb\u2066c", "漢字かな交じり文", "🙂🙂🙂🙂🙂", "e\u0301\u0301\u0301\u0301",
		"bad \xff\xfe utf8", strings.Repeat("long ", 10000), strings.Repeat("漢", 10000), strings.Repeat("\u0301", 1000),
	} {
		for _, limit := range []int{1, 2, 10, 100} {
			line := oneLine(text, limit)
			if cells(line) > limit || !utf8.ValidString(line) || strings.ContainsFunc(line, steers) {
				t.Errorf("oneLine(%.20q, %d) = %q, %d cells", text, limit, line, cells(line))
			}
		}
	}
	if got := oneLine("a \n b", 10); got != "a b" {
		t.Errorf("white space became %q", got)
	}
}

func steers(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 || isBidi(r) }

func FuzzOneLine(f *testing.F) {
	f.Add("a\x1b[2Jb", 5)
	f.Add("漢字\u202e", 3)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = max(1, limit%1000)
		if line := oneLine(text, limit); cells(line) > limit || strings.ContainsFunc(line, steers) {
			t.Errorf("oneLine(%q, %d) = %q", text, limit, line)
		}
		if strings.ContainsFunc(harmless(text), func(r rune) bool { return steers(r) && r != '\n' && r != '\t' }) {
			t.Errorf("harmless(%q) = %q", text, harmless(text))
		}
	})
}

// TestTableFits checks that rows line up and do not pass the width.
func TestTableFits(t *testing.T) {
	table := table{right: []bool{true}}
	table.add(plain("1"), plain("漢字"), plain(strings.Repeat("x", 100)))
	table.add(plain("100"), plain("abcdef"), plain("end"))
	lines := table.lines(40)
	if want := "  1  漢字    " + strings.Repeat("x", 26) + "…"; lines[0] != want {
		t.Errorf("got %q, want %q", lines[0], want)
	}
	if want := "100  abcdef  end"; lines[1] != want {
		t.Errorf("got %q, want %q", lines[1], want)
	}
}

// TestWrapper breaks between words wherever the pieces are cut, and loses nothing.
func TestWrapper(t *testing.T) {
	const text = "one two three 漢字漢字漢字 averyveryverylongword\n  indented\n\nend"
	var whole string
	for size := 1; size <= len(text); size++ {
		var out strings.Builder
		w := wrapper{out: &out, width: 10}
		runes := []rune(text)
		for at := 0; at < len(runes); at += size {
			w.write(string(runes[at:min(at+size, len(runes))]))
		}
		w.flush()
		for line := range strings.SplitSeq(out.String(), "\n") {
			if cells(line) > 10 {
				t.Errorf("pieces of %d: %q is %d wide", size, line, cells(line))
			}
		}
		if whole == "" {
			whole = out.String()
		}
		if out.String() != whole {
			t.Errorf("pieces of %d give %q, pieces of 1 %q", size, out.String(), whole)
		}
	}
	squeezed := func(text string) string { return strings.Join(strings.Fields(text), "") }
	if squeezed(whole) != squeezed(text) {
		t.Errorf("%q became %q", text, whole)
	}
}

// TestExitCodes maps each kind of error to its code, also when it is wrapped.
func TestExitCodes(t *testing.T) {
	for err, want := range map[error]int{
		errors.New("other"):       1,
		usage("wrong"):            2,
		continuo.ErrInvalid:       2,
		continuo.ErrBadRange:      2,
		continuo.ErrNotFound:      3,
		continuo.ErrBusy:          4,
		continuo.ErrExists:        4,
		&continuo.ConflictError{}: 4,
		&continuo.OverflowError{}: 5,
		&turnFailed{reason: continuo.ReasonContextOverflow}: 5,
		&turnFailed{reason: continuo.ReasonUpstream}:        1,
		continuo.ErrNewerSchema:                             1,
		&saidError{continuo.ErrBusy}:                        4,
		usage("%w", errors.New("no")):                       2,
	} {
		if got := exitCode(fmt.Errorf("wrapped: %w", err)); got != want {
			t.Errorf("%v ends with %d, want %d", err, got, want)
		}
	}
	if got := exitCode(nil); got != 0 {
		t.Errorf("no error ends with %d", got)
	}
}
