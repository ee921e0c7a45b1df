package main

import (
	"bytes"
	"context"
	goflag "flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/continuo-log/continuo/internal/secret"
)

var update = goflag.Bool("update", false, "rewrite what testdata/mistakes.txt expects")

// TestMistakes runs the wrong command lines of testdata/mistakes.txt. Each is refused, with the exit code and the message
// below it: one line that names what was given, in no words of a library.
func TestMistakes(t *testing.T) {
	file, err := filepath.Abs(filepath.Join("testdata", "mistakes.txt"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	t.Chdir(folder)
	for name, text := range mistakenFiles {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir("folder", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"s1", "taken"} {
		if code, said := refused(t, folder, "chat "+key+" -m hello"); code != 0 {
			t.Fatalf("chat %s: %d %s", key, code, said)
		}
	}
	var got strings.Builder
	for line := range strings.SplitSeq(string(want), "\n") {
		command, found := strings.CutPrefix(line, "$ continuo ")
		if !found {
			if line == "" || strings.HasPrefix(line, "#") {
				got.WriteString(line + "\n")
			}
			continue
		}
		code, said := refused(t, folder, command)
		if code == 0 {
			t.Errorf("continuo %s is not refused", command)
		}
		if strings.Count(said, "\n") != 1 || foreignWords.MatchString(said) {
			t.Errorf("continuo %s says\n%swant one line in plain words", command, said)
		}
		fmt.Fprintf(&got, "%s\n%d %s", line, code, said)
	}
	text := strings.TrimRight(got.String(), "\n") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // part of the repository
			t.Fatal(err)
		}
		return
	}
	wanted := strings.Split(string(want), "\n")
	for i, line := range strings.Split(text, "\n") {
		if i >= len(wanted) || line != wanted[i] {
			t.Fatalf("testdata/mistakes.txt, line %d:\n%s\nis now\n%s\n(go test -run TestMistakes -update)", i+1, strings.Join(wanted[min(i, len(wanted)):min(i+1, len(wanted))], ""), line)
		}
	}
}

// foreignWords are those of the libraries below, and of Go.
var foreignWords = regexp.MustCompile(`EOL|strconv|dial tcp|invalid syntax|but got|must be one of|\bexpected|%!|\[\]|<nil>|goroutine`)

var particularIDs = regexp.MustCompile(`(conv|turn|run)_[0-9a-f]{32}`)

// refused runs a command line in this process, and returns its exit code and what it reports.
func refused(t *testing.T, folder, line string) (code int, said string) {
	t.Helper()
	env := []string{"HOME=" + filepath.Join(folder, "home"), "CONTINUO_STORE_PATH=" + filepath.Join(folder, "s.db"), "PATH=" + folder}
	var out, errors bytes.Buffer
	c := &console{in: strings.NewReader(""), out: &out, err: &errors, secrets: secret.FromEnv(env)}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var args []string
	for _, word := range words.FindAllString(line, -1) {
		args = append(args, strings.ReplaceAll(word, `"`, ""))
	}
	err := run(ctx, c, args, env)
	report(c, err)
	return exitCode(err), strings.ReplaceAll(particularIDs.ReplaceAllString(errors.String(), "${1}_…"), folder, ".")
}

// words are those of a command line: with double quotes a word may have spaces, or be empty.
var words = regexp.MustCompile(`("[^"]*"|[^\s"])+`)

// mistakenFiles are the files of the wrong command lines.
var mistakenFiles = map[string]string{
	"empty.json": "", "broken.json": `{"messages": [`, "number.json": "42\n", "chat.json": `[{"role": "user", "content": "hi"}]`, "there.json": "x\n",
	"words.txt":    "first line\n-second\n3.x\nnever\n",
	"noise.bin":    "\x16\x00\xffnoise\n\x16more\n",
	"bad.yaml":     "model: main\nmodels:\n  main:\n    protocol: openai\n    model: x\n",
	"tabs.yaml":    "model: main\n\tmodels: x\n",
	"unknown.yaml": "contxt:\n  max_messages: 3\n",
	"key.yaml":     "model: main\nmodels:\n  main:\n    protocol: openai-chat\n    model: x\n    api_key: sk-123\n",
	"missing.yaml": "model: nope\n",
}
