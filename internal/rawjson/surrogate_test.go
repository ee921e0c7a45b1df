package rawjson_test

import (
	"slices"
	"testing"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// A sender that counts in UTF-16 cuts characters in two; both halves are joined in the text that has the second one.
func TestHalves(t *testing.T) {
	for name, c := range map[string]struct{ texts, want []string }{
		"nothing to join":      {[]string{`{"a":"b"}`, `{"a":"\ud83d\ude42"}`}, []string{`{"a":"b"}`, `{"a":"\ud83d\ude42"}`}},
		"one character":        {[]string{`{"a":"b \ud83d"}`, `{"a":"\ude42 c"}`}, []string{`{"a":"b "}`, `{"a":"\ud83d\ude42 c"}`}},
		"upper case":           {[]string{`{"a":"\uD83D"}`, `{"a":"\uDE42"}`}, []string{`{"a":""}`, `{"a":"\uD83D\uDE42"}`}},
		"others in between":    {[]string{`{"a":"\ud83d"}`, `{}`, `{"a":"\ude42"}`}, []string{`{"a":""}`, `{}`, `{"a":"\ud83d\ude42"}`}},
		"twice in a row":       {[]string{`["\ud83d"]`, `["\ude42\ud83d"]`, `["\ude43"]`}, []string{`[""]`, `["\ud83d\ude42"]`, `["\ud83d\ude43"]`}},
		"an escaped backslash": {[]string{`["\\ud83d"]`, `["\\ude42"]`}, []string{`["\\ud83d"]`, `["\\ude42"]`}},
		"a half of its own":    {[]string{`["\ude42"]`, `["\ud83d x"]`, `["\ude42"]`}, []string{`["\ude42"]`, `["\ud83d x"]`, `["\ude42"]`}},
		"not at the beginning": {[]string{`["\ud83d"]`, `["x\ude42"]`}, []string{`[""]`, `["x\ude42"]`}},
		"after a quote":        {[]string{`["\ud83d"]`, `["x\"\ude42"]`}, []string{`[""]`, `["x\"\ude42"]`}},
		"cut JSON":             {[]string{`["\ud83d`, `["\ud8`}, []string{`["\ud83d`, `["\ud8`}},
	} {
		t.Run(name, func(t *testing.T) {
			var halves rawjson.Halves
			var got []string
			for _, text := range c.texts {
				data := []byte(text)
				got = append(got, string(halves.Join(data)))
				if string(data) != text {
					t.Errorf("the caller's %s has become %s", text, data)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
