package continuo_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/sqlite"
)

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

// An entry that no reader could read would make its conversation unreadable: it is refused, or it can be read.
func TestAcceptedEntriesCanBeRead(t *testing.T) {
	edge := userEntry("hi")
	edge.CreatedAt = time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -3600))
	cases := map[string]continuo.Entry{
		"a part without its JSON":           {Role: continuo.User, Content: continuo.Parts(continuo.Part{Type: "text", Text: "hi"})},
		"a part that is no object":          {Role: continuo.User, Content: continuo.Parts(continuo.Part{Type: "x", Raw: json.RawMessage("1")})},
		"a time that is in the year 10 000": edge,
	}
	for depth := 9997; depth <= 10000; depth++ { // encoding/json reads 10 000 levels
		deep := strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1)
		extra := userEntry("hi")
		extra.Extra = json.RawMessage(`{"f":` + deep + `}`)
		cases[fmt.Sprintf("extra of the depth %d", depth)] = extra
		part := continuo.Part{Type: "x", Raw: json.RawMessage(`{"type":"x","f":` + deep + `}`)}
		cases[fmt.Sprintf("a part of the depth %d", depth)] = continuo.Entry{Role: continuo.User, Content: continuo.Parts(part)}
	}
	for name, entry := range cases {
		t.Run(name, func(t *testing.T) {
			log, id := sqliteLog(t)
			accepted := int64(1)
			if _, err := log.Append(t.Context(), id, []continuo.Entry{entry}, continuo.AppendOptions{}); err != nil {
				accepted = 0
			}
			c, err := log.Conversation(t.Context(), id)
			if err != nil || c.LastSeq != accepted {
				t.Fatalf("%d entries (%v), want %d", c.LastSeq, err, accepted)
			}
			for _, err := range log.Read(t.Context(), c, continuo.Range{}) {
				if err != nil {
					t.Errorf("accepted, and cannot be read: %.300s", err)
				}
			}
		})
	}
}

// encoding/json matches the names of fields without regard to case. What is checked, shown and sent must be one thing.
func TestNamesOfFieldsInAnotherCase(t *testing.T) {
	t.Run("a call", func(t *testing.T) {
		var call continuo.ToolCall
		const body = `{"Id":"evil","id":"c1","type":"function","FUNCTION":{"name":"rm","arguments":"evil"},"function":{"name":"ls","arguments":"{}"}}`
		if err := json.Unmarshal([]byte(body), &call); err != nil {
			t.Fatal(err)
		}
		if call.ID != "c1" || call.Name != "ls" || call.Arguments != "{}" {
			t.Fatalf("read as %+v", call)
		}
		log, id := sqliteLog(t)
		mustAppend(t, log, id, continuo.AppendOptions{}, continuo.Entry{Role: continuo.Assistant, ToolCalls: []continuo.ToolCall{call}})
		c, err := log.Conversation(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range log.Read(t.Context(), c, continuo.Range{}) {
			if err != nil || e.ToolCalls[0].ID != "c1" || e.ToolCalls[0].Name != "ls" || e.ToolCalls[0].Arguments != "{}" {
				t.Errorf("stored as %+v (%v)", e.ToolCalls, err)
			}
		}
	})
	t.Run("a part", func(t *testing.T) {
		var content continuo.Content
		text := strings.Repeat("secret ", 1000)
		if err := json.Unmarshal([]byte(`[{"type":"text","text":"`+text+`","TEXT":"x"}]`), &content); err != nil {
			t.Fatal(err)
		}
		if content.String() != text {
			t.Errorf("shown as %.60q, and %d bytes are sent", content.String(), len(content.Parts()[0].Raw))
		}
	})
}
