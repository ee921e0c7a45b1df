package notices_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/internal/notices"
	"github.com/continuo-log/continuo/internal/notices/module"
)

// TestTheNoticesNameWhatTheProgramLinks: run make licenses when it fails.
func TestTheNoticesNameWhatTheProgramLinks(t *testing.T) {
	linked, err := module.Linked("github.com/continuo-log/continuo/cmd/continuo")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, m := range linked {
		want = append(want, m.Heading())
	}
	for line := range strings.Lines(notices.Text()) {
		if strings.HasPrefix(line, "== ") && !strings.HasPrefix(line, "== Go ") && strings.Count(strings.TrimSpace(line), " ") == 2 {
			got = append(got, strings.TrimSpace(line))
		}
	}
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("notices.txt names %d modules, and %d are linked: run make licenses\nhave %v\nwant %v", len(got), len(want), got, want)
	}
}
