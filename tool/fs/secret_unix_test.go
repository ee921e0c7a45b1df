//go:build unix

package fs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/tool/fs"
)

// withSecrets is a project with secret files, and links of both kinds to them.
func withSecrets(t *testing.T) *fixture {
	p := newFixture(t, map[string]string{
		"main.go": "open code", ".env": "TOKEN=hunter2", ".env.local": "TOKEN=hunter2", ".env.example": "TOKEN=open",
		"deploy/.ENV": "TOKEN=hunter2", "keys/server.key": "hunter2", "id_rsa": "hunter2", ".ssh/config": "hunter2", "sub/.git/config": "hunter2",
		"data/continuo.db": "hunter2", "data/continuo.db-wal": "hunter2", "data/continuo.db.objects/conv_1/out_1": "hunter2",
	})
	p.link(".env", "plain.txt")
	p.link("data", "elsewhere")
	p.link("data/continuo.db.objects/conv_1", "outputs")
	for old, hard := range map[string]string{"data/continuo.db": "copy.bin"} {
		if err := os.Link(filepath.Join(p.ProjectDir, old), filepath.Join(p.ProjectDir, hard)); err != nil {
			t.Fatal(err)
		}
	}
	var paths []string
	for _, name := range []string{"data/continuo.db", "data/continuo.db-wal", "data/continuo.db-shm", "data/continuo.db.objects"} {
		paths = append(paths, filepath.Join(p.ProjectDir, name))
	}
	secrets, err := fs.NewSecrets(p.ProjectDir, []string{".env", ".env.*", "!.env.example", "*.key", "id_rsa*", ".ssh", "**/.git/config"}, paths)
	if err != nil {
		t.Fatal(err)
	}
	p.Secrets = secrets
	return p
}

// TestSecretsAreOutOfReach: under their names, through links, and as what a listing or a search meets.
func TestSecretsAreOutOfReach(t *testing.T) {
	p := withSecrets(t)
	for _, name := range []string{
		".env", ".env.local", "deploy/.ENV", "keys/server.key", "id_rsa", ".ssh/config", "sub/.git/config", "data/continuo.db", "data/continuo.db-wal",
		"data/continuo.db.objects/conv_1/out_1", "plain.txt", "elsewhere/continuo.db", "elsewhere/continuo.db.objects/conv_1/out_1", "outputs/out_1", "copy.bin",
	} {
		p.fails(p.read(path("@project/"+name)), "tools.deny_files")
		if got := p.search(`{"pattern":"hunter2","path":"@project/` + name + `"}`).Content; strings.Contains(got, ": hunter2") || strings.Contains(got, "TOKEN") {
			t.Errorf("a search in %s: %s", name, got)
		}
	}
	for _, folder := range []string{".ssh", "data/continuo.db.objects", "data/continuo.db.objects/conv_1", "outputs"} {
		p.fails(p.list(path("@project/"+folder)), "tools.deny_files")
		p.fails(p.search(`{"pattern":".","path":"@project/`+folder+`"}`), "")
	}
	p.is(p.read(path("@project/main.go")), "open code")
	p.is(p.read(path("@project/.env.example")), "TOKEN=open")
	if got := p.search(`{"pattern":"hunter2|TOKEN","path":"@project/"}`).Content; strings.Contains(got, ": hunter2") || strings.Contains(got, "TOKEN=hunter2") || !strings.Contains(got, ".env.example:1: TOKEN=open") {
		t.Errorf("a search of everything: %s", got)
	}
	got := p.list(`{"path":"@project/","depth":20,"limit":1000}`).Content
	if strings.Contains(got, "out_1") || !strings.Contains(got, ".env  (closed by tools.deny_files)") || !strings.Contains(got, "main.go  9") {
		t.Errorf("a listing: %s", got)
	}
}

// TestAProjectInsideOfTheStoreIsClosed: the whole folder is one of the secret paths.
func TestAProjectInsideOfTheStoreIsClosed(t *testing.T) {
	p := newFixture(t, map[string]string{"out_1": "hunter2"})
	secrets, err := fs.NewSecrets(p.ProjectDir, nil, []string{filepath.Dir(p.ProjectDir)})
	if err != nil {
		t.Fatal(err)
	}
	p.Secrets = secrets
	p.fails(p.read(path("@project/out_1")), "tools.deny_files")
	p.fails(p.list(path("@project/")), "tools.deny_files")
}
