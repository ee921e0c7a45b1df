package task_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/continuo-log/continuo/task"
)

func TestDecisionsAreWhatWasDecided(t *testing.T) {
	text := strings.Join([]string{
		"User: Build a shop for tea.", "Assistant (Ann): I like green tea.", "Assistant (Ben): We decided to use PostgreSQL. The weather is fine.",
		"User: Must it be PostgreSQL?", "User: The page must load within a second!", "Assistant (Ann): Agreed, no cookies.",
		"Assistant (Ann): Agreed, no cookies.", "Assistant (Ben): Let's go with Go 1.26.",
	}, "\n")
	tests := []struct {
		most int
		want []string
	}{
		{12, []string{
			"Assistant (Ben): We decided to use PostgreSQL.", "User: The page must load within a second!",
			"Assistant (Ann): Agreed, no cookies.", "Assistant (Ben): Let's go with Go 1.26.",
		}},
		{3, []string{"Assistant (Ben): We decided to use PostgreSQL.", "Assistant (Ann): Agreed, no cookies.", "Assistant (Ben): Let's go with Go 1.26."}},
		{1, []string{"Assistant (Ben): Let's go with Go 1.26."}},
		{0, nil},
		{-1, nil},
	}
	for _, test := range tests {
		if got := task.Decisions(text, test.most); !slices.Equal(got, test.want) {
			t.Errorf("at most %d: %q, want %q", test.most, got, test.want)
		}
	}
}

func TestALongDecisionIsCut(t *testing.T) {
	got := task.Decisions("We decided "+strings.Repeat("on tea and ", 200)+"nothing else.", 5)
	if len(got) != 1 || utf8.RuneCountInString(got[0]) > 300 || !strings.HasPrefix(got[0], "We decided on tea") {
		t.Errorf("%q", got)
	}
}
