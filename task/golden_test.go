package task_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/task"
)

var update = flag.Bool("update", false, "rewrite the expected sections of testdata/*.txtar")

// now is when every request of these tests comes in.
var now = time.Date(2025, 10, 29, 13, 30, 0, 0, time.UTC)

// Each file of testdata holds a request and what becomes of it: the error, or the warnings, the task as it is
// stored and its prompt.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in testdata: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			have := &txtar.Archive{Comment: archive.Comment}
			have.Files = append(archive.Files[:1:1], goldenSections(t, archive.Files[0].Data)...)
			formatted, want := txtar.Format(have), txtar.Format(archive)
			if *update {
				if err := os.WriteFile(file, formatted, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if !bytes.Equal(formatted, want) {
				t.Errorf("got:\n%s\nwant (rewrite with -update):\n%s", formatted, want)
			}
		})
	}
}

func goldenSections(t *testing.T, request []byte) []txtar.File {
	t.Helper()
	parsed, err := task.Parse(request, task.Limits{})
	var made *task.Task
	var warnings []task.Warning
	if err == nil {
		made, warnings, err = task.Validate(parsed, now, task.Limits{})
	}
	if err != nil {
		var refused *task.ValidationError
		if !errors.As(err, &refused) {
			t.Fatalf("%v is no ValidationError", err)
		}
		return []txtar.File{{Name: "error.json", Data: indented(t, refused)}}
	}
	sections := []txtar.File{{Name: "task.json", Data: indented(t, made)}, {Name: "prompt.txt", Data: []byte(task.Prompt(*made))}}
	if len(warnings) > 0 {
		sections = append([]txtar.File{{Name: "warnings.json", Data: indented(t, warnings)}}, sections...)
	}
	return sections
}

func indented(t *testing.T, v any) []byte {
	t.Helper()
	data, err := rawjson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", "  "); err != nil {
		t.Fatal(err)
	}
	out.WriteByte('\n')
	return out.Bytes()
}
