package task_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/interchange"
	"github.com/continuo-log/continuo/task"
)

// dataFiles finds files of the shared conversations, or skips the test.
func dataFiles(t testing.TB, pattern string) []string {
	t.Helper()
	folder := os.Getenv("CONTINUO_DATA")
	if folder == "" {
		folder = filepath.Join("..", "..", "shared", "data")
	}
	files, _ := filepath.Glob(filepath.Join(folder, pattern))
	if len(files) == 0 {
		t.Skipf("SKIPPED: no shared conversations in %s; set CONTINUO_DATA to the folder that holds them", folder)
	}
	return files
}

// manyEntries is about how many entries of a file are read: fewer under the race detector, all of them with
// CONTINUO_LONG=1.
func manyEntries() int {
	switch {
	case os.Getenv("CONTINUO_LONG") != "":
		return math.MaxInt
	case raceDetector:
		return 300
	}
	return 6000
}

// Every conversation of the log can be handed off: each message of it reads in the prompt as it was shaped, and
// nothing else does.
func TestSharedConversationsAreHandedOff(t *testing.T) {
	for _, file := range dataFiles(t, "*.jsonl.gz") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			packed, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			conversations, entries := 0, 0
			for document, err := range interchange.Read(file, bytes.NewReader(packed), interchange.Options{}) {
				if err != nil {
					continue // refused by the import
				}
				conversations, entries = conversations+1, entries+len(document.Entries)
				handOff(t, document.Entries)
				if entries > manyEntries() {
					break
				}
			}
			t.Logf("%d conversations, %d entries", conversations, entries)
			if conversations == 0 {
				t.Error("no conversation was read")
			}
		})
	}
}

func handOff(t *testing.T, entries []continuo.Entry) {
	t.Helper()
	messages := task.FromEntries(entries)
	for _, compression := range []task.Compression{task.Truncate, task.Semantic} {
		draft, _, err := task.Check(task.Request{Description: "Go on", Compression: compression}, now, task.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		draft.Messages = messages
		made, _, err := draft.Shape(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		readsBack(t, made)
		if history := made.Context.ConversationHistory; history != nil {
			checkLengths(t, history)
		} else if len(messages) > 0 {
			t.Error("messages became no history")
		}
	}
}

func checkLengths(t *testing.T, history *task.History) {
	t.Helper()
	for _, message := range history.Messages {
		chars, most := len([]rune(message.Content)), 150+len(" ... (truncated)")
		if message.Role == task.User {
			most = 8000
		}
		if chars > most || message.Role != task.User && message.Role != task.Assistant {
			t.Errorf("a message of the %s has %d characters", message.Role, chars)
		}
	}
}

// The messages of the shared edge cases as a caller's list: those with other roles are refused by their index, all
// others become a task whose prompt holds.
func TestSharedEdgeCasesAsACallersList(t *testing.T) {
	packed, err := os.Open(dataFiles(t, "edge-cases.jsonl.gz")[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = packed.Close() }()
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(unpacked)
	lines.Buffer(nil, 16<<20)
	cases := 0
	for lines.Scan() {
		var conversation struct {
			ID       string
			Messages []json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &conversation); err != nil {
			t.Fatal(err)
		}
		cases++
		t.Run(strings.TrimPrefix(conversation.ID, "edge/"), func(t *testing.T) { asACallersList(t, conversation.Messages) })
	}
	if cases < 40 || lines.Err() != nil {
		t.Errorf("only %d cases, %v", cases, lines.Err())
	}
}

func asACallersList(t *testing.T, messages []json.RawMessage) {
	t.Helper()
	var accepted []json.RawMessage
	for _, raw := range messages {
		_, _, err := task.Validate(request(t, []json.RawMessage{raw}), now, task.Limits{})
		var fields map[string]any
		_ = json.Unmarshal(raw, &fields)
		_, hasContent := fields["content"]
		good := hasContent && (fields["role"] == "user" || fields["role"] == "assistant")
		if good != (err == nil) {
			t.Errorf("%.100s: %v", raw, err)
		}
		if err == nil {
			accepted = append(accepted, raw)
		}
	}
	made, _ := validated(t, accepted)
	readsBack(t, *made)
}
