package fulltext_test

import (
	"slices"
	"testing"

	"github.com/continuo-log/continuo/fulltext"
)

func TestSignalsOfUsers(t *testing.T) {
	for text, want := range map[string]bool{
		"Always answer in French.": true, "From now on, use metric units": true, "I'd rather walk": true,
		"please make sure that it compiles": true, "Whenever I ask about food, list calories": true, "I prefer tea": true,
		"What is the weather?": false, "make tea for sure": false, "": false,
	} {
		terms := fulltext.AddSignals(fulltext.Terms(text), text)
		if got := slices.Contains(terms, fulltext.SignalsTerm().Text); got != want {
			t.Errorf("%q has signals: %v, want %v", text, got, want)
		}
	}
}
