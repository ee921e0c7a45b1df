package continuo_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/storetest"
)

func TestNewLogRefusesANilStore(t *testing.T) {
	defer func() {
		if message := fmt.Sprint(recover()); !strings.Contains(message, "NewLog needs a Store") {
			t.Errorf("it panicked with %q", message)
		}
	}()
	continuo.NewLog(nil, continuo.LogOptions{})
}

// The value that Create returned has LastSeq 0 for ever.
func TestEntriesAreThoseOfTheStoreNow(t *testing.T) {
	log := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{})
	created, err := log.Create(t.Context(), continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(t.Context(), created.ID, []continuo.Entry{user("one"), assistant("two"), user("three")}, continuo.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		r    continuo.Range
		want []string
	}{
		"all":       {continuo.Range{}, []string{"one", "two", "three"}},
		"from":      {continuo.Range{From: 2}, []string{"two", "three"}},
		"backward":  {continuo.Range{Backward: true}, []string{"three", "two", "one"}},
		"to":        {continuo.Range{To: 1}, []string{"one"}},
		"beyond":    {continuo.Range{From: 3, To: 9}, []string{"three"}},
		"none left": {continuo.Range{From: 4}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for entry, err := range log.Entries(t.Context(), created.ID, c.r) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, entry.Content.String())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	for _, err := range log.Entries(t.Context(), "conv_unknown", continuo.Range{}) {
		if !errors.Is(err, continuo.ErrNotFound) {
			t.Errorf("unknown conversation: %v", err)
		}
	}
}

func TestACallWithoutATypeIsOfAFunction(t *testing.T) {
	call := continuo.ToolCall{ID: "call_1", Name: "search", Arguments: "{}"}
	asking := continuo.Entry{Role: continuo.Assistant, ToolCalls: []continuo.ToolCall{call}}
	want := []continuo.ToolCall{continuo.FunctionCall("call_1", "search", "{}")}
	log := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{})
	imported, err := log.Import(t.Context(), continuo.Conversation{}, []continuo.Entry{user("find it"), asking, result("call_1", "found")})
	if err != nil {
		t.Fatal(err)
	}
	options := continuo.AppendOptions{Key: "once"}
	stored, err := log.Append(t.Context(), imported.ID, []continuo.Entry{user("once more"), asking}, options)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(stored[1].ToolCalls, want, sameCall) {
		t.Errorf("appended %+v, want %+v", stored[1].ToolCalls, want)
	}
	for entry, err := range log.Entries(t.Context(), imported.ID, continuo.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if entry.HasCalls() && !slices.EqualFunc(entry.ToolCalls, want, sameCall) {
			t.Errorf("entry %d has %+v, want %+v", entry.Seq, entry.ToolCalls, want)
		}
	}
	if asking.ToolCalls[0].Type != "" {
		t.Error("the caller's own entry was changed")
	}
	if again, err := log.Append(t.Context(), imported.ID, []continuo.Entry{user("once more"), asking}, options); err != nil || again[0].Seq != stored[0].Seq {
		t.Errorf("a retry with the same key gave %+v, %v", again, err)
	}
}

func sameCall(a, b continuo.ToolCall) bool {
	return string(rawOf(a)) == string(rawOf(b)) && a.Type == b.Type
}

func rawOf(call continuo.ToolCall) []byte {
	raw, err := json.Marshal(call)
	if err != nil {
		panic(err)
	}
	return raw
}

func TestMeasureWithoutACounterEstimates(t *testing.T) {
	got := continuo.Measure(continuo.Text("twelve chars"), nil, nil)
	if want := (continuo.Size{Chars: 12, Tokens: 3}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if name := (continuo.RoughCounter{}).Name(); name != "chars/4" {
		t.Errorf("the name of the rough counter is %q: entries were counted under chars/4", name)
	}
}

func TestARuleErrorNamesTheEntryByItsIndex(t *testing.T) {
	log := continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{})
	conversation, err := log.Create(t.Context(), continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = log.Append(t.Context(), conversation.ID, []continuo.Entry{user("one"), user("two"), {Role: "developer"}}, continuo.AppendOptions{})
	if err == nil || !strings.HasPrefix(err.Error(), "entries[2] breaks the rule unknown_role") || !strings.Contains(err.Error(), "system entry") {
		t.Errorf("got %v", err)
	}
}
