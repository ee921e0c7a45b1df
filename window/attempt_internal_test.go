package window

import (
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

// A message may have 30 MB: whether another one repeats it is found out without a copy of either.
func TestTextsAreComparedInPlace(t *testing.T) {
	said := func(text string) *continuo.Entry {
		return &continuo.Entry{Role: continuo.User, Content: continuo.Text(strings.Repeat("words ", 1000) + text)}
	}
	older, same, other := said("a"), said("a"), said("b")
	if !repeats(same, older) || repeats(other, older) {
		t.Error("equal texts are not told from others")
	}
	if n := testing.AllocsPerRun(10, func() { repeats(same, older) }); n != 0 {
		t.Errorf("a comparison allocates %v times", n)
	}
}
