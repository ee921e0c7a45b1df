package yamltree

import (
	"errors"
	"strings"
	"testing"
)

// FuzzParse reads any bytes. Whatever they are, Parse ends with a tree that keeps to the limits and whose places are
// in the file, or with a complaint on one line about a place in the file; and it does so again.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", "# only a comment\n", "\ufeffa: :1\r\nb:\r\n  c: warn\r\n", "a: |\n  text\n", "a: >-\n  text\n  more\n", "a: {b: .5, c: 0x10}\n",
		"a:\n  - b\n  - 'c'\n", "? a\n: b\n", "? |\n  a\n: b\n\"a\\n\": c\n", "<<: {a: 1}\n", "a: &b [*b]\n", "%YAML 1.2\n---\na: x\n...\n", "a:\n  1: {}\n  ~: {}\n",
		"a: b: c\n", "{", "- - -\n", "a: !!map {b: c}\n", "a: {b: 1, b: 2}\n", "a: 1\n---\nb: 2\n", "{\n  a: 1,\n  'b': [2, \"\\x41\"]}\n",
	} {
		f.Add([]byte(text))
	}
	limits := Options{MaxBytes: 4096, MaxKeys: 50, MaxLevels: 6}
	f.Fuzz(func(t *testing.T, data []byte) {
		root, err := Parse(data, limits)
		again, errAgain := Parse(data, limits)
		lines := strings.Count(string(data), "\n") + strings.Count(string(data), "\r") + 1
		if err != nil {
			var wrong *Error
			if !errors.As(err, &wrong) || wrong.Message == "" || strings.ContainsAny(wrong.Message, "\n\r\t") || !isIn(wrong.At, lines) {
				t.Fatalf("a complaint that points nowhere in %d lines, or is on several: %#v", lines, err)
			}
			if errAgain == nil || errAgain.Error() != err.Error() {
				t.Fatalf("%v, and then %v", err, errAgain)
			}
			return
		}
		if shown(root, "") != shown(again, "") {
			t.Fatalf("%s and then\n%s", shown(root, ""), shown(again, ""))
		}
		if keys := checkTree(t, root, lines, limits.MaxLevels); len(data) > limits.MaxBytes || keys > limits.MaxKeys {
			t.Fatalf("%d bytes with %d keys", len(data), keys)
		}
	})
}

// checkTree checks what readers rely on, and counts the keys.
func checkTree(t *testing.T, n *Node, lines, levels int) (keys int) {
	nested := n.Kind == List || n.Kind == Mapping
	switch {
	case n.Kind < Null || n.Kind > Mapping, !isIn(n.At, lines), nested && levels == 0:
		t.Fatalf("%s at %v of %d lines, with %d levels to go", n.Kind, n.At, lines, levels)
	case n.Kind != List && n.Items != nil, n.Kind != Mapping && n.Fields != nil:
		t.Fatalf("%s with items or fields", shown(n, ""))
	}
	if n.Kind == Text {
		if at := n.PlaceIn(Position{1, 1}); at.Line < n.At.Line || at.Column < 1 {
			t.Fatalf("the text at %v begins at %v", n.At, at)
		}
	}
	for _, item := range n.Items {
		keys += checkTree(t, item, lines, levels-1)
	}
	seen := map[string]bool{}
	for _, field := range n.Fields {
		if field.Key.Kind != Text || seen[field.Key.Text] {
			t.Fatalf("a key that is no text, or there twice:\n%s", shown(n, ""))
		}
		seen[field.Key.Text] = true
		keys += 1 + checkTree(t, field.Key, lines, levels) + checkTree(t, field.Value, lines, levels-1)
	}
	return keys
}

func isIn(at Position, lines int) bool { return at.Line >= 1 && at.Line <= lines && at.Column >= 1 }
