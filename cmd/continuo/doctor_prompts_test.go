package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/internal/config"
)

// promptChecks is what doctor says of prompts.dir, without the path of the test's folder.
func promptChecks(root, dir string) (found []string) {
	d := &diagnosis{OK: true}
	d.prompts(&config.Config{Prompts: config.PromptsConfig{Dir: dir}})
	for _, one := range d.Checks {
		found = append(found, string(one.Status)+" "+strings.ReplaceAll(one.Detail, root+string(filepath.Separator), ""))
	}
	return found
}

const allPrompts = "crew.md, system-base-rules-chat.md, system-base-rules-run.md, system-tool-policy.md"

func TestDoctorShowsThePromptSources(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"mine/system-base-rules-chat.md": "Be brief.", "mine/system-tool-policy.md": "\n", "mine/system-base-rule-run.md": "x", "mine/System-Tool-Policy.txt": "x",
		"mine/crews.md": "x", "mine/system-agent-and-whatever-else-there-may-be.md": "x", "mine/README.md": "x", "mine/persona.md": "x", "mine/.system-tool-policy.md.swp": "x",
		"mine/system-notes/a.md": "x", "bytes/crew.md": "\xff", "file": "x",
	} {
		name = filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for dir, want := range map[string][]string{
		"": {"ok built in: " + allPrompts},
		"mine": {
			"ok system-base-rules-chat.md: mine/system-base-rules-chat.md", "ok system-tool-policy.md: mine/system-tool-policy.md, which is empty: its message is left out",
			"ok built in: crew.md, system-base-rules-run.md",
			"warning mine/System-Tool-Policy.txt: nothing reads it; did you mean system-tool-policy.md?", "warning mine/crews.md: nothing reads it; did you mean crew.md?",
			"warning mine/system-agent-and-whatever-else-there-may-be.md: nothing reads it; allowed: " + allPrompts,
			"warning mine/system-base-rule-run.md: nothing reads it; did you mean system-base-rules-run.md?",
		},
		"mien":  {"warning prompts.dir: there is no folder mien, and so the built-in prompts count; make it, or correct the setting", "ok built in: " + allPrompts},
		"bytes": {"failed crew.md: read prompt: bytes/crew.md: it is not UTF-8 text; save it as UTF-8", "ok built in: system-base-rules-chat.md, system-base-rules-run.md, system-tool-policy.md"},
		"file":  {"failed prompts.dir: file is no folder; name the one that the files are in"},
	} {
		place := dir
		if dir != "" {
			place = filepath.Join(root, dir)
		}
		if got := promptChecks(root, place); !slices.Equal(got, want) {
			t.Errorf("%q:\n%s\nwant\n%s", dir, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}
