package yamltree

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

func mustParse(t *testing.T, text string) *Node {
	t.Helper()
	root, err := Parse([]byte(text), Options{})
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return root
}

// shown writes a tree on lines: place, kind and text, indented by level.
func shown(n *Node, indent string) string {
	line := fmt.Sprintf("%s%d:%d %s", indent, n.At.Line, n.At.Column, n.Kind)
	if n.Kind != List && n.Kind != Mapping {
		line += fmt.Sprintf(" %q", n.Text)
	}
	line += "\n"
	for _, item := range n.Items {
		line += shown(item, indent+"  ")
	}
	for _, field := range n.Fields {
		line += shown(field.Key, indent+"  ") + shown(field.Value, indent+"    ")
	}
	return line
}

func TestWhatIsRead(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "1:1 nothing \"\"\n",
		"# only a comment\n":     "1:1 nothing \"\"\n",
		"---\n":                  "1:1 nothing \"\"\n",
		"~\n":                    "1:1 nothing \"~\"\n",
		"\n  word\n":             "2:3 a text \"word\"\n",
		"\ufeffa: 1\r\nb: 2\r\n": "1:1 a mapping\n  1:1 a text \"a\"\n    1:4 a whole number \"1\"\n  2:1 a text \"b\"\n    2:4 a whole number \"2\"\n",
		"- yes\n- 0x1F\n- 1_000\n- 1.5e3\n- 1e3\n- 99999999999999999999\n- -.inf\n- .nan\n- True\n- 'no'\n- \"a\\tb\"\n- 1h\n": `1:1 a list
  1:3 a text "yes"
  2:3 a whole number "0x1F"
  3:3 a whole number "1_000"
  4:3 a number "1.5e3"
  5:3 a text "1e3"
  6:3 a text "99999999999999999999"
  7:3 a number "-.inf"
  8:3 a number ".nan"
  9:3 true or false "True"
  10:3 a text "no"
  11:3 a text "a\tb"
  12:3 a text "1h"
`,
		"ä: {ö: x, 'ü': [1, {}]}\n": `1:1 a mapping
  1:1 a text "ä"
    1:4 a mapping
      1:5 a text "ö"
        1:8 a text "x"
      1:11 a text "ü"
        1:16 a list
          1:17 a whole number "1"
          1:20 a mapping
`,
		"a:\n  b:\n  c: null\nd:\n  - e: |\n      two\n      lines\n": `1:1 a mapping
  1:1 a text "a"
    2:3 a mapping
      2:3 a text "b"
        2:3 nothing "null"
      3:3 a text "c"
        3:3 nothing "null"
  4:1 a text "d"
    5:3 a list
      5:5 a mapping
        5:5 a text "e"
          5:8 a text "two\nlines\n"
`,
	} {
		if got := shown(mustParse(t, text), ""); got != want {
			t.Errorf("%q is\n%swant\n%s", text, got, want)
		}
	}
}

func TestHasKnowsKeysWithoutValues(t *testing.T) {
	root := mustParse(t, "a:\nb: 1\n")
	if !root.Has("a") || !root.Has("b") || root.Has("1") {
		t.Errorf("%s", shown(root, ""))
	}
}

// refused returns the complaint with its place; "" for none.
func refused(t *testing.T, text string, options Options) string {
	t.Helper()
	root, err := Parse([]byte(text), options)
	if err == nil {
		return ""
	}
	var wrong *Error
	if !errors.As(err, &wrong) || root != nil {
		t.Fatalf("%.60q: %v beside %v, want an *Error alone", text, err, root)
	}
	return fmt.Sprintf("%d:%d: %s", wrong.At.Line, wrong.At.Column, err)
}

func TestWhatIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"a: \"b\xff\"\n":                    "1:6: the file is not UTF-8 text",
		"a: \"\ufffd\"\n":                   "",
		"ä: 1\nö: ü\x00\n":                  "2:5: the control character U+0000 is not allowed here",
		"p\x00r\x00o\x00":                   "1:2: the control character U+0000 is not allowed here",
		"a: \x7f":                           "1:4: the control character U+007F is not allowed here",
		"a:\n\tb: 1\n":                      `2:1: not valid YAML: found character '\t' that cannot start any token`,
		"a: \"x\n":                          "1:4: not valid YAML: could not find end character of double-quoted text",
		"a:\n  b: {c: 1\n":                  "2:6: not valid YAML: could not find flow mapping end token '}'",
		"a: [::1]:80\n":                     "1:9: not valid YAML: value is not allowed in this context",
		"a: 1\na: 2\n":                      `2:1: not valid YAML: mapping key "a" already defined at [1:1]`,
		"b: {'a': 1, a: 2}":                 `1:13: not valid YAML: mapping key "a" already defined at [1:5]`,
		"? |-\n  a\n: 1\n":                  "1:1: this form of YAML cannot be used in tests",
		"%YAML 1.2\n---\na: 1\n":            "1:1: this form of YAML cannot be used in tests",
		"a:\n  1: b\n":                      "2:3: a key must be a text; put it in quotes",
		"~: b\n":                            "1:1: a key must be a text; put it in quotes",
		"[a]: b\n":                          "1:4: not valid YAML: found an invalid key for this map",
		"a: &p b\nc: *p\n":                  "1:4: anchors and aliases cannot be used in tests; write the value out",
		"a: *p\n":                           "1:4: anchors and aliases cannot be used in tests; write the value out",
		"a:\n  <<: {b: 1}\n":                "2:3: anchors and aliases cannot be used in tests; write the value out",
		"a: !!str b\n":                      "1:4: tags cannot be used in tests; write the value without one",
		"a: 1\n---\nb: 2\n":                 "3:2: a second YAML document begins here; write one test",
		"--- a\n---\n":                      "",
		strings.Repeat("[", 60_000):         "1:17: values are nested too deeply for a test",
		strings.Repeat("- ", 30_000):        "1:33: values are nested too deeply for a test",
		"a: " + strings.Repeat("? ", 9_000): "1:36: values are nested too deeply for a test",
	} {
		if got := refused(t, text, Options{In: "tests", For: "a test", IfSecond: "write one test"}); got != want {
			t.Errorf("%.60q: %q, want %q", text, got, want)
		}
	}
}

func TestComplaintsAreWholeWithoutWords(t *testing.T) {
	for text, want := range map[string]string{
		"a: &p b":                   "1:4: anchors and aliases cannot be used in this file; write the value out",
		strings.Repeat("[", 17):     "1:17: values are nested too deeply for this file",
		"a\n---\nb":                 "3:1: a second YAML document begins here; write one document",
		strings.Repeat("# x\n", 50): "1:1: the file has 200 bytes, more than the limit of 100; shorten it",
	} {
		if got := refused(t, text, Options{MaxBytes: 100}); got != want {
			t.Errorf("%.60q: %q, want %q", text, got, want)
		}
	}
}

