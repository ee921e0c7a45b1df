package task_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
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

// refusedEdgeCases are the shared edge cases that are refused as a caller's list, by the message at fault and its role;
// all others are accepted.
var refusedEdgeCases = map[string]string{
	"answer-of-an-earlier-group-b":      "2 tool",
	"arguments-as-object-b":             "2 tool",
	"arguments-cut-off-a":               "2 tool",
	"context-injected-inside-a-group-b": "3 tool",
	"control-characters-a":              "2 tool",
	"cut-in-the-middle-by-compaction-b": "0 system",
	"developer-and-late-system-a":       "0 developer",
	"duplicate-answer-retry-a":          "0 system",
	"empty-call-id-b":                   "2 tool",
	"empty-tool-content-a":              "2 tool",
	"fake-structure-in-text-a":          "4 tool",
	"handoff-answered-a":                "2 tool",
	"huge-arguments-a":                  "2 tool",
	"interrupted-call-b":                "0 system",
	"large-json-one-line-a":             "2 tool",
	"large-log-output-b":                "2 tool",
	"late-answer-a":                     "4 tool",
	"lone-surrogate-a":                  "2 tool",
	"long-compound-ids-a":               "2 tool",
	"missing-call-id-field-b":           "2 tool",
	"no-spaces-blob-b":                  "2 tool",
	"null-tool-content-a":               "2 tool",
	"open-end-b":                        "0 system",
	"orphan-function-a":                 "1 function",
	"orphan-tool-after-trim-a":          "0 system",
	"partly-answered-parallel-b":        "0 system",
	"reused-ids-b":                      "2 tool",
	"same-id-twice-in-one-message-a":    "2 tool",
	"split-assistant-b":                 "3 tool",
	"tool-error-with-partial-output-a":  "2 tool",
	"unknown-call-id-b":                 "2 tool",
	"unknown-role-b":                    "1 model",
	"wide-parallel-group-a":             "2 tool",
}

// The shared edge cases as a caller's lists: each is refused with the type, the field, the index and the message of its
// first message of another role, or becomes a task whose prompt holds; more than fifty messages are warned of.
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
	cases, refused := 0, 0
	var all []json.RawMessage
	for lines.Scan() {
		var conversation struct {
			ID       string
			Messages []json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &conversation); err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(conversation.ID, "edge/")
		cases++
		if refusedEdgeCases[name] != "" {
			refused++
		}
		t.Run(name, func(t *testing.T) {
			all = append(all, asACallersList(t, conversation.Messages, refusedEdgeCases[name])...)
		})
	}
	if cases != 42 || refused != len(refusedEdgeCases) || lines.Err() != nil {
		t.Errorf("%d cases, %d of them refused, %v", cases, refused, lines.Err())
	}
	made, warnings := validated(t, all)
	if want := fmt.Sprintf("conversation_history has %d messages, truncating to most recent 50", len(all)); len(warnings) != 1 || warnings[0].Severity != task.Medium || warnings[0].Message != want {
		t.Errorf("the warnings are %+v, want %q", warnings, want)
	}
	readsBack(t, *made)
}

// asACallersList checks what becomes of a list whose first fault is "INDEX ROLE", "" for none. It returns the messages
// that are left when those of other roles have gone, each refused in its turn.
func asACallersList(t *testing.T, messages []json.RawMessage, fault string) []json.RawMessage {
	t.Helper()
	for first := true; ; first = false {
		made, warnings, err := task.Validate(request(t, messages), now, task.Limits{})
		if err == nil {
			if first && fault != "" || len(warnings) > 0 || len(made.Context.ConversationHistory.Messages) != len(messages) {
				t.Errorf("accepted with %+v; want it refused for message %q", warnings, fault)
			}
			readsBack(t, *made)
			return messages
		}
		var refused *task.ValidationError
		if !errors.As(err, &refused) || refused.Index < 0 || refused.Index >= len(messages) {
			t.Fatalf("refused with %v", err)
		}
		role := roleOf(t, messages[refused.Index])
		if first && fault != fmt.Sprint(refused.Index, " ", role) {
			t.Errorf("refused for message %d of the %s, want %q", refused.Index, role, fault)
		}
		want := task.ValidationError{
			Type: task.InvalidValue, Field: fmt.Sprintf("conversation_history[%d].role", refused.Index), Index: refused.Index,
			Message: fmt.Sprintf("Message at index %d has invalid role '%s', must be user|assistant|orchestrator", refused.Index, role),
		}
		if *refused != want || role == "user" || role == "assistant" {
			t.Errorf("refused with %+v, want %+v", *refused, want)
		}
		messages = slices.Delete(slices.Clone(messages), refused.Index, refused.Index+1)
	}
}

func roleOf(t *testing.T, message json.RawMessage) string {
	t.Helper()
	var fields struct{ Role string }
	if err := json.Unmarshal(message, &fields); err != nil {
		t.Fatal(err)
	}
	return fields.Role
}
