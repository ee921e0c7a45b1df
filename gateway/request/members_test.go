package request

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each member that is read for another protocol has a row in docs/gateway.md; a test of package gateway holds the rows
// to what is sent.
func TestMembersAreDocumented(t *testing.T) {
	documented, err := os.ReadFile(filepath.Join("..", "..", "docs", "gateway.md"))
	if err != nil {
		t.Fatal(err)
	}
	for heading, rows := range map[string]members{
		"### Chat completions\n": chatMembers, "### Responses\n": responsesMembers, "### Anthropic messages\n": anthropicMembers, "### Gemini\n": geminiMembers,
	} {
		_, section, found := strings.Cut(string(documented[strings.Index(string(documented), "## Members across protocols"):]), heading)
		if !found {
			t.Fatalf("docs/gateway.md has no section %q", heading)
		}
		section, _, _ = strings.Cut(section, "\n#")
		for name, row := range rows {
			if row.as != here && !row.inside && !strings.Contains(section, "\n| `"+name+"` |") {
				t.Errorf("%q of docs/gateway.md has no row for %s", heading, name)
			}
		}
	}
}
