package plaintext

import (
	"testing"
	"unicode/utf8"
)

func TestLookalikesAreOneCharacterEach(t *testing.T) {
	if n := utf8.RuneCountInString(lookalikes); n != len(lookalikePlain) {
		t.Errorf("%d lookalikes stand for %d characters", n, len(lookalikePlain))
	}
}
