package clients

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestReadyLines(t *testing.T) {
	for _, keys := range []bool{false, true} {
		seen := map[string]bool{}
		for _, client := range All("http://host:1", "sonnet", keys) {
			if seen[client.ID] {
				t.Errorf("%s is there twice", client.ID)
			}
			seen[client.ID] = true
			if !strings.Contains(client.Text, "http://host:1") {
				t.Errorf("%s does not name the server:\n%s", client.ID, client.Text)
			}
			if strings.Contains(client.Text, KeyPlace) != keys {
				t.Errorf("%s, with keys %v:\n%s", client.ID, keys, client.Text)
			}
			if strings.Contains(client.Text, "%!") {
				t.Errorf("%s:\n%s", client.ID, client.Text)
			}
		}
	}
}

// Every agent is in the table of docs/gateway.md, in its order, and no other one.
func TestAgentsAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "gateway.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "| agent | how it is pointed here |\n|---|---|\n")
	if !found {
		t.Fatal("docs/gateway.md has no table of agents")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var documented, known []string
	for row := range strings.SplitSeq(strings.TrimSpace(table), "\n") {
		documented = append(documented, strings.Trim(strings.Fields(row)[1], "`"))
	}
	for _, agent := range Agents() {
		known = append(known, agent.ID)
		for _, variable := range agent.Env("http://host:1", "") {
			name, _, _ := strings.Cut(variable, "=")
			if agent.ID != "pi" && !strings.Contains(table, "`"+name+"`") {
				t.Errorf("the row of %s does not name %s", agent.ID, name)
			}
		}
	}
	if !slices.Equal(documented, known) {
		t.Errorf("docs/gateway.md has %v, the program %v", documented, known)
	}
}

func TestLinesAreQuoted(t *testing.T) {
	agent, ok := Find("opencode")
	if !ok {
		t.Fatal("opencode is not known")
	}
	lines := agent.Lines("http://host:1", "it's", "-p", "a b")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "export OPENCODE_CONFIG_CONTENT='{") || !strings.Contains(lines[0], `it'\''s`) || lines[1] != "opencode -p 'a b'" {
		t.Errorf("got %q", lines)
	}
}
