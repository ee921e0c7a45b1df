package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// docs/embedding.md shows the programs whole; they are compiled and run here and in internal/e2e.
func TestThePageShowsThePrograms(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "embedding.md"))
	if err != nil {
		t.Fatal(err)
	}
	for fence, file := range map[string]string{
		"go": "examples/embedding/main.go", "ts": "clients/typescript/examples/chat.ts", "python": "clients/python/examples/chat.py",
	} {
		program, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		if want := "```" + fence + "\n" + string(program) + "```\n"; !strings.Contains(string(page), want) {
			t.Errorf("docs/embedding.md does not show %s as it is", file)
		}
	}
}

func Example() {
	folder, err := os.MkdirTemp("", "embedding")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	if err := run(context.Background(), filepath.Join(folder, "shop.db"), ""); err != nil {
		panic(err)
	}
	// Output: tool: 7 of lamp
}
