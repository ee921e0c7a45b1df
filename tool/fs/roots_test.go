package fs_test

import (
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/tool"
)

// TestTheFolderIsOfOneProject: the tools are for all projects alike, the folder is one project's.
func TestTheFolderIsOfOneProject(t *testing.T) {
	p := newFixture(t, map[string]string{"a.txt": "the secret", "sub/b.txt": "another secret"})
	p.Project = p.conversation.ProjectID
	own := p.conversation
	p.is(p.read(path("@project/a.txt")), "the secret")
	p.is(p.search(`{"pattern": "another"}`), "@project/sub/b.txt:1: another secret")

	other, err := p.Log.Create(t.Context(), continuo.Conversation{ProjectID: "other"})
	if err != nil {
		t.Fatal(err)
	}
	p.conversation = other
	p.calls([]string{`{"question": "where is the secret?"}`}, []string{"nowhere"})
	tries := map[string]func() tool.Result{
		"read":                func() tool.Result { return p.read(path("@project/a.txt")) },
		"read what is not":    func() tool.Result { return p.read(path("@project/nothing.txt")) },
		"list":                func() tool.Result { return p.list(path("@project/")) },
		"list what is below":  func() tool.Result { return p.list(`{"path": "@project/sub", "depth": 9}`) },
		"search":              func() tool.Result { return p.search(`{"pattern": "secret", "path": "@project/"}`) },
		"search in one file":  func() tool.Result { return p.search(`{"pattern": "secret", "path": "@project/a.txt"}`) },
		"read a wrong path":   func() tool.Result { return p.read(path("/etc/passwd")) },
		"list a wrong path":   func() tool.Result { return p.list(path("@project/../..")) },
		"search a wrong path": func() tool.Result { return p.search(`{"pattern": "secret", "path": "sub"}`) },
	}
	without := *p
	without.Roots.ProjectDir, without.Roots.Project = "", ""
	for name, try := range tries {
		got := try()
		p.fails(got, "paths begin with @state/, such as @state/logs/tool-results/")
		if strings.Contains(got.Content, "the project's folder") || strings.Contains(got.Content, "b.txt") || strings.Contains(got.Content, "there is no such file") {
			t.Errorf("%s: a model of another project is told of the folder: %s", name, got.Content)
		}
	}
	for _, test := range []struct{ got, want tool.Result }{
		{p.read(path("@project/a.txt")), without.read(path("@project/a.txt"))},
		{p.list(path("@project/")), without.list(path("@project/"))},
		{p.search(`{"pattern": "secret", "path": "@project/"}`), without.search(`{"pattern": "secret", "path": "@project/"}`)},
		{p.search(`{"pattern": "secret"}`), without.search(`{"pattern": "secret"}`)},
	} {
		if test.got != test.want {
			t.Errorf("a conversation of another project is told\n%+v\none where there is no folder\n%+v", test.got, test.want)
		}
	}
	p.fails(p.read(path("@project/a.txt")), "there is no project folder for this conversation")
	found := p.search(`{"pattern": "secret"}`) // of what this conversation has
	if found.Failed || !strings.Contains(found.Content, "@state/logs/tool-calls/") || strings.Contains(found.Content, "@project") {
		t.Errorf("a search that names no path found %+v", found)
	}

	p.conversation, p.Project = own, "Default" // ids of projects are told apart by their letters
	p.fails(p.read(path("@project/a.txt")), "there is no project folder for this conversation")
	p.Project = ""
	p.is(p.read(path("@project/a.txt")), "the secret")
	p.conversation = other
	p.is(p.read(path("@project/a.txt")), "the secret")
}
