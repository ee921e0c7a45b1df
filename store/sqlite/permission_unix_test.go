//go:build unix

package sqlite

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

func TestWhatCannotBeWrittenIsReadOnly(t *testing.T) {
	if os.Geteuid() == 0 {
		runUnprivileged(t)
		return
	}
	for name, lock := range map[string]func(t *testing.T, path string){
		"the file":            func(t *testing.T, path string) { chmod(t, path, 0o400) },
		"an unreadable file":  func(t *testing.T, path string) { chmod(t, path, 0) },
		"the folder":          func(t *testing.T, path string) { chmod(t, filepath.Dir(path), 0o500) },
		"the file and folder": func(t *testing.T, path string) { chmod(t, path, 0o400); chmod(t, filepath.Dir(path), 0o500) },
		"a folder without it": func(t *testing.T, path string) { remove(t, path); chmod(t, filepath.Dir(path), 0o500) },
		"a folder to be made": func(t *testing.T, path string) {
			remove(t, path)
			remove(t, filepath.Dir(path))
			chmod(t, filepath.Dir(filepath.Dir(path)), 0o500)
		},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, "data", "a.db")
			store := openAt(t, path, Options{})
			newConversation(t, store, "a", 1)
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Chmod(folder, 0o700); _ = os.Chmod(filepath.Dir(path), 0o700) })
			lock(t, path)
			store, err := Open(t.Context(), path, Options{})
			if err == nil {
				t.Error("it was opened")
				_ = store.Close()
			} else if !errors.Is(err, continuo.ErrReadOnly) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want ErrReadOnly with the path", err)
			}
		})
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// runUnprivileged runs the calling test in another process without root's rights: nothing is read-only for root.
func runUnprivileged(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "continuo-nobody-*") // t.TempDir is below a folder that nobody may not enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	chmod(t, folder, 0o777)
	program := filepath.Join(folder, "test")
	if err := os.WriteFile(program, binary, 0o755); err != nil {
		t.Fatal(err)
	}
	chmod(t, program, 0o755)
	const nobody = 65534
	command := exec.CommandContext(t.Context(), program, "-test.v", "-test.run=^"+t.Name()+"$")
	command.Dir = folder
	command.Env = append(os.Environ(), "TMPDIR="+folder, "HOME="+folder)
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	output, err := command.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
		t.Skipf("SKIPPED: as root nothing is read-only, and a process of user %d cannot be started: %v", nobody, err)
	}
	if err != nil || !strings.Contains(string(output), "--- PASS: "+t.Name()+"/") {
		t.Errorf("as user %d: %v\n%s", nobody, err, output)
	}
}
