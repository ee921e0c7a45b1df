package token

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"unicode"
)

// testdata/reference.json holds ids of the npm package tiktoken 1.0.22, OpenAI's own Rust code compiled to wasm:
// a list of {"text", "o200k_base", "cl100k_base"}. To make it again, let a test write referenceTexts as a JSON
// list of strings, and have Node put get_encoding(name).encode(text, [], []) beside each text; the empty lists
// make special tokens ordinary text.
type referenceCase struct {
	Text   string `json:"text"`
	O200k  []int  `json:"o200k_base"`
	CL100k []int  `json:"cl100k_base"`
}

func TestReference(t *testing.T) {
	data, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []referenceCase
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, c := range cases {
		texts = append(texts, c.Text)
		for enc, want := range map[*Encoding][]int{O200k(): c.O200k, CL100k(): c.CL100k} {
			if got := enc.Encode(c.Text); !slices.Equal(got, want) {
				t.Errorf("%s: Encode(%q)\n got %v\nwant %v", enc.Name(), c.Text, got, want)
			}
			checkLaws(t, enc, c.Text)
		}
	}
	if !slices.Equal(texts, referenceTexts()) {
		t.Error("reference.json has other texts than referenceTexts: make it again")
	}
}

// referenceTexts are the texts of reference.json: the awkward ones, the samples line by line, and what the oracle
// does not know.
func referenceTexts() []string {
	texts := slices.Clone(awkward)
	for _, name := range []string{"english.txt", "chinese.txt", "scripts.txt"} {
		texts = append(texts, lines(sample(name))...)
	}
	texts = append(texts, "x'ſ'stop", "X'ſ", "'ſtop", "dieſ's", "it'ſ's")
	for _, table := range []*unicode.RangeTable{addedUpper, addedLower, addedLetter, addedMark, addedNumber, later} {
		for _, r := range table.R16 {
			texts = append(texts, classProbe(rune(r.Lo)), classProbe(rune(r.Hi)))
		}
		for _, r := range table.R32 {
			texts = append(texts, classProbe(rune(r.Lo)), classProbe(rune(r.Hi)))
		}
	}
	return texts
}

// classProbe returns a text whose ids tell whether r is a letter, a mark, a number or a symbol.
func classProbe(r rune) string {
	c := string(r)
	return "!!" + c + "'stop x" + c + "'stop " + c + "1234 " + c
}
