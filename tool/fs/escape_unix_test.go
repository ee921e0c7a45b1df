//go:build unix

package fs_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestLinksDoNotLeadOut has a secret beside the folder and every kind of link to it.
func TestLinksDoNotLeadOut(t *testing.T) {
	p := newFixture(t, map[string]string{"in/file.txt": "inside"})
	outside := filepath.Dir(p.ProjectDir)
	if err := os.WriteFile(filepath.Join(outside, "secret.txt"), []byte("the secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"relative": "../secret.txt", "absolute": filepath.Join(outside, "secret.txt"), "parent": "..", "root": "/",
		"chain": "chain2", "chain2": "in/chain3", "in/chain3": "../relative", "back": "../project/in/file.txt",
		"proc": "/proc/self/environ", "through": "in/../../secret.txt",
		"good": "in/file.txt", "goodfolder": "in", "loop": "loop", "loop1": "loop2", "loop2": "loop1", "self": ".", "dangling": "nothing",
	} {
		p.link(target, name)
	}
	for _, name := range []string{"relative", "absolute", "chain", "parent/secret.txt", "root/etc/passwd", "back", "proc", "through", "self/relative", "goodfolder/chain3"} {
		p.fails(p.read(path("@project/"+name)), "leads out of the project's folder through a link")
		p.fails(p.list(path("@project/"+name)), "leads out")
		p.fails(p.search(`{"pattern":".","path":"@project/`+name+`"}`), "leads out")
	}
	for _, name := range []string{"parent", "root"} {
		p.fails(p.list(path("@project/"+name)), "leads out")
		p.fails(p.search(`{"pattern":".","path":"@project/`+name+`"}`), "leads out")
	}
	for _, name := range []string{"loop", "loop1"} {
		p.fails(p.read(path("@project/"+name)), "error: fs.read")
	}
	p.fails(p.read(path("@project/dangling")), "no such file")
	for _, name := range []string{"good", "goodfolder/file.txt", "self/self/good"} {
		p.is(p.read(path("@project/"+name)), "inside")
	}
	p.is(p.list(path("@project/goodfolder/")), "chain3  (link)\nfile.txt  6")
	p.is(p.search(`{"pattern":"secret|inside"}`), "@project/in/file.txt:1: inside") // links are not followed
	if got := p.list(`{"path":"@project/","depth":20}`).Content; strings.Contains(got, "passwd") || strings.Count(got, "\n") != 18 {
		t.Errorf("a listing followed links:\n%s", got)
	}
}

// TestOnlyRegularFilesAreOpened would hang where a pipe is opened like a file.
func TestOnlyRegularFilesAreOpened(t *testing.T) {
	p := newFixture(t, map[string]string{"a": "x"})
	if err := syscall.Mkfifo(filepath.Join(p.ProjectDir, "pipe"), 0o600); err != nil {
		t.Skipf("SKIPPED: no named pipes on this machine: %v", err)
	}
	p.link("pipe", "link")
	p.fails(p.read(path("@project/pipe")), "this is a named pipe; only regular files")
	p.fails(p.read(path("@project/link")), "this is a named pipe")
	p.fails(p.search(`{"pattern":"x","path":"@project/pipe"}`), "a named pipe")
	p.is(p.list(path("@project/")), "a  1\nlink  (link)\npipe  (a named pipe)")
	p.is(p.search(`{"pattern":"x"}`), "@project/a:1: x")
	p.ProjectDir = "/dev"
	p.fails(p.read(path("@project/null")), "this is a device")
	p.fails(p.read(path("@project/zero")), "this is a device")
	p.ProjectDir = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(p.ProjectDir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.fails(p.read(path("@project/x")), "folder cannot be opened")
}

func TestNamesAreTakenAsTheyAre(t *testing.T) {
	p := newFixture(t, map[string]string{"a": "plain", "a ": "space", "a.": "dot", "%2e%2e": "percent", "~": "tilde", "$HOME": "dollar"})
	for name, want := range map[string]string{"a": "plain", "a ": "space", "a.": "dot", "%2e%2e": "percent", "~": "tilde", "$HOME": "dollar"} {
		p.is(p.read(path("@project/"+name)), want)
	}
	p.fails(p.read(path("@project/%61")), "no such file")
	p.fails(p.read(path("@project/"+strings.Repeat("x", 300))), "name too long")
	p.fails(p.read(path("@project/"+strings.Repeat("y/", 2000))), "no such file")
	p.fails(p.read(`{"path":"@project/a\u0000"}`), "control character")
	p.fails(p.read("{\"path\":\"@project/\xc0\xae\xc0\xae/secret\"}"), "no such file") // JSON replaces what is no UTF-8
}

func TestWhatMayNotBeReadIsSaid(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("SKIPPED: the user root may read everything")
	}
	p := newFixture(t, map[string]string{"shut/x": "x", "a": "x", "mine": "x"})
	for _, name := range []string{"shut", "mine"} {
		if err := os.Chmod(filepath.Join(p.ProjectDir, name), 0); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(p.ProjectDir, "shut"), 0o700) })
	p.fails(p.read(path("@project/mine")), "permission denied")
	p.is(p.list(`{"path":"@project/","depth":2}`), "a  1\nmine  1\nshut/\nshut/  cannot be opened: permission denied")
	p.is(p.search(`{"pattern":"x"}`), "@project/a:1: x\n[2 files or folders could not be read]")
}

func TestListNamesWhatNoPathCanHold(t *testing.T) {
	p := newFixture(t, nil)
	p.write("a\n[b]", "x")
	p.write(`c\d`, "x")
	p.is(p.list(path("@project/")), `"a\n[b]" (a name that no path can hold)  1`+"\n"+`"c\\d" (a name that no path can hold)  1`)
}

func TestSearchDoesNotForgeLines(t *testing.T) {
	p := newFixture(t, nil)
	p.write("a\nb", "x\x1b[2J")
	p.is(p.search(`{"pattern":"x"}`), `"@project/a\nb":1: x`+"\uFFFD[2J")
}
