package continuo_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/sqlite"
	"github.com/continuo-log/continuo/store/storetest"
)

func rUser(text string) continuo.Entry {
	return continuo.Entry{Role: continuo.User, Content: continuo.Text(text)}
}

func twoLogs(t *testing.T) (a, b *continuo.Log, id string) {
	store := storetest.NewMemory()
	a, b = continuo.NewLog(store, continuo.LogOptions{}), continuo.NewLog(store, continuo.LogOptions{})
	c, err := a.Create(t.Context(), continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Append(t.Context(), c.ID, []continuo.Entry{rUser("one")}, continuo.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	return a, b, c.ID
}

func TestKeyRetryThroughAnotherProcess(t *testing.T) {
	a, b, id := twoLogs(t)
	if _, err := b.Append(t.Context(), id, []continuo.Entry{rUser("two")}, continuo.AppendOptions{Key: "k"}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("panic: %v", p)
		}
	}()
	got, err := a.Append(t.Context(), id, []continuo.Entry{rUser("two")}, continuo.AppendOptions{Key: "k"})
	if err != nil || got[0].Seq != 2 {
		t.Fatal(got, err)
	}
}

func TestExpectSeqAgainstAnotherProcess(t *testing.T) {
	a, b, id := twoLogs(t)
	if _, err := b.Append(t.Context(), id, []continuo.Entry{rUser("two")}, continuo.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	c, _ := a.Conversation(t.Context(), id)
	if _, err := a.Append(t.Context(), id, []continuo.Entry{rUser("three")}, continuo.AppendOptions{ExpectSeq: c.LastSeq + 1}); err != nil {
		t.Errorf("last seq %d: %v", c.LastSeq, err)
	}
}

func TestRuleAgainstAnotherProcess(t *testing.T) {
	a, b, id := twoLogs(t)
	call := continuo.Entry{Role: continuo.Assistant, ToolCalls: []continuo.ToolCall{continuo.FunctionCall("c1", "f", "{}")}}
	if _, err := b.Append(t.Context(), id, []continuo.Entry{call}, continuo.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	result := continuo.Entry{Role: continuo.Tool, ToolCallID: "c1", Content: continuo.Text("r")}
	if _, err := a.Append(t.Context(), id, []continuo.Entry{result}, continuo.AppendOptions{}); err != nil {
		t.Error(err)
	}
	// and the other way: open in a's memory, closed by b
	a, b, id = twoLogs(t)
	if _, err := a.Append(t.Context(), id, []continuo.Entry{call}, continuo.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Append(t.Context(), id, []continuo.Entry{result}, continuo.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Append(t.Context(), id, []continuo.Entry{rUser("next")}, continuo.AppendOptions{}); err != nil {
		t.Error(err)
	}
}

func sqliteLog(t *testing.T) (*continuo.Log, string) {
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "a.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	log := continuo.NewLog(store, continuo.LogOptions{})
	c, err := log.Create(t.Context(), continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	return log, c.ID
}

// whatever is accepted can be read
func readable(t *testing.T, log *continuo.Log, id string) {
	t.Helper()
	c, _ := log.Conversation(context.Background(), id)
	for e, err := range log.Read(context.Background(), c, continuo.Range{}) {
		if err != nil {
			s := err.Error()
			t.Errorf("accepted, but cannot be read: %s", s[:min(len(s), 300)])
			return
		}
		_ = e
	}
}

func TestPartWithoutRaw(t *testing.T) {
	log, id := sqliteLog(t)
	_, err := log.Append(t.Context(), id, []continuo.Entry{{Role: continuo.User, Content: continuo.Parts(continuo.Part{Type: "text", Text: "hi"})}}, continuo.AppendOptions{})
	if err == nil {
		readable(t, log, id)
	}
	log, id = sqliteLog(t)
	_, err = log.Append(t.Context(), id, []continuo.Entry{{Role: continuo.User, Content: continuo.Parts(continuo.Part{Type: "x", Raw: json.RawMessage("1")})}}, continuo.AppendOptions{})
	if err == nil {
		readable(t, log, id)
	}
}

func TestCallWithIdInAnotherCase(t *testing.T) {
	log, id := sqliteLog(t)
	var call continuo.ToolCall
	if err := json.Unmarshal([]byte(`{"Id":"evil","id":"c1","type":"function","FUNCTION":{"name":"rm","arguments":"evil"},"function":{"name":"ls","arguments":"{}"}}`), &call); err != nil {
		return // it is refused, which is as good
	}
	t.Logf("%+v", call)
	stored, err := log.Append(t.Context(), id, []continuo.Entry{{Role: continuo.Assistant, ToolCalls: []continuo.ToolCall{call}}, {Role: continuo.Tool, ToolCallID: call.ID, Content: continuo.Text("r")}}, continuo.AppendOptions{})
	if err != nil {
		return // it is refused, which is as good
	}
	readable(t, log, id)
	c, _ := log.Conversation(t.Context(), id)
	for e := range log.Read(t.Context(), c, continuo.Range{To: 1}) {
		if e.ToolCalls[0].ID != stored[0].ToolCalls[0].ID || e.ToolCalls[0].Name != stored[0].ToolCalls[0].Name || e.ToolCalls[0].Arguments != stored[0].ToolCalls[0].Arguments {
			t.Errorf("stored %+v, read %+v", stored[0].ToolCalls[0], e.ToolCalls[0])
		}
	}
	if _, err := log.OpenGroup(t.Context(), c); err != nil {
		t.Errorf("poisoned: %v", err)
	}
}

func TestDeepExtra(t *testing.T) {
	for _, depth := range []int{9997, 9998, 9999, 10000} {
		deep := strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1)
		log, id := sqliteLog(t)
		e := rUser("hi")
		e.Extra = json.RawMessage(`{"f":` + deep + `}`)
		_, err := log.Append(t.Context(), id, []continuo.Entry{e}, continuo.AppendOptions{})
		t.Logf("depth %d: %v", depth, err != nil)
		if err == nil {
			readable(t, log, id)
		}
		log, id = sqliteLog(t)
		e = rUser("hi")
		e.Content = continuo.Parts(continuo.Part{Type: "x", Raw: json.RawMessage(`{"type":"x","f":` + deep + `}`)})
		_, err = log.Append(t.Context(), id, []continuo.Entry{e}, continuo.AppendOptions{})
		t.Logf("part depth %d: %v", depth, err != nil)
		if err == nil {
			readable(t, log, id)
		}
	}
}

func TestCreatedAtEdge(t *testing.T) {
	log, id := sqliteLog(t)
	e := rUser("hi")
	e.CreatedAt = time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -3600))
	_, err := log.Append(t.Context(), id, []continuo.Entry{e}, continuo.AppendOptions{})
	t.Log(err)
	readable(t, log, id)
	if _, err := log.Conversation(t.Context(), id); err != nil {
		t.Error(err)
	}
}

func TestForkMetadata(t *testing.T) {
	log, id := sqliteLog(t)
	f, err := log.Fork(t.Context(), id, 0, continuo.Conversation{Metadata: json.RawMessage(`nonsense`)})
	if err == nil {
		c, err := log.Conversation(t.Context(), f.ID)
		_, err2 := json.Marshal(c)
		t.Error("accepted", err, err2)
	}
}
