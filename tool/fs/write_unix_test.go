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
func (p *fixture) call(id, name, content string) {
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
	p := newFixture(t, nil)
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

// Steps beside others write in branches. What they wrote is there once they have finished, the newest under each name.
func TestFilesOfBranchesJoin(t *testing.T) {
	p := newFixture(t, nil)
	scope := continuo.Run{ID: "run_1", ProjectID: p.conversation.ProjectID, ConversationID: p.conversation.ID, WorkflowID: "w"}
	event := func(node string, kind continuo.RunEventKind, branch string) {
		t.Helper()
		_, err := p.Log.Append(t.Context(), scope.ConversationID, []continuo.Entry{{
			Role: continuo.System, Hidden: true, Content: continuo.Text(string(kind)), Mode: continuo.ModeRun, RunID: scope.ID, WorkflowID: "w", NodeID: node,
			RunEvent: &continuo.RunEvent{Kind: kind, Visit: 1, Branch: branch},
		}}, continuo.AppendOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	at := func(id string) {
		t.Helper()
		conversation, err := p.Log.Conversation(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		p.conversation = conversation
	}
	p.call("w1", "@state/files/plan.md", "of all")
	event("", continuo.RunBegan, "")
	branches := map[string]string{}
	for _, node := range []string{"left", "right"} {
		branch, err := p.Log.Fork(t.Context(), scope.ConversationID, 0, continuo.Conversation{Kind: continuo.KindBranch})
		if err != nil {
			t.Fatal(err)
		}
		branches[node] = branch.ID
	}
	for node, branch := range branches {
		event(node, continuo.RunNodeBegan, branch)
		at(branch)
		p.is(p.read(path("@state/files/plan.md")), "of all")
		p.call("b1", "@state/files/"+node+".md", node)
		p.call("b2", "@state/files/plan.md", "of "+node)
		p.is(p.read(path("@state/files/plan.md")), "of "+node)
	}
	at(scope.ConversationID)
	p.is(p.read(path("@state/files/plan.md")), "of all")
	p.fails(p.read(path("@state/files/left.md")), "no such file")
	event("left", continuo.RunNodeFinished, "")
	at(scope.ConversationID)
	p.is(p.read(path("@state/files/plan.md")), "of left")
	p.is(p.read(path("@state/files/left.md")), "left")
	p.is(p.list(path("@state/files")), "left.md  4\nplan.md  7")
	at(branches["right"])
	p.is(p.read(path("@state/files/plan.md")), "of right")
	p.fails(p.read(path("@state/files/left.md")), "no such file")
	at(scope.ConversationID)
	p.call("w2", "@state/files/left.md", "again")
	event("right", continuo.RunNodeFinished, "")
	at(scope.ConversationID)
	p.is(p.read(path("@state/files/plan.md")), "of right")
	p.is(p.read(path("@state/files/left.md")), "again")
	p.is(p.search(`{"path":"@state/files","pattern":"."}`), "@state/files/left.md:1: again\n@state/files/plan.md:1: of right\n@state/files/right.md:1: right")
	p.since = p.conversation.LastSeq - 1
	p.is(p.list(path("@state/files")), "plan.md  8\nright.md  5")
}

func TestOnlyFilesCanBeWritten(t *testing.T) {
	p := newFixture(t, nil)
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
