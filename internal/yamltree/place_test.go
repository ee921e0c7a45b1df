package yamltree

import (
	"strings"
	"testing"
)

// PlaceIn finds the word here, which each file has once and its only value too.
func TestPlaceInPointsIntoTheText(t *testing.T) {
	for _, text := range []string{
		"a: b here",
		"a:   'b here'",
		`a: "b here"`,
		"a: |\n  b\n    here c\n",
		"a: |-\n\n    here\n    b\n",
		"a: |\r\n  b\r\n  here\r\n",
		"{ä: 'ö here'}",
		"ä: '\"ö\" here'",
		"\ufeffa: here",
	} {
		value := mustParse(t, text).Fields[0].Value
		if got, want := value.PlaceIn(find(value.Text)), find(strings.TrimPrefix(text, "\ufeff")); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// Where the file's characters are not those of the text, the text's own place has to do.
func TestPlaceInOfOtherTextsIsTheirs(t *testing.T) {
	for _, text := range []string{`a: "\x62 here"`, "a: 'it''s here'", "a: b\n  here\n", "a: >\n  b\n  here\n", "a: 5", "a: [here]"} {
		value := mustParse(t, text).Fields[0].Value
		if got := value.PlaceIn(Position{1, 3}); got != value.At {
			t.Errorf("%q: %v, want %v", text, got, value.At)
		}
	}
	if value := mustParse(t, "a: here"); value.Fields[0].Value.PlaceIn(Position{2, 3}) != (Position{1, 4}) {
		t.Error("a line that the text does not have is found")
	}
}

// find is the place of here in a text.
func find(text string) Position {
	before, _, _ := strings.Cut(text, "here")
	lines := strings.Split(before, "\n")
	return Position{len(lines), len([]rune(lines[len(lines)-1])) + 1}
}
