package interchange

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"pgregory.net/rapid"
)

// readOne reads a source that holds one conversation.
func readOne(t failer, source []byte, o Options) Document {
	t.Helper()
	var found []Document
	for document, err := range Read("test", bytes.NewReader(source), o) {
		if err != nil {
			t.Fatalf("%v in %.300s", err, source)
		}
		found = append(found, document)
	}
	if len(found) != 1 {
		t.Fatalf("%d conversations instead of one in %.300s", len(found), source)
	}
	return found[0]
}

// sameOwn exports a conversation in Continuo's own form, imports it into another log, and compares.
func sameOwn(t failer, log *continuo.Log, conversation continuo.Conversation) {
	t.Helper()
	first := exported(t, log, conversation, FormatContinuo)
	document := readOne(t, first, Options{})
	if len(document.Repairs) > 0 {
		t.Errorf("repairs of our own form: %v", document.Repairs)
	}
	otherLog, other := imported(t, document)
	second := exported(t, otherLog, other, FormatContinuo)
	a, b := bytes.Split(first, []byte("\n")), bytes.Split(second, []byte("\n"))
	if len(a) != len(b) {
		t.Fatalf("%d lines became %d", len(a), len(b))
	}
	for i := 1; i < len(a)-2; i++ { // all entries
		var one, two continuo.Entry
		if err := json.Unmarshal(a[i], &one); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b[i], &two); err != nil {
			t.Fatal(err)
		}
		two.ID, two.ConversationID = one.ID, one.ConversationID // new ones
		if !reflect.DeepEqual(one, two) {
			t.Errorf("entry %d:\n was %s\n is %s", i, a[i], b[i])
		}
	}
	if !bytes.Equal(exported(t, log, conversation, FormatSource), exported(t, otherLog, other, FormatSource)) {
		t.Error("the source's form is another after an export and an import")
	}
}

