package prompt_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/prompt"
	"github.com/continuo-log/continuo/window"
)

func system(t *testing.T, p prompt.Prompts, mode continuo.Mode, persona string) []string {
	t.Helper()
	messages, err := p.System(mode, persona)
	if err != nil {
		t.Fatal(err)
	}
	return messages
}

func TestThePersonaIsSentInAgentAndRunButNotInChat(t *testing.T) {
	for mode, shown := range map[continuo.Mode]bool{continuo.ModeChat: false, continuo.ModeAgent: true, continuo.ModeRun: true} {
		messages := system(t, prompt.Prompts{}, mode, "You are Ada.")
		if slices.Contains(messages, "You are Ada.") != shown {
			t.Errorf("%s: %q", mode, messages)
		}
		if last := messages[len(messages)-1]; last != "MODE\n- active: "+string(mode)+"\n- note: history may include other modes; follow current instructions." {
			t.Errorf("%s: the banner is %q", mode, last)
		}
	}
}

func TestAFolderReplacesTheTextsOneByOne(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("system-base-rules-chat.md", "Our own rules.\n")
	write("system-tool-policy.md", "\n")
	messages := system(t, prompt.Prompts{Dir: dir}, continuo.ModeChat, "")
	if len(messages) != 2 || messages[0] != "Our own rules." {
		t.Errorf("chat: %q", messages)
	}
	if run := system(t, prompt.Prompts{Dir: dir}, continuo.ModeRun, ""); !strings.Contains(run[0], "workflow") {
		t.Errorf("run, which has no file of its own there: %q", run)
	}
	if err := os.Mkdir(filepath.Join(dir, "system-base-rules-run.md"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := (prompt.Prompts{Dir: dir}).System(continuo.ModeRun, ""); err == nil {
		t.Error("a folder in the place of a file was read")
	}
}

// JSON has no other text: the request that was sent could not be made again.
func TestAFileThatIsNoTextIsRefused(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "system-base-rules-chat.md")
	if err := os.WriteFile(file, []byte("Gr\xfc\xdfe.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := prompt.Prompts{Dir: dir}.System(continuo.ModeChat, "")
	if err == nil || !strings.Contains(err.Error(), file+": it is not UTF-8 text") {
		t.Errorf("Latin-1 was read: %v", err)
	}
	if _, err := (prompt.Prompts{Dir: dir}).System(continuo.ModeRun, ""); err != nil {
		t.Errorf("run, which does not read it: %v", err)
	}
}

func TestEachTextHasASource(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"crew.md": "Be brief.", "system-tool-policy.md": "", "system-base-rules-run.md": "\xff", "README.md": "Ours."} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, source := range (prompt.Prompts{Dir: dir}).Sources() {
		got = append(got, fmt.Sprintf("%s %q %v %v", source.Name, strings.TrimPrefix(source.File, dir), source.Empty, source.Err != nil))
	}
	slash := string(filepath.Separator)
	want := []string{
		fmt.Sprintf("crew.md %q false false", slash+"crew.md"), `system-base-rules-chat.md "" false false`,
		fmt.Sprintf("system-base-rules-run.md %q false true", slash+"system-base-rules-run.md"), fmt.Sprintf("system-tool-policy.md %q true false", slash+"system-tool-policy.md"),
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	for _, source := range (prompt.Prompts{}).Sources() {
		if source.File != "" || source.Empty || source.Err != nil {
			t.Errorf("built in: %+v", source)
		}
	}
}

// The texts explain words that others write; they must be the same words.
func TestThePromptsNameElementsOfTheHistory(t *testing.T) {
	preview, _, _ := strings.Cut(continuo.Preview{}.String(), " ")
	for _, mode := range []continuo.Mode{continuo.ModeChat, continuo.ModeAgent, continuo.ModeRun} {
		all := strings.Join(system(t, prompt.Prompts{}, mode, ""), "\n")
		for _, text := range []string{continuo.LLMError, window.Marker, preview} {
			if !strings.Contains(all, text) {
				t.Errorf("the model is not told of %s in the mode %s", text, mode)
			}
		}
	}
}
