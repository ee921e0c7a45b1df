package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// dataFiles finds the recorded conversations: a few files of each form, or with CONTINUO_LONG all of them.
func dataFiles(t *testing.T) []string {
	t.Helper()
	folder := os.Getenv("CONTINUO_DATA")
	if folder == "" {
		folder = filepath.Join("..", "..", "..", "shared", "data")
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	pattern := "[elw]*-*.jsonl.gz" // edge-cases, legacy-and-api-bank, wire-openai
	if os.Getenv("CONTINUO_LONG") != "" {
		pattern = "*.jsonl.gz"
	}
	files, err := filepath.Glob(filepath.Join(folder, pattern))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skipf("SKIPPED: there are no recorded conversations in %s: set CONTINUO_DATA to their folder", folder)
	}
	return files
}

// importFiles imports files and returns the report's sums.
func importFiles(t *testing.T, dir string, files ...string) (total fileReport) {
	t.Helper()
	p := start(t, dir, nil, append([]string{"import", "--json"}, files...)...)
	if code := p.end(); code != 0 {
		t.Fatalf("ended with %d:\n%s", code, p.stderr)
	}
	var report importReport
	if err := json.Unmarshal([]byte(p.stdout.String()), &report); err != nil {
		t.Fatal(err)
	}
	return report.total()
}

// TestImportData imports recorded conversations, imports them again, and moves them to another store.
func TestImportData(t *testing.T) {
	files := dataFiles(t)
	dir, other := t.TempDir(), t.TempDir()
	first := importFiles(t, dir, files...)
	if first.New == 0 || first.Existing != 0 || first.Messages == 0 || len(first.Repairs) == 0 {
		t.Fatalf("the first import added %d conversations with %d messages, %d were there, %d repairs", first.New, first.Messages, first.Existing, len(first.Repairs))
	}
	if second := importFiles(t, dir, files...); second.New != 0 || second.Existing != first.New {
		t.Errorf("a second import added %d and found %d, want 0 and %d", second.New, second.Existing, first.New)
	}
	backup := filepath.Join(dir, "all.jsonl.gz")
	if p := start(t, dir, nil, "export", "--all", "-o", backup); p.end() != 0 {
		t.Fatalf("export:\n%s", p.stderr)
	}
	if moved := importFiles(t, other, backup); moved.New != first.New || moved.Messages != first.Messages || len(moved.Repairs) != 0 {
		t.Errorf("the other store got %d conversations with %d messages after %d repairs, want %d with %d after 0",
			moved.New, moved.Messages, len(moved.Repairs), first.New, first.Messages)
	}
}
