package fs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/tool/fs"
)

// fixture is a project's folder and a log.
type fixture struct {
	*testing.T
	fs.Roots
	conversation continuo.Conversation
	since        int64 // of the calls
}

// newFixture makes a folder with the files, whose names may have folders in them.
func newFixture(t *testing.T, files map[string]string) *fixture {
	t.Helper()
	log := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{})
	conversation, err := log.Create(t.Context(), continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	p := &fixture{t, fs.Roots{Log: log, ProjectDir: filepath.Join(t.TempDir(), "project")}, conversation, 0}
	p.write("", "")
	for name, text := range files {
		p.write(name, text)
	}
	return p
}

// write writes a file of the project; "" makes only the folder.
func (p *fixture) write(name, text string) {
	p.Helper()
	path := filepath.Join(p.ProjectDir, name)
	folder := filepath.Dir(path)
	if name == "" {
		folder = path
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		p.Fatal(err)
	}
	if name == "" {
		return
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
}

// link makes a symbolic link in the project.
func (p *fixture) link(target, name string) {
	p.Helper()
	if err := os.Symlink(target, filepath.Join(p.ProjectDir, name)); err != nil {
		p.Skipf("SKIPPED: no symbolic links on this machine: %v", err)
	}
}

// run calls a tool, which must be able to tell a model about itself.
func (p *fixture) run(t tool.Tool, arguments string) tool.Result {
	p.Helper()
	if !json.Valid(t.Spec().Parameters) || strings.TrimSpace(t.Spec().Description) == "" {
		p.Fatalf("%s has no proper specification", t.Spec().Name)
	}
	return t.Run(p.Context(), tool.Call{Conversation: p.conversation, ID: "call_x", Arguments: arguments, Since: p.since})
}

func (p *fixture) read(arguments string) tool.Result {
	p.Helper()
	return p.run(fs.Read{Roots: p.Roots}, arguments)
}

func (p *fixture) list(arguments string) tool.Result {
	p.Helper()
	return p.run(fs.List{Roots: p.Roots}, arguments)
}

func (p *fixture) search(arguments string) tool.Result {
	p.Helper()
	return p.run(fs.Search{Roots: p.Roots}, arguments)
}

// path is arguments with a path only.
func path(path string) string { return string(rawjson.MustMarshal(map[string]string{"path": path})) }

// is checks a result that is no failure.
func (p *fixture) is(got tool.Result, want string) {
	p.Helper()
	if got.Failed || got.Content != want {
		p.Errorf("failed %t:\n%s\nwant:\n%s", got.Failed, got.Content, want)
	}
}

// fails checks that a result is a failure which says all of the words.
func (p *fixture) fails(got tool.Result, words ...string) {
	p.Helper()
	for _, word := range words {
		if !got.Failed || !strings.Contains(got.Content, word) {
			p.Errorf("failed %t: %s\nwant a failure with %q", got.Failed, got.Content, word)
		}
	}
	if p.ProjectDir != "" && strings.Contains(got.Content, p.ProjectDir) {
		p.Errorf("the failure tells where the folder is: %s", got.Content)
	}
}

// calls appends an answer with calls of a tool and their results, whose ids are call_0 and so on.
func (p *fixture) calls(arguments []string, results []string) {
	p.Helper()
	answer := continuo.Entry{Role: continuo.Assistant, Content: continuo.Null()}
	var entries []continuo.Entry
	for i := range arguments {
		id := fmt.Sprintf("call_%d", i)
		answer.ToolCalls = append(answer.ToolCalls, continuo.FunctionCall(id, "look", arguments[i]))
		entries = append(entries, continuo.Entry{Role: continuo.Tool, ToolCallID: id, ToolName: "look", Outcome: "Looked", Content: continuo.Text(results[i])})
	}
	all := append([]continuo.Entry{{Role: continuo.User, Content: continuo.Text("look")}, answer}, entries...)
	all = append(all, continuo.Entry{Role: continuo.Assistant, Content: continuo.Text("done")})
	if _, err := p.Log.Append(p.Context(), p.conversation.ID, all, continuo.AppendOptions{}); err != nil {
		p.Fatal(err)
	}
	p.refresh()
}

func (p *fixture) refresh() {
	p.Helper()
	conversation, err := p.Log.Conversation(p.Context(), p.conversation.ID)
	if err != nil {
		p.Fatal(err)
	}
	p.conversation = conversation
}
