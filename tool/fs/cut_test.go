package fs

import (
	"strings"
	"testing"
)

// Each text ends where the next one would begin in the middle of something; "|" is where it has to be cut.
func TestTextsAreCutWhereMeaningEnds(t *testing.T) {
	for _, c := range []struct{ name, extension, text string }{
		{"go: after a function", ".go", "func a() {\n\tx()\n}\n|\n// b does.\nfunc b() {\n\ty"},
		{"go: after a group", ".go", "var (\n\ta = 1\n)\n|\nfunc b() {\n\n\ty"},
		{"go: not after an inner brace", ".go", "func a() {\n}\n|\nfunc b() {\n\tif x {\n\t}\n\tz"},
		{"go: a long function ends at a line", ".go", "type a int\n\nfunc b() {\n\tone()\n\ttwo()\n\tthree()\n\tfour()\n\tfive()\n|\tsix("},
		{"javascript: after an object", ".js", "const a = {\n  b: 1,\n};\n|function c() {\n  d("},
		{"python: before a decorator", ".py", "def a():\n    x()\n\n\n|@decorated\ndef b():\n    y("},
		{"python: before a comment of a class", ".py", "class A:\n    x = 1\n\n|# B is next.\nclass B:\n    y = 2\n    z"},
		{"ruby: after an end", ".rb", "def a\n  x\nend\n|\ndef b\n  y"},
		{"markdown: before a heading", ".md", "# A\n\ntext\n\n|## B\n\nmore te"},
		{"text: between paragraphs", ".txt", "One.\nTwo.\n\n|Three.\nFour"},
		{"text: after a line", "", "one\ntwo\n|thr"},
		{"windows line ends", ".go", "func a() {\r\n}\r\n|\r\nfunc b() {\r\n\ty"},
		{"one line: after a character", "", strings.Repeat("a", 10) + "ż|\xc5"},
		{"no UTF-8 at all", "", strings.Repeat("\x80", 10) + "|"},
	} {
		text := strings.Replace(c.text, "|", "", 1)
		if got, want := cutAtMeaning([]byte(text), c.extension), strings.Index(c.text, "|"); got != want {
			t.Errorf("%s: cut after %q, want after %q", c.name, text[:got], text[:want])
		}
	}
}

func TestGlobs(t *testing.T) {
	for pattern, names := range map[string]string{
		"":            "a.go b/c",
		"*.go":        "a.go b/c/d.go !a.md !a.go/x",
		"cmd/**/*.go": "cmd/a.go cmd/b/c.go !b/a.go !cmd/a.md",
		"**/x":        "x a/x a/b/x !ax",
		"*.{js,ts}":   "a.js b/a.ts !a.rs",
		"a?.go":       "ab.go !a.go !abc.go",
		"(a+).go":     "(a+).go !aa.go",
		"[x].go":      "[x].go !x.go",
		"a,b":         "a,b",
		"}":           "}",
		"docs/**":     "docs/a docs/a/b !doc/a",
	} {
		g, err := newGlob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range strings.Fields(names) {
			name, not := strings.CutPrefix(name, "!")
			if g.match(name) == not {
				t.Errorf("%q and %q: match is %t", pattern, name, !not)
			}
		}
	}
	if _, err := newGlob("{a"); err == nil {
		t.Error("a brace that is left open was accepted")
	}
}

func TestExcerptsShowTheMatch(t *testing.T) {
	long := strings.Repeat("ż", 1000) + "MATCH" + strings.Repeat("x", 1000)
	got := excerpt([]byte(long), strings.Index(long, "MATCH"))
	if runes := len([]rune(got)); runes > maxExcerpt+2 || !strings.HasPrefix(got, "…"+strings.Repeat("ż", beforeMatch)+"MATCH") || !strings.HasSuffix(got, "x…") {
		t.Errorf("%d characters: %s", runes, got)
	}
	if got := excerpt([]byte("a\tb\x1b[2J\r\xff"), 0); got != "a\tb\uFFFD[2J\uFFFD\uFFFD" {
		t.Errorf("unprintable bytes: %q", got)
	}
}
