package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var anyBlock = regexp.MustCompile("(?s)```([a-z]*)\n(.*?)```")

// TestTutorial follows docs/tutorial.md in an empty folder with an empty home: it writes the files that the page shows, runs its
// commands, those of curl against a server that it starts, and finds each line that they print there. A … on the page stands for anything.
func TestTutorial(t *testing.T) {
	needShell(t)
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "tutorial.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(os.Args[0], filepath.Join(bin, "continuo")); err != nil {
		t.Fatal(err)
	}
	ran, address := 0, ""
	for _, block := range anyBlock.FindAllStringSubmatch(string(page), -1) {
		switch language, text := block[1], block[2]; {
		case language == "json":
			write(t, filepath.Join(dir, "garden.json"), text)
		case language == "yaml":
			path := filepath.Join(dir, "continuo.yaml")
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			write(t, path, string(before)+text)
		case strings.HasPrefix(text, "$ "):
			for command := range strings.SplitSeq("\n"+text, "\n$ ") {
				line, printed, _ := strings.Cut(command, "\n")
				if line == "" {
					continue
				}
				if line == "continuo serve &" {
					_, address = startServer(t, dir)
					continue
				}
				ran++
				cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(line, "http://127.0.0.1:8787", address))
				cmd.Dir = dir
				cmd.Env = []string{"HOME=" + dir, "PATH=" + bin + ":" + os.Getenv("PATH"), "CONTINUO_STORE_PATH=" + filepath.Join(dir, "continuo.db")}
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Errorf("%s: %v\n%s", line, err, out)
				}
				wantLines(t, line, string(out), printed)
			}
		}
	}
	if ran < 10 {
		t.Errorf("only %d commands were found", ran)
	}
}

// wantLines checks that an output has the lines of the page, in their order.
func wantLines(t *testing.T, command, output, page string) {
	t.Helper()
	var pattern strings.Builder
	pattern.WriteString("(?s)")
	for line := range strings.SplitSeq(strings.TrimSpace(page), "\n") {
		parts := strings.Split(line, "…")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		pattern.WriteString(".*?" + strings.Join(parts, ".*?"))
	}
	if !regexp.MustCompile(pattern.String()).MatchString(output) {
		t.Errorf("%s prints\n%s\nthe page says\n%s", command, output, page)
	}
}