func TestOwnFormKeepsEveryField(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 30, 0, 123456789, time.UTC)
	log := newLog()
	conversation, err := log.Import(context.Background(), continuo.Conversation{
		Title: "Ünïcode <b>", ActiveMode: continuo.ModeRun, Key: "mine", Metadata: json.RawMessage(`{"a":1}`),
	}, []continuo.Entry{
		{Role: continuo.User, Content: continuo.Text("hi <b>\u2028"), CreatedAt: at, Mode: continuo.ModeAgent, RunID: "r", WorkflowID: "w", NodeID: "n", AgentID: "g", TurnID: "t"},
		{
			Role: continuo.Assistant, Content: continuo.Null(), CreatedAt: at, ToolCalls: []continuo.ToolCall{{ID: "a", Type: "custom", Name: "f", Arguments: "x", Extra: json.RawMessage(`{"index":0}`)}},
			Reasoning: &continuo.Reasoning{Text: "hm", Signature: "sig"}, Round: &continuo.Round{View: "chat", At: 1, Window: continuo.Window{Epoch: 1, Start: 1, Pins: []int64{1}}, Usage: &continuo.Usage{InputTokens: 3}},
			Vendor: map[string]json.RawMessage{"openai": json.RawMessage(`{"id":"x"}`)},
		},
		{Role: continuo.Tool, ToolCallID: "a", Content: continuo.Text("out"), CreatedAt: at, ToolName: "f", Outcome: "Did f", DurationMS: 12, PartType: "tool", IsCollapsed: true, Widget: json.RawMessage(`{"w":[1]}`), Extra: json.RawMessage(`{"ts":"x"}`)},
		{Role: continuo.Assistant, Content: continuo.Text("half"), CreatedAt: at, Author: &continuo.Author{RoleName: "dev"}, Error: &continuo.TurnError{Code: continuo.LLMError, Reason: continuo.ReasonTimeout, Message: "slow", Retryable: true, PartialToolCalls: []continuo.PartialToolCall{{ID: "p", Arguments: "{"}}}},
		{Role: continuo.User, Content: continuo.Text("for people"), CreatedAt: at, Hidden: true},
		{Role: continuo.Tool, Content: continuo.Text("lost"), CreatedAt: at, Hidden: true, Repairs: []string{"orphan_tool"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	sameOwn(t, log, conversation)
	document := readOne(t, exported(t, log, conversation, FormatContinuo), Options{})
	if c := document.Conversation; c.Title != "Ünïcode <b>" || c.ActiveMode != continuo.ModeRun {
		t.Errorf("the conversation became %+v", c)
	}
	if got, want := string(document.Conversation.Metadata), fmt.Sprintf(`{"a":1,"imported_from":{"id":%q,"key":"mine"}}`, conversation.ID); got != want {
		t.Errorf("metadata %s instead of %s", got, want)
	}
}

// entriesGen makes sequences that a log accepts.
func entriesGen() *rapid.Generator[[]continuo.Entry] {
	return rapid.Custom(func(t *rapid.T) []continuo.Entry {
		var entries []continuo.Entry
		text := func(label string) continuo.Content { return continuo.Text(rapid.String().Draw(t, label)) }
		for n := rapid.IntRange(0, 6).Draw(t, "turns"); n > 0; n-- {
			entries = append(entries, continuo.Entry{Role: continuo.User, Content: text("user"), Hidden: rapid.Bool().Draw(t, "hidden")})
			calls := rapid.IntRange(0, 3).Draw(t, "calls")
			answer := continuo.Entry{Role: continuo.Assistant, Content: text("assistant")}
			for i := range calls {
				answer.ToolCalls = append(answer.ToolCalls, continuo.FunctionCall(fmt.Sprintf("c%d", i), "f", rapid.String().Draw(t, "arguments")))
			}
			entries = append(entries, answer)
			for i := range calls {
				entries = append(entries, continuo.Entry{Role: continuo.Tool, ToolCallID: fmt.Sprintf("c%d", i), Content: text("result")})
			}
		}
		return entries
	})
}

func TestOwnFormAndOpenAIAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := newLog()
		conversation, err := log.Import(context.Background(), continuo.Conversation{Title: rapid.String().Draw(t, "title")}, entriesGen().Draw(t, "entries"))
		if err != nil {
			t.Fatal(err)
		}
		var own, openAI bytes.Buffer
		if err := Export(context.Background(), &own, FormatContinuo, log, conversation); err != nil {
			t.Fatal(err)
		}
		if err := Export(context.Background(), &openAI, FormatOpenAI, log, conversation); err != nil {
			t.Fatal(err)
		}
		var document Document
		for d, err := range Read("own", &own, Options{}) {
			if err != nil {
				t.Fatal(err)
			}
			document = d
		}
		var shown []string
		for _, e := range document.Entries {
			if !e.Hidden {
				shown = append(shown, brief(e))
			}
		}
		again, err := Messages(openAI.Bytes(), "")
		if err != nil {
			t.Fatal(err)
		}
		if got := briefs(again.Entries); !reflect.DeepEqual(got, shown) {
			t.Fatalf("OpenAI gives %q, our own form %q", got, shown)
		}
	})
}

