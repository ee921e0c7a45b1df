package interchange

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

// dataFolder is where the shared conversations are.
func dataFolder(t testing.TB) string {
	t.Helper()
	folder := os.Getenv("CONTINUO_DATA")
	if folder == "" {
		folder = filepath.Join("..", "..", "shared", "data")
	}
	if _, err := os.Stat(folder); err != nil {
		t.Skipf("SKIPPED: there are no shared conversations at %s: set CONTINUO_DATA to their folder", folder)
	}
	return folder
}

func dataFiles(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dataFolder(t), "*.jsonl.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations in %s (%v)", dataFolder(t), err)
	}
	return files
}

// lines reads a gzip-packed file by lines of any length.
func lines(t testing.TB, path string, each func(line []byte)) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(unpacked)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			each(line)
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// decoded reads JSON so that numbers keep their spelling.
func decoded(t failer, raw []byte) any {
	t.Helper()
	var value any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("not JSON: %v: %.200s", err, raw)
	}
	return value
}

// exported writes a conversation of a log.
func exported(t failer, log *continuo.Log, conversation continuo.Conversation, format string) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := Export(context.Background(), &out, format, log, conversation); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// conversations reads a shared file and hands over each document with its line. Under the race detector
// it stops after the conversation with which dataBytes are reached.
func conversations(t *testing.T, path string, each func(document Document, line []byte)) {
	t.Helper()
	var sources [][]byte
	size := 0
	lines(t, path, func(line []byte) {
		if size < dataBytes {
			sources = append(sources, line)
		}
		size += len(line)
	})
	n := 0
	for document, err := range Read(filepath.Base(path), bytes.NewReader(bytes.Join(sources, nil)), Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		each(document, sources[n])
		n++
	}
	if n != len(sources) {
		t.Errorf("%d of %d conversations of %s were read", n, len(sources), path)
	}
}

// TestSharedConversations is the fidelity law on every shared conversation: what was imported into a log is
// exported again value for value, repaired messages included. Every conversation passes the log's rules, and
// what was repaired is what the data themselves name as violations.
func TestSharedConversations(t *testing.T) {
	for _, path := range dataFiles(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			var documents, messages, entries int
			rules := map[continuo.Rule]int{}
			conversations(t, path, func(document Document, line []byte) {
				log, conversation := imported(t, document)
				source := decoded(t, line)
				repairsAreViolations(t, document, line)
				sameMessages(t, document, decoded(t, exported(t, log, conversation, FormatSource)), source)
				messages += len(source.(map[string]any)["messages"].([]any))
				for _, repair := range document.Repairs {
					rules[repair.Rule]++
				}
				documents, entries = documents+1, entries+len(document.Entries)
			})
			t.Logf("%d conversations, %d messages, %d entries, repairs %v", documents, messages, entries, rules)
		})
	}
}

func sameMessages(t *testing.T, document Document, got, want any) {
	t.Helper()
	if reflect.DeepEqual(got, want) {
		return
	}
	gotObject, wantObject := got.(map[string]any), want.(map[string]any)
	for key := range wantObject {
		if key != "messages" && !reflect.DeepEqual(gotObject[key], wantObject[key]) {
			t.Errorf("%s: field %s differs", document.Source, key)
		}
	}
	gotList, wantList := gotObject["messages"].([]any), wantObject["messages"].([]any)
	if len(gotList) != len(wantList) {
		t.Fatalf("%s: %d messages became %d", document.Source, len(wantList), len(gotList))
	}
	for i := range wantList {
		if !reflect.DeepEqual(gotList[i], wantList[i]) {
			a, _ := json.Marshal(gotList[i])
			b, _ := json.Marshal(wantList[i])
			t.Errorf("%s: message %d:\n got %.600s\nwant %.600s", document.Source, i, a, b)
		}
	}
	t.FailNow()
}

// location is a message and what is wrong with it.
type location struct {
	index int
	rule  string
}

// acceptedCodes are violations that an API accepts and that a log can hold as they are.
var acceptedCodes = []string{
	"reused_call_id", "long_call_id", "bad_arguments_json", "bad_name", "blank_assistant",
	"consecutive_roles", "reused_use_id", "mid_system", "first_not_user", "empty_text",
}

// repairedOtherwise are conversations in which one repair undoes or adds another violation.
var repairedOtherwise = map[string]map[location]bool{
	"edge/context-injected-inside-a-group-b": {{3, "late_result"}: true},                                // was unanswered and orphan_tool
	"edge/missing-call-id-field-b":           {{2, "tool_missing_id"}: true},                            // was unanswered too
	"edge/same-id-twice-in-one-message-a":    {{1, "duplicate_call_id"}: true, {1, "unanswered"}: true}, // one result for two calls
}

// repairsAreViolations compares the repairs with the violations that the shared data name by themselves.
func repairsAreViolations(t *testing.T, document Document, line []byte) {
	t.Helper()
	id, want := violations(t, line)
	if other := repairedOtherwise[id]; other != nil {
		want = other
	}
	found := map[location]bool{}
	for _, repair := range document.Repairs {
		at := location{repair.Index, string(repair.Rule)}
		if want[at] || !expectedBesides(document, repair) {
			found[at] = true
		}
	}
	if !reflect.DeepEqual(found, want) {
		t.Errorf("%s %s: repairs %v, violations %v", document.Source, id, found, want)
	}
}

// expectedBesides reports repairs of what the source's own protocol allows: function calls without ids, a
// last one without a result, and results of Anthropic messages that stand one after the other.
func expectedBesides(document Document, repair Repair) bool {
	switch repair.Rule {
	case RuleLegacyFunctionCall:
		return true
	case RuleUnansweredAtEnd, continuo.RuleUnanswered:
		return document.Format == FormatOpenAILegacy
	case RuleLateResult:
		return document.Format == FormatAnthropic
	}
	return false
}

func violations(t *testing.T, line []byte) (id string, named map[location]bool) {
	t.Helper()
	var conversation struct {
		ID         string `json:"id"`
		Violations []struct {
			Index int    `json:"index"`
			Code  string `json:"code"`
		} `json:"violations"`
	}
	if err := json.Unmarshal(line, &conversation); err != nil {
		t.Fatal(err)
	}
	named = map[location]bool{}
	for _, v := range conversation.Violations {
		if !slices.Contains(acceptedCodes, v.Code) {
			named[location{v.Index, v.Code}] = true
		}
	}
	return conversation.ID, named
}
