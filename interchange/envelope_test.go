package interchange

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// TestEnvelopesComeWithTheirHash: an export's envelope is taken under its own SHA-256 only, and a hash without its
// envelope is dropped.
func TestEnvelopesComeWithTheirHash(t *testing.T) {
	text := `{"model":"m","system":["be kind"]}`
	sum := sha256.Sum256([]byte(text))
	hash := hex.EncodeToString(sum[:])
	file := func(lines ...string) string {
		return `{"continuo":"conversation","version":1,"conversation":{"id":"c"}}` + "\n" + strings.Join(lines, "\n") + "\n" + `{"continuo":"end","entries":1}` + "\n"
	}
	envelope := func(hash string) string {
		return fmt.Sprintf(`{"continuo":"envelope","sha256":%q,"text":%s}`, hash, rawjson.MustMarshal(text))
	}
	answer := fmt.Sprintf(`{"role":"assistant","content":"a","round":{"view":"v","view_hash":"h","at":1,"window":{"epoch":1,"start":1},"envelope":%q}}`, hash)
	for name, c := range map[string]struct {
		text      string
		envelopes int
		kept      string
		broken    string
	}{
		"with its envelope":     {file(envelope(hash), answer), 1, hash, ""},
		"twice":                 {file(envelope(hash), envelope(hash), answer), 1, hash, ""},
		"without":               {file(answer), 0, "", ""},
		"under another's hash":  {file(envelope(strings.Repeat("0", 64)), answer), 0, "", "another SHA-256"},
		"that no entry names":   {file(envelope(hash), `{"role":"user","content":"a"}`), 0, "", ""},
		"outside of any export": {envelope(hash) + "\n", 0, "", "must be"},
	} {
		t.Run(name, func(t *testing.T) {
			for document, err := range Read("a.jsonl", strings.NewReader(c.text), Options{}) {
				if c.broken != "" {
					if err == nil || !strings.Contains(err.Error(), c.broken) {
						t.Errorf("error %v, want %q", err, c.broken)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if len(document.Envelopes) != c.envelopes {
					t.Errorf("%d envelopes, want %d", len(document.Envelopes), c.envelopes)
				}
				if round := document.Entries[0].Round; round != nil && round.Envelope != c.kept {
					t.Errorf("the entry names %q, want %q", round.Envelope, c.kept)
				}
			}
		})
	}
}
