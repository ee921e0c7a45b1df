package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/task"
)

// conversationWith creates a conversation with a number of user messages.
func conversationWith(t *testing.T, e *testEngine, messages int) continuo.Conversation {
	t.Helper()
	conversation, err := e.Log.Create(t.Context(), continuo.Conversation{ProjectID: "default"})
	if err != nil {
		t.Fatal(err)
	}
	appendMessages(t, e, conversation, messages)
	return conversation
}

func appendMessages(t *testing.T, e *testEngine, conversation continuo.Conversation, messages int) {
	t.Helper()
	for at := 0; at < messages; at += 100 {
		var entries []continuo.Entry
		for i := at; i < min(at+100, messages); i++ {
			entries = append(entries, continuo.Entry{Role: continuo.User, Content: continuo.Text(fmt.Sprintf("Message %d.", i+1))})
		}
		if _, err := e.Log.Append(t.Context(), conversation.ID, entries, continuo.AppendOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// A key names a conversation as its id does, and the task keeps the id.
func TestATaskNamesItsConversationByKey(t *testing.T) {
	e := newRunEngine(t, storetest.NewMemory(), &scriptedModel{answer: answerWell}, nil)
	conversation, err := e.Log.Create(t.Context(), continuo.Conversation{ProjectID: "default", Key: "legacy-9"})
	if err != nil {
		t.Fatal(err)
	}
	appendMessages(t, e, conversation, 3)
	for _, history := range []string{`"legacy-9"`, `{"conversation_id": "legacy-9", "to": 3}`} {
		made, _, err := e.Tasks.Create(t.Context(), engine.TaskRequest{Scope: continuo.Scope{ProjectID: "default"}, Request: task.Request{Description: "Go on", ConversationHistory: json.RawMessage(history)}})
		if want := (task.Source{ConversationID: conversation.ID, From: 1, To: 3}); err != nil || *made.Task.Source != want {
			t.Errorf("%s: the source is %+v, want %+v; %v", history, made.Task.Source, want, err)
		}
	}
}

// A task keeps which entries its history was made of, also when the conversation goes on; a retry gives the task that
// was made, whatever has been said since.
func TestATaskKeepsWhatItsHistoryWasMadeOf(t *testing.T) {
	e := newRunEngine(t, storetest.NewMemory(), &scriptedModel{answer: answerWell}, nil)
	conversation := conversationWith(t, e, 3)
	request := engine.TaskRequest{Scope: continuo.Scope{ProjectID: "default"}, Request: task.Request{Description: "Go on", ConversationHistory: json.RawMessage(`"` + conversation.ID + `"`)}, Key: "k"}
	first, warnings, err := e.Tasks.Create(t.Context(), request)
	want := task.Source{ConversationID: conversation.ID, From: 1, To: 3}
	if err != nil || len(warnings) > 0 || first.Task.Source == nil || *first.Task.Source != want {
		t.Fatalf("the source is %+v, want %+v; %v, %v", first.Task.Source, want, warnings, err)
	}
	appendMessages(t, e, conversation, 100)
	again, _, err := e.Tasks.Create(t.Context(), request)
	if err != nil || again.ID != first.ID || *again.Task.Source != want {
		t.Errorf("again it is %+v, %v", again, err)
	}
	request.Key = ""
	later, warnings, err := e.Tasks.Create(t.Context(), request)
	if want := (task.Source{ConversationID: conversation.ID, From: 54, To: 103}); err != nil || *later.Task.Source != want || len(warnings) != 1 {
		t.Errorf("later it is made of %+v, want %+v; %v, %v", later.Task.Source, want, warnings, err)
	}
	empty := conversationWith(t, e, 0)
	if none := createTask(t, e, "Begin", `"`+empty.ID+`"`); *none.Task.Source != (task.Source{ConversationID: empty.ID}) || none.Task.Context.ConversationHistory != nil {
		t.Errorf("of nothing it is %+v", none.Task)
	}
}

// Of a long conversation no more is read than is kept; with relevance more, and what is not looked at is named.
func TestALongConversationAsAHistory(t *testing.T) {
	e := newRunEngine(t, storetest.NewMemory(), &scriptedModel{answer: answerWell}, nil)
	conversation := conversationWith(t, e, 5100)
	cutoff := 0.5
	for _, row := range []struct {
		relevance *float64
		source    task.Source
		warning   string
	}{
		{nil, task.Source{From: 5051, To: 5100}, "has more than 50 messages in 5100 entries, truncating to most recent 50"},
		{&cutoff, task.Source{From: 101, To: 5100}, "has 5100 entries, of which only the newest 5000 were looked at, not entries 1 to 100"},
	} {
		made, warnings, err := e.Tasks.Create(t.Context(), engine.TaskRequest{Scope: continuo.Scope{ProjectID: "default"}, Request: task.Request{
			Description: "What was said in 150?", ConversationHistory: json.RawMessage(`"` + conversation.ID + `"`), Relevance: row.relevance,
		}})
		if err != nil || len(warnings) == 0 || warnings[0].Severity != task.Medium || !strings.HasSuffix(warnings[0].Message, row.warning) {
			t.Fatalf("the warnings are %+v, %v", warnings, err)
		}
		if row.source.ConversationID = conversation.ID; *made.Task.Source != row.source {
			t.Errorf("it is made of %+v, want %+v", made.Task.Source, row.source)
		}
		if found := strings.Contains(string(rawjson.MustMarshal(made.Task)), "Message 150."); found != (row.relevance != nil) {
			t.Errorf("the message that matters is found: %v", found)
		}
	}
}
