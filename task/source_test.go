package task_test

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/task"
)

// logOf makes entries, whose letters say what they are: u a user's message, a an answer, c a call, r a result, h a
// hidden entry, and - an answer that says nothing.
func logOf(kinds string) []continuo.Entry {
	entries := make([]continuo.Entry, len(kinds))
	for i, kind := range kinds {
		e := continuo.Entry{Seq: int64(i + 1), CreatedAt: now.Add(time.Duration(i) * time.Second), Content: continuo.Text(fmt.Sprint("entry ", i+1)), Role: continuo.Assistant}
		switch kind {
		case 'u':
			e.Role = continuo.User
		case 'c':
			e.ToolCalls = []continuo.ToolCall{{ID: "c", Type: "function", Name: "look", Arguments: "{}"}}
		case 'r':
			e.Role, e.ToolCallID, e.ToolName = continuo.Tool, "c", "look"
		case 'h':
			e.Role, e.Hidden = continuo.System, true
		case '-':
			e.Content = continuo.Text("")
		}
		entries[i] = e
	}
	return entries
}

// backward gives entries of a range from its end on, and counts those that are taken.
func backward(entries []continuo.Entry, from, to int64, taken *int) iter.Seq2[continuo.Entry, error] {
	return func(yield func(continuo.Entry, error) bool) {
		for _, entry := range slices.Backward(entries[from-1 : to]) {
			if *taken++; !yield(entry, nil) {
				return
			}
		}
	}
}

// taskOf makes a task of a range of entries.
func taskOf(t *testing.T, entries []continuo.Entry, from, to int64, relevance *float64) (made task.Task, warnings []task.Warning, taken int) {
	t.Helper()
	asked := request(t, fmt.Sprintf(`{"conversation_id": "conv_1", "from": %d, "to": %d}`, from, to))
	asked.Relevance = relevance
	draft, _, err := task.Check(asked, now, task.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if err := draft.Read(backward(entries, from, to, &taken)); err != nil {
		t.Fatal(err)
	}
	if made, warnings, err = draft.Shape(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return made, warnings, taken
}

// A source says which entries its history is made of: read as a range they give the same history.
func TestASourceIsPinned(t *testing.T) {
	for name, test := range map[string]struct {
		kinds    string
		from, to int64
		first    int64 // of the entries that the history is made of
		messages int
		warning  string
	}{
		"all":                   {"uaua", 1, 4, 1, 4, ""},
		"a range":               {"uauaua", 3, 5, 3, 3, ""},
		"a group cut in two":    {"ucrrua", 3, 6, 3, 4, ""},
		"nothing but hidden":    {"hhhh", 1, 4, 1, 0, ""},
		"fifty":                 {strings.Repeat("ua", 25), 1, 50, 1, 50, ""},
		"fifty behind nothing":  {"hh-" + strings.Repeat("ua", 25), 1, 53, 1, 50, ""},
		"one more than fifty":   {strings.Repeat("ua", 25) + "u", 1, 51, 2, 50, "conversation_history has more than 50 messages in 51 entries, truncating to most recent 50"},
		"groups count once":     {strings.Repeat("ucrhra", 100), 1, 600, 500, 50, "conversation_history has more than 50 messages in 600 entries, truncating to most recent 50"},
		"the end of the range":  {strings.Repeat("ua", 500), 101, 900, 851, 50, "conversation_history has more than 50 messages in 800 entries, truncating to most recent 50"},
		"before that a stretch": {"u" + strings.Repeat("h", 200) + strings.Repeat("ua", 25), 1, 251, 202, 50, "conversation_history has more than 50 messages in 251 entries, truncating to most recent 50"},
		"too far back":          {"ua" + strings.Repeat("h", 4999) + "u", 1, 5002, 3, 1, "conversation_history has 5002 entries, of which only the newest 5000 were looked at, not entries 1 to 2"},
	} {
		entries := logOf(test.kinds)
		made, warnings, taken := taskOf(t, entries, test.from, test.to, nil)
		if want := (task.Source{ConversationID: "conv_1", From: test.first, To: test.to}); made.Source == nil || *made.Source != want {
			t.Errorf("%s: the source is %+v, want %+v", name, made.Source, want)
			continue
		}
		history := made.Context.ConversationHistory
		if have := lengthOf(history); have != test.messages {
			t.Errorf("%s: the history has %d messages, want %d", name, have, test.messages)
		}
		if test.warning == "" && len(warnings) > 0 || test.warning != "" && (len(warnings) != 1 || warnings[0].Message != test.warning || warnings[0].Severity != task.Medium) {
			t.Errorf("%s: the warnings are %+v", name, warnings)
		}
		if most := int(test.to-test.first) + 1 + 201; taken > most {
			t.Errorf("%s: %d entries were read", name, taken)
		}
		again, warnings, _ := taskOf(t, entries, made.Source.From, made.Source.To, nil)
		if len(warnings) > 0 || task.Prompt(again) != task.Prompt(made) {
			t.Errorf("%s: the pinned range gives another history: %+v\n%s\nnot\n%s", name, warnings, task.Prompt(again), task.Prompt(made))
		}
	}
}

func lengthOf(history *task.History) int {
	if history == nil {
		return 0
	}
	return history.TotalMessages
}

// With relevance the whole range is looked at, up to a bound, and what lies before it is named.
func TestHowFarRelevanceLooks(t *testing.T) {
	cutoff := 0.9
	for count, want := range map[int][]string{
		5000: nil,
		9000: {"conversation_history has 9000 entries, of which only the newest 5000 were looked at, not entries 1 to 4000"},
	} {
		entries := logOf(strings.Repeat("u", count))
		at := count - 5000
		entries[at+7].Content = continuo.Text("This is a test.")
		made, warnings, taken := taskOf(t, entries, 1, int64(count), &cutoff)
		var calls []string
		for _, warning := range warnings {
			if warning.Severity == task.Medium {
				calls = append(calls, warning.Message)
			}
		}
		if !slices.Equal(calls, want) || taken != 5000 || made.Source.From != int64(at+1) || made.Source.To != int64(count) {
			t.Errorf("%d: %d entries were read, the source is %+v and the warnings %+v", count, taken, made.Source, warnings)
		}
		if !strings.Contains(task.Prompt(made), "This is a test.") {
			t.Errorf("%d: the message that matters is not found", count)
		}
	}
}

func TestAnEntryThatCannotBeRead(t *testing.T) {
	draft, _, err := task.Check(request(t, `{"conversation_id": "conv_1", "from": 1, "to": 2}`), now, task.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	gone := errors.New("gone")
	if err := draft.Read(func(yield func(continuo.Entry, error) bool) { yield(continuo.Entry{}, gone) }); !errors.Is(err, gone) {
		t.Errorf("reading ended with %v", err)
	}
}
