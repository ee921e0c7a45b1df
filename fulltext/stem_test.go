package fulltext_test

import (
	"testing"
	"unicode/utf8"

	"github.com/continuo-log/continuo/fulltext"
)

func TestStemJoinsForms(t *testing.T) {
	for _, forms := range [][]string{
		{"combine", "combining", "combined", "combines"},
		{"go", "went", "gone", "going", "goes"},
		{"derivative", "derivatives"},
		{"child", "children"},
		{"deploy", "deployed", "deploying", "deploys"},
		{"relate", "relational"},
		{"happy", "happiest"},
		{"teach", "taught", "teaching"},
		{"ox", "oxen"},
		{"plan", "planned", "planning"},
	} {
		for _, form := range forms[1:] {
			if a, b := fulltext.Stem(forms[0]), fulltext.Stem(form); a != b {
				t.Errorf("%s is %s, %s is %s", forms[0], a, form, b)
			}
		}
	}
	for _, word := range []string{"", "a", "müller", "東京", "v2", "x1ing", "ing", "ed", "s", "ss", "eed", "sky"} {
		if stem := fulltext.Stem(word); word == "müller" && stem != word || !utf8.ValidString(stem) {
			t.Errorf("the stem of %q is %q", word, stem)
		}
	}
}

// TestStemIsPorters has examples of the paper that describes the algorithm.
func TestStemIsPorters(t *testing.T) {
	for word, want := range map[string]string{
		"caresses": "caress", "ponies": "poni", "cats": "cat", "agreed": "agre", "plastered": "plaster", "motoring": "motor",
		"conflated": "conflat", "hopping": "hop", "falling": "fall", "hissing": "hiss", "failing": "fail", "filing": "file",
		"relational": "relat", "conditional": "condit", "digitizer": "digit", "vietnamization": "vietnam", "sensibiliti": "sensibl",
		"triplicate": "triplic", "hopefulness": "hope", "goodness": "good", "adoption": "adopt", "replacement": "replac",
		"controll": "control", "roll": "roll", "probate": "probat", "rate": "rate",
	} {
		if got := fulltext.Stem(word); got != want {
			t.Errorf("the stem of %s is %s, want %s", word, got, want)
		}
	}
}
