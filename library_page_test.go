package continuo_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The Go on the pages is part of examples, which are compiled and run.
func TestGoCodeOnThePagesEqualsTheExamples(t *testing.T) {
	var examples strings.Builder
	for _, folders := range []string{"", "*", "*/*"} {
		files, err := filepath.Glob(filepath.Join(filepath.FromSlash(folders), "example_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no examples in %q: %v", folders, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			examples.Write(text)
		}
	}
	known := withoutIndent(examples.String())
	for page, least := range map[string]int{"README.md": 1, "docs/library.md": 5} {
		text, err := os.ReadFile(filepath.FromSlash(page))
		if err != nil {
			t.Fatal(err)
		}
		blocks := strings.Split(string(text), "```go\n")[1:]
		if len(blocks) < least {
			t.Errorf("%s has %d pieces of Go", page, len(blocks))
		}
		for _, block := range blocks {
			block, _, _ = strings.Cut(block, "```")
			if !strings.Contains(known, withoutIndent(block)) {
				t.Errorf("%s shows what no example has:\n%s", page, block)
			}
		}
	}
}

func withoutIndent(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimLeft(lines[i], "\t")
	}
	return strings.Join(lines, "\n")
}
