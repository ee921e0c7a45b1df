package fulltext_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/fulltext"
)

func TestTerms(t *testing.T) {
	for name, test := range map[string]struct {
		texts []string
		want  string
	}{
		"nothing":               {nil, ""},
		"distinct and sorted":   {[]string{"the Cat", "THE mat"}, "cat mat the"},
		"pairs and the last":    {[]string{"数据库"}, "库 据库 数据"},
		"over punctuation":      {[]string{"数据，\n库"}, "库 据库 数据"},
		"a word between":        {[]string{"数a据"}, "a 据 数"},
		"texts do not run on":   {[]string{"数", "据"}, "据 数"},
		"characters with marks": {[]string{"ค้น"}, "ค้น น"},
	} {
		got := fulltext.Terms(test.texts...)
		want := strings.Fields(test.want)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestTermsAreBounded(t *testing.T) {
	var many, long, wide strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&many, "w%d ", i)
		fmt.Fprintf(&long, "%d%s ", i, strings.Repeat("語a", 1)+strings.Repeat("ж", 100))
		wide.WriteRune(rune(0x4E00 + i%20_000))
		wide.WriteRune(rune(0x4E00 + i*7%20_000))
	}
	for name, text := range map[string]string{"many": many.String(), "long": long.String(), "wide": wide.String(), "blob": strings.Repeat("QUJD", 300_000)} {
		terms := fulltext.Terms(text, "after")
		size := 0
		for _, term := range terms {
			size += len(term)
			if len(term) > 256 {
				t.Errorf("%s: a term has %d bytes", name, len(term))
			}
		}
		if len(terms) > fulltext.MaxTerms || size > fulltext.MaxTermBytes {
			t.Errorf("%s: %d terms of %d bytes", name, len(terms), size)
		}
		if name == "blob" && len(terms) != 2 {
			t.Errorf("a blob has %d terms, want 1 and the word behind it", len(terms))
		}
		if name != "blob" && len(terms) < 3_000 {
			t.Errorf("%s: only %d terms: the test shows little", name, len(terms))
		}
	}
	short := wide.String()[:60_000]
	if terms := fulltext.Terms(short); !slices.Contains(terms, short[len(short)-3:]) {
		t.Errorf("60 kB do not fit: %d terms", len(terms))
	}
}
