//go:build unix

package fs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/tool/fs"
)

func written(name, content string) string {
	return string(rawjson.MustMarshal(map[string]string{"path": name, "content": content}))
}

// call writes a file as a turn does, with the call and its result in the log.
func (p *place) call(id, name, content string) {
	p.Helper()
	arguments := written(name, content)
	result := p.run(fs.Write{Roots: p.Roots}, arguments)
	part := "tool_result"
	if result.Failed {
		part = continuo.PartToolError
	}
	_, err := p.Log.Append(p.Context(), p.conversation.ID, []continuo.Entry{
		{Role: continuo.User, Content: continuo.Text("write")},
		{Role: continuo.Assistant, ToolCalls: []continuo.ToolCall{{ID: id, Type: "function", Name: "fs_write", Arguments: arguments}}},
		{Role: continuo.Tool, ToolCallID: id, ToolName: "fs.write", Content: continuo.Text(result.Content), PartType: part, OutputRef: result.File},
	}, continuo.AppendOptions{})
	if err == nil {
		p.conversation, err = p.Log.Conversation(p.Context(), p.conversation.ID)
	}
	if err != nil {
		p.Fatal(err)
	}
}

func TestFilesOfAConversationAreInItsLog(t *testing.T) {
	p := newPlace(t, nil)
	p.call("w1", "@state/files/notes/a.md", "first")
	fork, err := p.Log.Fork(t.Context(), p.conversation.ID, 0, continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	p.call("w1", "@state/files/notes/a.md", "second")
	p.call("w2", "@state/files/b.txt", "")
	p.call("w3", "@state/logs/tool-results/x.json", "no")
	p.is(p.read(path("@state/files/notes/a.md")), "second")
	p.is(p.list(`{"path":"@state/files","depth":9}`), "b.txt  0\nnotes/\nnotes/a.md  6")
	p.is(p.list(path("@state/files")), "b.txt  0\nnotes/")
	p.is(p.search(`{"path":"@state/files","pattern":"first|second"}`), "@state/files/notes/a.md:1: second")
	if whole := p.list(`{"path":"@state/","depth":9}`).Content; p.steps("@state/", 1) != whole {
		t.Errorf("in steps:\n%s\nat once:\n%s", p.steps("@state/", 1), whole)
	}
	main := p.conversation
	p.conversation = fork
	p.is(p.read(path("@state/files/notes/a.md")), "first")
	p.fails(p.read(path("@state/files/b.txt")), "no such file")
	p.conversation, p.since = main, main.LastSeq
	p.fails(p.read(path("@state/files/notes/a.md")), "no such file")
	p.is(p.list(path("@state/files")), "[nothing is here]")
}

func TestOnlyFilesCanBeWritten(t *testing.T) {
	p := newPlace(t, nil)
	write := func(arguments string) tool.Result { return p.run(fs.Write{Roots: p.Roots}, arguments) }
	for _, name := range []string{"@state/", "@state/files", "@state/runs/run_1/inputs.json", "@state/logs/tool-results/c.json", "@state/files/../logs/x"} {
		p.fails(write(written(name, "x")), "error")
	}
	p.fails(write(`{"path":"@state/files/a"}`), "content is missing")
	p.fails(write(written("@state/files/a", strings.Repeat("x", 256<<10+1))), "more than the limit of 262144")
	p.ProjectDir = ""
	p.fails(write(written("@project/a", "x")), "there is no project folder")
}

func TestFilesOfTheProjectAreReplacedWhole(t *testing.T) {
	p := withSecrets(t)
	p.write(".git/hooks/x", "")
	p.link(".git/hooks", "hooks")
	p.link("main.go", "link.go")
	p.link("/tmp", "outside")
	write := func(name string) tool.Result {
		return p.run(fs.Write{Roots: p.Roots}, written("@project/"+name, "new"))
	}
	if err := os.Chmod(filepath.Join(p.ProjectDir, "main.go"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"main.go", "new/folder/a.txt"} {
		p.is(write(name), "Wrote @project/"+name+" (3 bytes)")
		p.is(p.read(path("@project/"+name)), "new")
	}
	if info, err := os.Stat(filepath.Join(p.ProjectDir, "main.go")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the mode is not kept: %v %v", info.Mode(), err)
	}
	for _, name := range []string{
		".env", "deploy/.env", ".ssh/authorized_keys", "keys/new.key", "data/continuo.db", "elsewhere/continuo.db", "outputs/out_2", "copy.bin",
		".git/hooks/pre-commit", "hooks/pre-commit", "sub/.GIT/config", "link.go", "outside/x", "keys", "",
	} {
		p.fails(write(name), "error")
	}
	for _, name := range []string{".", "new/folder", "keys"} {
		entries, err := os.ReadDir(filepath.Join(p.ProjectDir, name))
		for _, entry := range entries {
			if err != nil || strings.HasPrefix(entry.Name(), ".continuo-write") {
				t.Errorf("%s is left in %s (%v)", entry.Name(), name, err)
			}
		}
	}
}