func TestOwnFormThatIsNotWhole(t *testing.T) {
	log := newLog()
	conversation, err := log.Import(context.Background(), continuo.Conversation{}, []continuo.Entry{
		{Role: continuo.User, Content: continuo.Text("hi")}, {Role: continuo.Assistant, Content: continuo.Text("ho")},
	})
	if err != nil {
		t.Fatal(err)
	}
	whole := string(exported(t, log, conversation, FormatContinuo))
	parts := strings.SplitAfter(whole, "\n")
	tests := []struct{ name, source, want string }{
		{"cut after an entry", parts[0] + parts[1], "truncated after 1 entries"},
		{"cut inside an entry", parts[0] + parts[1] + parts[2][:20], "truncated"},
		{"an entry is missing", parts[0] + parts[2] + parts[3], "does not count the 1 entries"},
		{"no end before the next", parts[0] + parts[1] + whole, "truncated after 1 entries"},
		{"newer", strings.Replace(whole, `"version":1`, `"version":2`, 1), "version 2"},
		{"no header", parts[1] + parts[2] + parts[3], "looks like one message"},
		{"an end alone", parts[3], `must be "conversation"`},
		{"an entry that breaks a rule", parts[0] + `{"role":"tool","tool_call_id":"a","content":""}` + "\n" + `{"continuo":"end","entries":1}`, "orphan_tool"},
		{"an entry of the wrong form", parts[0] + `{"role":1}` + "\n" + `{"continuo":"end","entries":1}`, "entry 0"},
		{"metadata of the wrong form", `{"continuo":"conversation","conversation":{"metadata":1}}` + "\n" + `{"continuo":"end","entries":0}`, "metadata must be an object"},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			var failed error
			for _, err := range Read("x", strings.NewReader(c.source), Options{}) {
				if err != nil && failed == nil {
					failed = err
				}
			}
			if failed == nil || !strings.Contains(failed.Error(), c.want) {
				t.Errorf("the error is %v, without %q", failed, c.want)
			}
		})
	}
	documents := 0
	for _, err := range Read("x", strings.NewReader(whole+whole), Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		documents++
	}
	if documents != 2 {
		t.Errorf("%d conversations in a file of two", documents)
	}
}

// TestAnUnreadableLineOfTheOwnForm is named, with the field and what it must be; nothing speaks of Go.
func TestAnUnreadableLineOfTheOwnForm(t *testing.T) {
	for name, test := range map[string]struct{ header, entry, want string }{
		"a number":       {"", `{"role":"user","content":"a","chars":"x"}`, "entry 1 (line 3): field chars must be a whole number, not a string"},
		"a role":         {"", `{"role":5,"content":"a"}`, "entry 1 (line 3): field role must be a string, not a number"},
		"an object":      {"", `{"role":"user","content":"a","round":"x"}`, "entry 1 (line 3): field round must be an object, not a string"},
		"a deep field":   {"", `{"role":"assistant","content":"a","round":{"usage":{"input_tokens":"many"}}}`, "entry 1 (line 3): field round.usage.input_tokens must be a whole number, not a string"},
		"a list":         {"", `{"role":"assistant","content":"a","tool_calls":5}`, "entry 1 (line 3): field tool_calls must be a list, not a number"},
		"a call":         {"", `{"role":"assistant","content":"a","tool_calls":[{"id":5}]}`, "entry 1 (line 3): field tool_calls: tool call: id must be a string"},
		"content":        {"", `{"role":"user","content":5}`, "entry 1 (line 3): field content: content must be a string, null or a list of parts"},
		"a time":         {"", `{"role":"user","content":"a","created_at":"yesterday"}`, "entry 1 (line 3): field created_at: a time must be as in 2026-11-01T08:00:00Z, not \"yesterday\""},
		"a version":      {`{"continuo":"conversation","version":"one"}`, "", "the line with the field \"continuo\" cannot be read: field version must be a whole number, not a string"},
		"a conversation": {`{"continuo":"conversation","version":1,"conversation":{"id":"c","last_seq":"one"}}`, "", "field conversation.last_seq must be a whole number, not a string"},
	} {
		lines := []string{cmp.Or(test.header, `{"continuo":"conversation","version":1,"conversation":{"id":"c"}}`), `{"role":"user","content":"x"}`, cmp.Or(test.entry, `{"role":"user","content":"x"}`), `{"continuo":"end","entries":2}`}
		var failed string
		for _, err := range Read("test", strings.NewReader(strings.Join(lines, "\n")), Options{}) {
			if err != nil {
				failed = err.Error()
				break
			}
		}
		if !strings.HasSuffix(failed, test.want) || strings.Contains(failed, "Go ") {
			t.Errorf("%s: %s\nwant %s", name, failed, test.want)
		}
	}
}
