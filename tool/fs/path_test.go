package fs

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/tool"
)

func TestPathsAreCheckedAsText(t *testing.T) {
	for path, want := range map[string]string{
		"@project":            "@project ",
		"@project/":           "@project ",
		"@project/a/b.go":     "@project a/b.go",
		"@project/./a/./":     "@project a",
		"@project/%2e%2e/a":   "@project %2e%2e/a",
		"@project/..a/b..":    "@project ..a/b..",
		"@project/żółć a.txt": "@project żółć a.txt",
		"@state/logs":         "@state logs",
	} {
		alias, name, err := splitPath(path)
		if got := alias + " " + name; err != nil || got != want {
			t.Errorf("%q is %q, %v; want %q", path, got, err, want)
		}
	}
	for path, want := range map[string]string{
		"":                                       "empty",
		"/etc/passwd":                            "begins with neither",
		"etc":                                    "begins with neither",
		"@PROJECT/a":                             "begins with neither",
		"@projects/a":                            "begins with neither",
		" @project/a":                            "begins with neither",
		"../@project/a":                          "begins with neither",
		"file:///etc/passwd":                     "begins with neither",
		"C:/x":                                   "begins with neither",
		"@project/..":                            `".."`,
		"@project/a/../b":                        `".."`,
		"@project/a/../../b":                     `".."`,
		"@project/.. /b":                         `".. "`,
		"@project/.../b":                         `"..."`,
		"@project/ /b":                           `" "`,
		"@project//etc/passwd":                   "empty name",
		"@project/a//b":                          "empty name",
		`@project\a`:                             "backslash",
		`@project/..\a`:                          "backslash",
		"@project/C:/x":                          "drive C:",
		"@project/a\x00.go":                      "control character",
		"@project/a\nb":                          "control character",
		"@project/\u0085":                        "control character",
		"@project/\xff":                          "UTF-8",
		"@project/\xc0\xae\xc0\xae/x":            "UTF-8", // ".." in overlong form
		"@project/\xe0\x80\xae":                  "UTF-8",
		"@project/" + strings.Repeat("a/", 2048): "4105 bytes",
	} {
		if alias, name, err := splitPath(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %q %q, %v; want an error with %q", path, alias, name, err, want)
		}
	}
}

// FuzzPath tries to get at a file beside the project's folder.
func FuzzPath(f *testing.F) {
	outside := f.TempDir()
	inside := filepath.Join(outside, "project")
	const secret = "the secret beside the folder"
	for name, text := range map[string]string{"secret": secret, "project/a": "inside", "project/b/c": "inside"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(outside, name)), 0o755); err != nil {
			f.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(outside, name), []byte(text), 0o600); err != nil {
			f.Fatal(err)
		}
	}
	if err := os.Symlink("../secret", filepath.Join(inside, "link")); err != nil {
		f.Logf("no links on this machine: %v", err)
	}
	for _, path := range []string{"@project/a", "@project/b/c", "@project/link", "@project/../secret", "@project/b/../../secret", filepath.Join(outside, "secret"), "@project/" + outside + "/secret", `@project/..\secret`, "@project/%2e%2e/secret", "@project/b/..%2f..%2fsecret", "@project/.. /secret", "@project/\x00", "@project/link/", "@project/b/./../../secret"} {
		f.Add(path)
	}
	roots := Roots{ProjectDir: inside}
	f.Fuzz(func(t *testing.T, path string) {
		if strings.HasPrefix(path, aliasState) {
			return // needs a log
		}
		opened, name, err := roots.open(context.Background(), tool.Call{}, path)
		if err != nil {
			return
		}
		defer opened.Close()
		text, err := io.ReadAll(io.NewSectionReader(opened, 0, opened.size))
		if err != nil || string(text) != "inside" {
			t.Fatalf("%q opened %q: %q, %v", path, name, text, err)
		}
	})
}
