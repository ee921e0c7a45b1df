package term

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/continuo-log/continuo/internal/plaintext"
)

func TestNumbers(t *testing.T) {
	for want, got := range map[string]string{
		"0": Number(0), "999": Number(999), "1 000": Number(1000), "-12 400": Number(-12400), "1 234 567": Number(1234567),
		"1 entry": Count(1, "entry"), "2 entries": Count(2, "entry"), "2 keys": Count(2, "key"), "0 messages": Count(0, "message"),
		"812 B": Size(812), "1.4 MB": Size(1_400_000), "1.0 MB": Size(999_990), "2.5 TB": Size(2_500_000_000_000),
		"3 of 50 messages": OfLimit(3, 50, "message"), "3 messages": OfLimit(3, 0, "message"),
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
			line := OneLine(text, limit)
			if Width(line) > limit || !utf8.ValidString(line) || strings.ContainsFunc(line, steers) {
				t.Errorf("OneLine(%.20q, %d) = %q, %d cells", text, limit, line, Width(line))
			}
		}
	}
	if got := OneLine("a \n b", 10); got != "a b" {
		t.Errorf("white space became %q", got)
	}
}

func steers(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 || plaintext.IsBidi(r) }

func FuzzOneLine(f *testing.F) {
	f.Add("a\x1b[2Jb", 5)
	f.Add("漢字\u202e", 3)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = max(1, limit%1000)
		if line := OneLine(text, limit); Width(line) > limit || strings.ContainsFunc(line, steers) {
			t.Errorf("OneLine(%q, %d) = %q", text, limit, line)
		}
		if strings.ContainsFunc(Clean(text), func(r rune) bool { return steers(r) && r != '\n' && r != '\t' }) {
			t.Errorf("Clean(%q) = %q", text, Clean(text))
		}
	})
}

// TestTableFits checks that rows line up and do not pass the width.
func TestTableFits(t *testing.T) {
	table := NewTable(false, ">")
	table.Add("1", "漢字", strings.Repeat("x", 100))
	table.Add("100", "abcdef", "end")
	lines := table.Lines(40)
	if want := "  1  漢字    " + strings.Repeat("x", 26) + "…"; lines[0] != want {
		t.Errorf("got %q, want %q", lines[0], want)
	}
	if want := "100  abcdef  end"; lines[1] != want {
		t.Errorf("got %q, want %q", lines[1], want)
	}
}

