package term

import (
	"strings"
	"testing"
)

// screenOf is what a terminal shows of what was written to it, one line for each line.
func screenOf(written string) string {
	lines := [][]rune{nil}
	at := 0
	for _, r := range written {
		last := len(lines) - 1
		switch {
		case r == '\n':
			lines, at = append(lines, nil), 0
		case r == '\b':
			at = max(at-1, 0)
		case at < len(lines[last]):
			lines[last][at] = r
			at++
		default:
			lines[last] = append(lines[last], r)
			at++
		}
	}
	var shown []string
	for _, line := range lines {
		shown = append(shown, strings.TrimRight(string(line), " "))
	}
	return strings.Join(shown, "\n")
}

// Whatever is shown of a word before its end, at the end the lines are those of the text that came at once; and what has
// come is shown when its piece ends.
func TestWordsAreShownBeforeTheirEnd(t *testing.T) {
	const text = "one two three four fiveandsix averyveryverylongword end\n  indented\n\nlast one"
	whole := strings.Join(Wrap(text, 12), "\n")
	for size := 1; size <= len(text); size++ {
		var out strings.Builder
		w := Wrapper{Out: &out, Width: 12}
		for at := 0; at < len(text); at += size {
			w.Write(text[at:min(at+size, len(text))])
			w.Show()
			so := strings.Join(strings.Fields(text[:min(at+size, len(text))]), "")
			if shown := strings.Join(strings.Fields(screenOf(out.String())), ""); !strings.HasPrefix(so, shown) || len(so)-len(shown) > 1 {
				t.Errorf("pieces of %d: of %q the terminal shows %q", size, so, shown)
			}
		}
		w.Flush()
		if got := screenOf(out.String()); strings.TrimRight(got, " \n") != strings.TrimRight(screenOf(whole), " \n") {
			t.Errorf("pieces of %d end as\n%s\nand at once they are\n%s", size, got, screenOf(whole))
		}
	}
}
