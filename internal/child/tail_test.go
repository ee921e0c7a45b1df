package child

import (
	"strings"
	"testing"
)

// What a program was given to keep is not repeated in what its errors say, wherever the cut falls.
func TestTheTailHidesSecrets(t *testing.T) {
	const secret = "sk-canary-123456789"
	for before := range 60 {
		stderr := tail{}
		stderr.hide([]string{"KEY=" + secret, "SHORT=on"})
		stderr.add([]byte(secret + strings.Repeat("x", maxTail-40+before) + " bad key " + secret + " is on"))
		words := stderr.quoted()
		for n := minSecret; n <= len(secret); n++ {
			if strings.Contains(words, secret[:n]) || strings.Contains(words, secret[len(secret)-n:]) {
				t.Fatalf("%d before: the words have %q: %.80s", before, secret[:n], words)
			}
		}
		if !strings.HasSuffix(words, "bad key [redacted] is on") {
			t.Fatalf("the words end with %q", words[len(words)-40:])
		}
	}
}
