package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReadme runs the commands of the README, in an empty folder with an
// empty home: the curl lines against a server that was started as they say, the others unchanged.
func TestReadme(t *testing.T) {
	needShell(t)
	dir := t.TempDir()
	_, address := startServer(t, dir)
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(os.Args[0], filepath.Join(bin, "continuo")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "my-chats.jsonl"), `{"id": "old", "messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]}`+"\n")
	var printed []string
	for _, command := range commands(t, filepath.Join("..", "..", "README.md")) {
		if !strings.HasPrefix(command, "curl ") && !strings.HasPrefix(command, "continuo ") {
			continue // go run, go install and make: this test runs after them
		}
		command = strings.ReplaceAll(command, "http://127.0.0.1:8787", address)
		cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
		cmd.Dir = dir
		cmd.Env = []string{"HOME=" + dir, "PATH=" + bin + ":" + os.Getenv("PATH"), "CONTINUO_STORE_PATH=" + filepath.Join(dir, "continuo.db")}
		cmd.Stdin = strings.NewReader("hello\n")
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(string(out), `"error"`) {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
		printed = append(printed, string(out))
	}
	if len(printed) < 6 || !strings.Contains(printed[1], "My name is Ada") {
		t.Errorf("%d commands were found, and the second said %q", len(printed), printed[1])
	}
}

// needShell skips a test of a page's commands where they cannot be run.
func needShell(t *testing.T) {
	t.Helper()
	for _, tool := range []string{"sh", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: the commands of the page need %s, which is not installed", tool)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// commands lists the lines of a page's shell blocks, comments left out.
func commands(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(strings.ReplaceAll(block[1], "\\\n", " ")) {
			if line, _, _ = strings.Cut(strings.TrimSpace(line), "  #"); line != "" {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
	}
	return lines
}
