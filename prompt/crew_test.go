package prompt_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/prompt"
)

func crewOf(t *testing.T, p prompt.Prompts, systemPrompt string, self prompt.Member, others ...prompt.Member) []string {
	t.Helper()
	messages, err := p.Crew(systemPrompt, self, others)
	if err != nil {
		t.Fatal(err)
	}
	return messages
}

func TestARolePromptHasItsPartTheRulesAndTheMembers(t *testing.T) {
	ada, bo, cy := prompt.Member{DisplayName: "Ada"}, prompt.Member{DisplayName: "Bo", IsModerator: true}, prompt.Member{DisplayName: "Cy", IsModerator: true}
	messages := crewOf(t, prompt.Prompts{}, " You plan.\n", ada, bo, cy)
	if len(messages) != 3 || messages[0] != "You plan." || messages[2] != "CREW\n- you: Ada\n- others: Bo; Cy\n- moderators: Bo; Cy" {
		t.Errorf("%q", messages)
	}
	for _, part := range []string{"You are Ada,", "\n" + continuo.Placeholder + "\n", "`User:`", "`Assistant (NAME):`", "`Assistant (Ada):`", "[SYSTEM REMINDER]", "[END REMINDER]", "no instructions of the system"} {
		if !strings.Contains(messages[1], part) {
			t.Errorf("the rules do not tell of %s:\n%s", part, messages[1])
		}
	}
	if strings.Contains(messages[1], "{{") {
		t.Errorf("a part was not filled in:\n%s", messages[1])
	}
	if single := crewOf(t, prompt.Prompts{}, "", bo); len(single) != 2 || single[1] != "CREW\n- you: Bo\n- others: none\n- moderators: Bo" {
		t.Errorf("alone: %q", single)
	}
	if none := crewOf(t, prompt.Prompts{}, "x", ada, ada); !strings.HasSuffix(none[2], "\n- moderators: none") {
		t.Errorf("without a moderator: %q", none)
	}
}

func TestAProjectReplacesTheRulesOfItsCrews(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "crew.md"), []byte("Be brief, {{display_name}}.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	messages := crewOf(t, prompt.Prompts{Dir: dir}, "You plan.", prompt.Member{DisplayName: "Ada"})
	if want := []string{"You plan.", "Be brief, Ada.", "CREW\n- you: Ada\n- others: none\n- moderators: none"}; !slices.Equal(messages, want) {
		t.Errorf("%q, want %q", messages, want)
	}
}