// What is at a limit is read, and what is one above is refused; where there is no limit, both are read.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		limit        Options
		within, over string
		want         string
		always       bool // there is a limit by default too
	}{
		{Options{MaxBytes: 4}, "a: 1", "a: 12", "1:1: the file has 5 bytes, more than the limit of 4; shorten it", false},
		{Options{MaxKeys: 2}, "a: {b: 1}", "a: {b: 1, c: 2}", "1:12: the file has more than 2 keys", false},
		{Options{MaxLevels: 2}, "a:\n  b: 1", "a:\n  b:\n    c: 1", "3:6: values are nested too deeply for this file", false},
		{Options{MaxLevels: 2}, "- - 1\n- - 2", "- a:\n  - 1", "2:3: values are nested too deeply for this file", false},
		{Options{MaxNesting: 2}, "[[1], [2]]", "[[[1]]]", "1:3: values are nested too deeply for this file", false},
		{Options{MaxNesting: 2}, "- - 1\n- - 2", "- - - 1", "1:5: values are nested too deeply for this file", false},
		{Options{MaxNesting: 16}, strings.Repeat("[", 16) + strings.Repeat("]", 16), strings.Repeat("[", 17) + strings.Repeat("]", 17), "1:17: values are nested too deeply for this file", true},
	} {
		if got := refused(t, c.within, c.limit); got != "" {
			t.Errorf("%q with %+v: %s", c.within, c.limit, got)
		}
		if got := refused(t, c.over, c.limit); got != c.want {
			t.Errorf("%q with %+v: %q, want %q", c.over, c.limit, got, c.want)
		}
		if got := refused(t, c.over, Options{}); (got != "") != c.always {
			t.Errorf("%q without a limit: %q", c.over, got)
		}
	}
}

// workPerByte bounds what reading a file may allocate, in bytes for each byte of it: the measure of work that is the same
// on every machine. As many keys as are allowed, each on a short line, come to two thirds of it.
const workPerByte = 4 << 10

// Hostile files are read or refused without work that grows out of hand.
func TestHostileFilesTakeLittleWork(t *testing.T) {
	limits := Options{MaxBytes: 256 << 10, MaxKeys: 5000, MaxLevels: 32}
	for name, c := range map[string]struct{ text, want string }{
		"brackets":          {"a: " + strings.Repeat("[", 100_000), "too deeply"},
		"braces":            {strings.Repeat("{a: ", 60_000), "too deeply"},
		"dashes":            {strings.Repeat("- ", 100_000), "too deeply"},
		"questions":         {strings.Repeat("? ", 50_000), "too deeply"},
		"tags":              {strings.Repeat("!a ", 50_000), "too deeply"},
		"indents":           {indents(600), "too deeply"},
		"bytes":             {strings.Repeat("x", 256<<10+1), "262145 bytes"},
		"aliases":           {"a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n", "aliases"},
		"anchors":           {strings.Repeat("a: &a\n", 30_000), "5000 keys"},
		"keys":              {numbered(15_000, "k%d: 1\n"), "5000 keys"},
		"short keys":        {numbered(35_000, "%x: \n"), "5000 keys"},
		"keys in brackets":  {"{" + numbered(12_000, "k%d: {a: b}, ") + "}", "5000 keys"},
		"colons":            {strings.Repeat("a: ", 50_000), "5000 keys"},
		"just too few keys": {numbered(4_990, "k%d: 1\n"), ""},
		"items":             {"[" + strings.Repeat("a,", 130_000) + "]", ""},
		"lines of items":    {strings.Repeat("- a\n", 60_000), ""},
		"comments":          {strings.Repeat("#\n", 130_000), ""},
		"a long text":       {"a: |\n" + strings.Repeat(" x\n", 80_000), ""},
		"a folded text":     {"a: >\n" + strings.Repeat(" x\n", 80_000), ""},
		"a plain text":      {"a:\n" + strings.Repeat(" x\n", 80_000), ""},
		"a quoted text":     {"a: \"" + strings.Repeat("\\x41", 60_000) + "\"\n", ""},
		"quotes":            {strings.Repeat("'", 99_999), "single-quoted"},
	} {
		var got string
		work := allocated(func() { got = refused(t, c.text, limits) })
		if most := uint64(1<<20 + workPerByte*len(c.text)); work > most {
			t.Errorf("%s: %d bytes are allocated for a file of %d, more than %d", name, work, len(c.text), most)
		}
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// allocated is how many bytes a function allocates.
func allocated(does func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	does()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func indents(levels int) string {
	var text strings.Builder
	for level := range levels {
		text.WriteString(strings.Repeat(" ", level) + "a:\n")
	}
	return text.String()
}

func numbered(n int, format string) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, format, i)
	}
	return text.String()
}
