package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What one platform lacks is found for that platform, and named with its place.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":        "module example.org/lamp\n\ngo 1.26\n",
		"main.go":       "package main\n\nimport \"example.org/lamp/switches\"\n\nfunc main() { switches.On(lamp) }\n",
		"lamp_linux.go": "package main\n\nconst lamp = 7\n",
		"lamp_amd64.go": "package main\n\nvar _ [1]int = [^uint(0) >> 63]int{}\n",
		"lamp_arm64.go": "package main\n\nimport \"syscall\"\n\nvar _ = syscall.Kill\n",
		"switches/s.go": "// Package switches is imported.\npackage switches\n\n// On switches on.\nfunc On(n int) { _ = n }\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for platform, want := range map[string]string{
		"linux/amd64":   "",
		"linux/arm64":   "",
		"darwin/amd64":  "main.go:5:27: undefined: lamp",
		"windows/arm64": "undefined: syscall.Kill",
		"linux/none":    "unknown architecture",
		"linux":         "is not OS/ARCHITECTURE",
	} {
		err := check(".", platform)
		if got := errText(err); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", platform, got, want)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