// TestWrapper breaks between words wherever the pieces are cut, and loses nothing.
func TestWrapper(t *testing.T) {
	const text = "one two three 漢字漢字漢字 ab✅👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦 averyveryverylongword\n  indented\n\nend"
	var whole string
	for size := 1; size <= len(text); size++ {
		var out strings.Builder
		w := Wrapper{Out: &out, Width: 10}
		runes := []rune(text)
		for at := 0; at < len(runes); at += size {
			w.Write(string(runes[at:min(at+size, len(runes))]))
		}
		w.Flush()
		for line := range strings.SplitSeq(out.String(), "\n") {
			if Width(line) > 10 {
				t.Errorf("pieces of %d: %q is %d wide", size, line, Width(line))
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

// TestTailKeepsTheEnd holds for texts of any script: the end is what is seen, on one line that fits.
func TestTailKeepsTheEnd(t *testing.T) {
	for _, text := range []string{"short", strings.Repeat("long ", 1000) + "end", strings.Repeat("漢字", 1000) + "終", "a\nb\tc end", "bad \xff end"} {
		line := FitEnd(OneLine(text, 10000), 20)
		if Width(line) > 20 || strings.ContainsFunc(line, steers) {
			t.Errorf("%q is %d columns wide", line, Width(line))
		}
		if last := []rune(text); !strings.HasSuffix(line, string(last[len(last)-1])) {
			t.Errorf("the end of %.20q… became %q", text, line)
		}
	}
}

// TestDuration writes durations as people say them.
func TestDuration(t *testing.T) {
	for seconds, want := range map[int]string{-5: "0 s", 0: "0 s", 59: "59 s", 60: "1 min 0 s", 3599: "59 min 59 s", 3600: "1 h 0 min", 3725: "1 h 2 min", 5_000_000: "1 388 h 53 min"} {
		if got := Duration(time.Duration(seconds) * time.Second); got != want {
			t.Errorf("%d seconds are %q, want %q", seconds, got, want)
		}
	}
}

func TestWidths(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "abc": 3, "漢字": 4, "✅": 2, "👩‍👩‍👧‍👦": 2, "🇩🇪": 2, "❤️": 2, "e\u0301": 1, "한국": 4, "ﾊﾝｶｸ": 4, "\u200b": 0, "→": 1, "…": 1,
		Style(true).Red("漢"): 2, Style(true).With("38;5;9", "abc"): 3,
	} {
		if got := Width(text); got != want {
			t.Errorf("%q takes %d columns, want %d", text, got, want)
		}
	}
}

func TestFitKeepsCharactersAndStylesWhole(t *testing.T) {
	red := Style(true).Red
	for _, test := range []struct {
		text  string
		width int
		want  string
	}{
		{"abc", 3, "abc"},
		{"abcd", 3, "ab…"},
		{"漢字", 3, "漢…"},
		{"漢字", 2, "…"},
		{"👩‍👩‍👧‍👦👩‍👩‍👧‍👦", 3, "👩‍👩‍👧‍👦…"},
		{"e\u0301e\u0301e\u0301", 2, "e\u0301…"},
		{red("abc") + "def", 6, red("abc") + "def"},
		{red("abc") + "def", 5, red("abc") + "d…\x1b[0m"},
		{red("abc"), 2, "\x1b[31ma…\x1b[0m"},
	} {
		if got := Fit(test.text, test.width); got != test.want {
			t.Errorf("%q in %d columns is %q, want %q", test.text, test.width, got, test.want)
		}
	}
	if got := FitEnd("abc👩‍👩‍👧‍👦d", 4); got != "…👩‍👩‍👧‍👦d" {
		t.Errorf("the end is %q", got)
	}
}

func TestTableOfStyledCells(t *testing.T) {
	style := Style(true)
	table := NewTable(style, "name", "empty", ">size")
	table.Add(style.Cyan("漢"), "", "7")
	table.Add("plain", "", "100")
	table.DropEmpty(1)
	want := []string{"\x1b[2mname\x1b[0m   \x1b[2msize\x1b[0m", "\x1b[36m漢\x1b[0m        7", "plain   100"}
	if got := table.Lines(0); !slices.Equal(got, want) || table.Len() != 2 {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStylesAreOptional(t *testing.T) {
	if got := Style(false).Bold("x"); got != "x" {
		t.Errorf("without styles: %q", got)
	}
	if got := Style(true).Dim("  "); got != "  " {
		t.Errorf("blank text: %q", got)
	}
	if got := Plain(Style(true).Bold("a") + "b"); got != "ab" {
		t.Errorf("plain: %q", got)
	}
}

// A bar fits the terminal, and is removed at the end. Without a terminal nothing is written.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		bar := NewProgress(&Screen{Out: &out}, func() int { return 48 }, "copying")
		bar.Set(1, 4, "1 of 4")
		bar.Set(2, 4, "2 of 4")
		if !strings.Contains(out.String(), "copying "+strings.Repeat("█", 8)+strings.Repeat("░", 22)+" 1 of 4") || strings.Contains(out.String(), "2 of 4") {
			t.Errorf("first %q", out.String())
		}
		time.Sleep(time.Second)
		if !strings.Contains(out.String(), "2 of 4") {
			t.Errorf("a change soon after the one before is not shown: %q", out.String())
		}
		bar.Set(5, 4, strings.Repeat("long ", 20))
		time.Sleep(time.Second)
		bar.Close()
		bar.Close()
		bar.Set(6, 6, "after the end")
		for line := range strings.SplitSeq(out.String(), "\n") {
			if _, text, ok := strings.Cut(line, "copying"); ok && Width("copying"+strings.TrimSuffix(text, "\x1b[K\r")) > 47 {
				t.Errorf("%q is wider than the terminal", line)
			}
		}
		if !strings.HasSuffix(out.String(), "\x1b[1A"+pictureEnds) {
			t.Errorf("at the end %q", out.String())
		}
	})
	NewProgress(nil, nil, "nothing").Set(1, 2, "")
}

// A table fits a narrow terminal: names are shortened in their middle, numbers never.
func TestNarrowTables(t *testing.T) {
	table := NewTable(Style(true), "", "conversation", ">entries", "title")
	table.Add("@1", Style(true).Cyan("conv_01a20b57e6f070009b2620528cedce5e"), "1 234 567", "A list of things to buy")
	table.Add("@2", "notes", "2", "短いタイトル")
	for _, width := range []int{80, 60, 48} {
		for _, line := range table.Lines(width) {
			if got := Width(line); got > width {
				t.Errorf("a line has %d columns, want at most %d: %s", got, width, line)
			}
		}
	}
	if row := Plain(table.Lines(48)[1]); !strings.Contains(row, "conv_01a20…528cedce5e") || !strings.Contains(row, "1 234 567  ") {
		t.Errorf("the row is %q", row)
	}
	for width := 2; width < 40; width++ {
		if got := Width(FitMiddle("conv_01a20b57e6f070009b2620528cedce5e", width)); got > width {
			t.Errorf("%d columns, want at most %d", got, width)
		}
	}
	if got := FitMiddle("abcdefghij", 7); got != "abc…hij" {
		t.Errorf("shortened to %q", got)
	}
}
