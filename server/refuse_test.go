package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// Every bad body of POST /chat is refused with a status, a code and the field at fault, and begins nothing.
func TestChatRefuses(t *testing.T) {
	handler := newServer(t)
	long := strings.Repeat("x", 129)
	for _, test := range []struct {
		name, body  string
		status      int
		code, param string
		message     string // part of the message
	}{
		{"nothing", ``, 400, "invalid_json", "", "empty"},
		{"a cut body", `{"message": "hel`, 400, "invalid_json", "", "byte"},
		{"two bodies", `{"message": "a"} {"message": "b"}`, 400, "invalid_json", "", ""},
		{"a list", `[{"message": "a"}]`, 400, "invalid_request", "", "object"},
		{"null", `null`, 400, "invalid_request", "", "object"},
		{"no message", `{}`, 400, "invalid_request", "message", ""},
		{"null message", `{"message": null}`, 400, "invalid_request", "message", ""},
		{"empty message", `{"message": ""}`, 400, "invalid_request", "message", ""},
		{"blank message", `{"message": " \n\t"}`, 400, "invalid_request", "message", ""},
		{"invisible message", `{"message": "\u200b\u202e"}`, 400, "invalid_request", "message", "with visible text"},
		{"no parts", `{"message": []}`, 400, "invalid_request", "message", ""},
		{"a blank part", `{"message": [{"type": "text", "text": " "}]}`, 400, "invalid_request", "message", ""},
		{"a part without a type", `{"message": [{"text": "a"}]}`, 400, "invalid_request", "message", "type"},
		{"a message object", `{"message": {"text": "a"}}`, 400, "invalid_request", "message", "string"},
		{"a message number", `{"message": 5}`, 400, "invalid_request", "message", "string"},
		{"an unknown field", `{"message": "a", "agent": "x"}`, 400, "invalid_request", "agent", "agent_id"},
		{"a mistyped field", `{"message": "a", "sesion_id": "x"}`, 400, "invalid_request", "sesion_id", "did you mean session_id?"},
		{"a field in another case", `{"Message": "a"}`, 400, "invalid_request", "Message", ""},
		{"a field twice", `{"message": "a", "message": "b"}`, 400, "invalid_request", "message", "twice"},
		{"session number", `{"message": "a", "session_id": 5}`, 400, "invalid_request", "session_id", "must be a string, not a number"},
		{"session too long", `{"message": "a", "session_id": "` + long + `"}`, 400, "invalid_request", "session_id", "128"},
		{"session blank", `{"message": "a", "session_id": " "}`, 400, "invalid_request", "session_id", ""},
		{"session path", `{"message": "a", "session_id": "../../etc"}`, 400, "invalid_request", "session_id", ""},
		{"session not ASCII", `{"message": "a", "session_id": "höhe"}`, 400, "invalid_request", "session_id", ""},
		{"session control", `{"message": "a", "session_id": "a\u0000b"}`, 400, "invalid_request", "session_id", ""},
		{"session like an id", `{"message": "a", "session_id": "conv_mine"}`, 400, "invalid_request", "session_id", "conv_"},
		{"session id unknown", `{"message": "a", "session_id": "conv_00000000000000000000000000000000"}`, 404, "not_found", "session_id", ""},
		{"mode unknown", `{"message": "a", "mode": "plan"}`, 400, "invalid_request", "mode", "chat, agent, run"},
		{"model unknown", `{"message": "a", "model": "gpt-9"}`, 400, "invalid_request", "model", "obedient"},
		{"view unknown", `{"message": "a", "view": "all"}`, 400, "invalid_request", "view", "continuity"},
		{"on_busy unknown", `{"message": "a", "on_busy": "queue"}`, 400, "invalid_request", "on_busy", "wait, reject, interrupt"},
		{"stream text", `{"message": "a", "stream": "yes"}`, 400, "invalid_request", "stream", "true or false"},
		{"huge message", `{"model": "small", "message": "` + strings.Repeat("many words ", 50_000) + `"}`, 413, "context_overflow", "message", "models.NAME.context_window"},
		{"not UTF-8", "{\"message\": \"a\xff\"}", 400, "invalid_utf8", "", "byte 14"},
		{"a name not UTF-8", "{\"mess\xc3\x28age\": \"a\"}", 400, "invalid_utf8", "", "byte 6"},
		{"half a character", `{"message": "a \ud83d b"}`, 400, "invalid_utf8", "", "byte 15"},
		{"the other half", `{"message": "\ude00"}`, 400, "invalid_utf8", "", ""},
		{"deep", `{"message": ` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, 400, "invalid_json", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			answer := ask(t, handler, "POST", "/chat", test.body, "Content-Type", "application/json")
			if failure := answer.failed(test.status, test.code, test.param); !strings.Contains(failure.Error.Message, test.message) {
				t.Errorf("the message %q does not say %q", failure.Error.Message, test.message)
			}
		})
	}
	var page api.List[continuo.Conversation]
	ask(t, handler, "GET", "/api/conversations", "").into(200, &page)
	for _, conversation := range page.Data {
		if conversation.LastSeq != 0 {
			t.Errorf("a refused request left an entry in conversation %+v", conversation)
		}
	}
}

// What looks odd but is fine must be taken.
func TestChatTakes(t *testing.T) {
	handler := newServer(t)
	for _, body := range []string{
		`{"message": "😀 \ud83d\ude00 \\ud83d"}`,
		`{"message": "a", "session_id": null, "mode": null, "agent_id": null, "model": null, "view": null, "stream": null, "on_busy": null}`,
		`{"message": "a", "session_id": ""}`,
		` {"message" : "a" } ` + "\n",
		`{"message": [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]}`,
		`{"message": "line\u2028separator \u0000 and <tag> & \"quotes\""}`,
	} {
		var answer chatReply
		ask(t, handler, "POST", "/chat", body, "Content-Type", "application/json; charset=UTF-8").into(200, &answer)
	}
	entries := entriesOf(t, handler, sendMessage(t, handler, "", `😀 \ud83d`).ConversationID)
	if got := entries[0].Content.String(); got != `😀 \ud83d` {
		t.Errorf("the log has %q", got)
	}
}

func TestBodiesAreChecked(t *testing.T) {
	handler := New(newEngine(t, engine.Options{}), Options{MaxBodyBytes: 100})
	hello := `{"message": "hello"}`
	big := `{"message": "` + strings.Repeat("x", 100) + `"}`
	ask(t, handler, "POST", "/chat", big).failed(413, "body_too_large", "")
	ask(t, handler, "POST", "/api/conversations", big).failed(413, "body_too_large", "")
	for _, contentType := range []string{"text/plain", "multipart/form-data", "application/json; charset=latin1", ";;"} {
		ask(t, handler, "POST", "/chat", hello, "Content-Type", contentType).failed(415, "unsupported_media_type", "Content-Type")
	}
	for _, contentType := range []string{"", "application/x-www-form-urlencoded"} { // what curl -d says of any body
		var answer chatReply
		ask(t, handler, "POST", "/chat", hello, "Content-Type", contentType).into(200, &answer)
	}
	ask(t, handler, "POST", "/chat", hello, "Content-Encoding", "gzip").failed(415, "unsupported_media_type", "Content-Encoding")
	for _, key := range []string{" ", "two words", "naïve", strings.Repeat("k", 256)} {
		ask(t, handler, "POST", "/chat", hello, "Idempotency-Key", key).failed(400, "invalid_request", "Idempotency-Key")
	}
}

func TestQueriesAreChecked(t *testing.T) {
	handler := newServer(t)
	sendMessage(t, handler, "s", "hello")
	for _, test := range []struct {
		target, param string
		status        int
	}{
		{"/api/conversations?limit=0", "limit", 400},
		{"/api/conversations?limit=ten", "limit", 400},
		{"/api/conversations?limit=5&limit=6", "limit", 400},
		{"/api/conversations?cursor=", "cursor", 400},
		{"/api/conversations?%zz", "", 400},
		{"/api/conversations/s?x=1", "x", 400},
		{"/api/conversations/s/entries?limit=1001", "limit", 400},
		{"/api/conversations/s/entries?order=up", "order", 400},
		{"/api/conversations/s/entries?from=-1", "from", 400},
		{"/api/conversations/s/entries?cursor=e30", "cursor", 400},
		{"/api/conversations/s/entries/x/request", "seq", 400},
		{"/api/conversations/s/entries/0/request", "seq", 400},
		{"/api/conversations/s/entries/9/request", "seq", 400},
		{"/api/conversations/s/context?view=all", "view", 400},
		{"/api/conversations/s/context?view=codex%FF", "view", 400},
		{"/api/conversations/s/context?format=xml", "format", 400},
		{"/api/conversations/s/context?model=m", "model", 400},
		{"/api/conversations/s/context?agent_id=a", "agent_id", 400},
		{"/api/conversations/s/context?at=0", "at", 400},
		{"/api/conversations/s/context?at=3", "at", 400},
		{"/api/conversations/s/context?max_messages=-1", "max_messages", 400},
		{"/api/conversations/s/context?max_chars=1e3", "max_chars", 400},
		{"/api/conversations/s/context?max_tokens=99999999999999999999", "max_tokens", 400},
		{"/api/conversations/s/context?system=1", "system", 400},
		{"/api/conversations/s/context?max_tokens=1", "", 200},
		{"/api/conversations/s/context?max_chars=1", "", 200},
		{"/api/conversations/s/context?view=replay&max_chars=1&format=transcript", "", 200},
		{"/api/conversations/s/transcript?history=-1", "history", 400},
		{"/api/conversations/s/export?format=", "", 200},
		{"/api/conversations/nobody/context", "", 404},
		{"/api/conversations/" + strings.Repeat("x", 5000), "", 404},
		{"/api/conversations/%FF%FE/entries", "", 404},
	} {
		answer := ask(t, handler, "GET", test.target, "")
		if test.status == 200 {
			if answer.status != 200 {
				t.Errorf("%s: status %d: %s", test.target, answer.status, answer.body)
			}
			continue
		}
		var body errorBody
		answer.into(test.status, &body)
		param := ""
		if body.Error.Param != nil {
			param = *body.Error.Param
		}
		if param != test.param || len(body.Error.Message) > 4*api.MaxMessage {
			t.Errorf("%s: param %q: %s", test.target, param, answer.body)
		}
	}
}

func TestEntriesRefuse(t *testing.T) {
	handler := newServer(t)
	ask(t, handler, "POST", "/api/conversations", `{"key": "s"}`)
	many := `{"entries": [` + strings.TrimSuffix(strings.Repeat(`{"role": "user", "content": "a"},`, api.MaxAppend+1), ",") + `]}`
	for _, test := range []struct {
		body        string
		status      int
		code, param string
	}{
		{`{}`, 400, "invalid_request", "role"},
		{`{"content": "a"}`, 400, "invalid_request", "role"},
		{`{"role": null}`, 400, "invalid_request", "role"},
		{`{"role": "developer", "content": "a"}`, 422, "unknown_role", ""},
		{`{"role": "user"}`, 422, "null_content", ""},
		{`{"role": "user", "content": {"text": "a"}}`, 400, "invalid_request", "content"},
		{`{"role": "assistant", "content": null}`, 422, "empty_assistant", ""},
		{`{"role": "tool", "content": "a", "tool_call_id": "c"}`, 422, "orphan_tool", ""},
		{`{"role": "user", "content": "a", "mode": "plan"}`, 422, "unknown_mode", ""},
		{`{"role": "user", "content": "a", "mode": 1}`, 400, "invalid_request", "mode"},
		{`{"role": "user", "content": "a", "turnid": "x"}`, 400, "invalid_request", "turnid"},
		{`{"role": "user", "content": "a", "round": {"at": "x"}}`, 400, "invalid_request", "round"},
		{`{"role": "assistant", "content": null, "tool_calls": [{"id": "a"}]}`, 400, "invalid_request", "tool_calls"},
		{`{"role": "assistant", "content": null, "tool_calls": [{"id": 5, "type": "function", "function": {"name": "f", "arguments": ""}}]}`, 400, "invalid_request", "tool_calls"},
		{`{"entries": []}`, 400, "invalid_request", "entries"},
		{`{"entries": {}}`, 400, "invalid_request", "entries"},
		{`{"entries": null}`, 400, "invalid_request", "entries"},
		{`{"entries": [1]}`, 400, "invalid_request", "entries[0]"},
		{many, 400, "invalid_request", "entries"},
		{`{"entries": [{"role": "user", "content": "a"}], "expect": 1}`, 400, "invalid_request", "expect"},
		{`{"entries": [{"role": "user", "content": "a"}], "expect_seq": 0}`, 400, "invalid_request", "expect_seq"},
		{`{"entries": [{"role": "user", "content": "a"}], "expect_seq": "1"}`, 400, "invalid_request", "expect_seq"},
		{`{"entries": [{"role": "user", "content": "a"}], "expect_seq": 2}`, 409, "conflict", "expect_seq"},
		{`{"entries": [{"role": "user", "content": "a"}, {"role": "user", "content": "b", "id": "x"}]}`, 400, "invalid_request", "entries[1].id"},
		{`{"entries": [{"role": "user", "content": "a"}, {"role": "tool", "content": "b", "tool_call_id": "x"}]}`, 422, "orphan_tool", "entries[1]"},
	} {
		t.Run(test.body[:min(len(test.body), 80)], func(t *testing.T) {
			ask(t, handler, "POST", "/api/conversations/s/entries", test.body).failed(test.status, test.code, test.param)
		})
	}
	for _, field := range api.FilledMembers {
		ask(t, handler, "POST", "/api/conversations/s/entries", fmt.Sprintf(`{"role": "user", "content": "a", %q: null}`, field)).failed(400, "invalid_request", field)
	}
	if entries := entriesOf(t, handler, "s"); len(entries) != 0 {
		t.Errorf("refused entries are in the log: %d", len(entries))
	}
}

// The server's lists of an entry's fields must be the fields that entries have.
func TestEntryFieldsAreComplete(t *testing.T) {
	whole := `{"id": "e", "conversation_id": "c", "seq": 1, "created_at": "2026-01-02T03:04:05Z", "role": "assistant", "content": "a",
		"tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}], "tool_call_id": "c", "name": "n",
		"reasoning": {"text": "t"}, "error": {"code": "LLM_ERROR", "reason": "network", "message": "m", "retryable": true},
		"mode": "chat", "run_id": "r", "workflow_id": "w", "node_id": "n", "agent_id": "a", "turn_id": "t", "author": {"role_name": "r"},
		"include_in_context": false, "part_type": "p", "tool_name": "t", "outcome": "o", "duration_ms": 1, "is_collapsed": true, "widget": {},
		"output_ref": "o", "output": {"id": "o"}, "attachments": [{"part": 0, "id": "o"}], "chars": 1, "tokens": 1, "tokenizer": "t", "round": {"view": "v", "view_hash": "h", "at": 1, "window": {"epoch": 1, "start": 1}},
		"run_event": {"kind": "run_began"}, "task_event": {"kind": "finding"}, "summary": {"from": 1, "through": 1, "by": "extractive"}, "fact": {"subject": "s"}, "profile": {}, "no_memory": true, "recall": {"scope": "conversation", "items": [], "ranker": "r"}, "vendor": {"v": {}}, "repairs": ["r"], "redacted": {"at": "2026-01-02T03:04:05Z"}, "extra": {}}`
	var entry continuo.Entry
	if err := entry.UnmarshalJSON([]byte(whole)); err != nil {
		t.Fatal(err)
	}
	object, err := rawjson.ParseObject(rawjson.MustMarshal(entry))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, field := range append(append([]string{}, api.GivenMembers...), api.FilledMembers...) {
		listed[field] = true
		if object.Get(field) == nil {
			t.Errorf("%s is listed, but entries do not have it", field)
		}
	}
	for _, field := range object {
		if !listed[field.Key] {
			t.Errorf("entries have %s, which is not listed", field.Key)
		}
	}
	d, err := description()
	if err != nil {
		t.Fatal(err)
	}
	for _, schema := range []string{"Entry", "NewEntry"} {
		properties := d.document["components"].(map[string]any)["schemas"].(map[string]any)[schema].(map[string]any)["properties"].(map[string]any)
		want := len(api.GivenMembers)
		if schema == "Entry" {
			want += len(api.FilledMembers)
		}
		if len(properties) != want {
			t.Errorf("schema %s has %d fields, not %d", schema, len(properties), want)
		}
	}
}

// TestAClientCannotNameAnEnvelope: it could be that of another project, whose system messages a request shows.
func TestAClientCannotNameAnEnvelope(t *testing.T) {
	handler := newServer(t)
	id := sendMessage(t, handler, "", "hello").ConversationID
	answer := ask(t, handler, "POST", "/api/conversations/"+id+"/entries", `{"role": "assistant", "content": "b", "round": {"view": "continuity", "view_hash": "0", "at": 1, "window": {"epoch": 1, "start": 1}, "envelope": "00"}}`)
	if answer.status != 400 || !strings.Contains(string(answer.body), "round.envelope") {
		t.Errorf("status %d: %s", answer.status, answer.body)
	}
}

// Rounds that a client makes up must not harm: whatever they say, the log can be shown or the refusal has a reason.
func TestMadeUpRounds(t *testing.T) {
	handler := newServer(t)
	for _, round := range []string{
		`{"view": "continuity", "view_hash": "0", "at": 1, "window": {"epoch": -5, "start": -9}}`,
		`{"view": "continuity", "view_hash": "HASH", "at": 999, "window": {"epoch": 9223372036854775807, "start": 9223372036854775807, "pins": [-1, 0, 5, 5, 99], "preview_before": -3, "line_before": 77, "limit": "x"}}`,
		`{"view": "", "view_hash": "HASH", "at": -1, "window": {"epoch": 0, "start": 0, "pins": [1, 1, 1]}, "usage": {"input_tokens": -1, "output_tokens": -1}}`,
		`{"view": "continuity", "view_hash": "HASH", "at": 1, "window": {"epoch": 1, "start": 2, "pins": [2, 1]}, "provider": "fake", "model": "gpt-4o", "estimated_tokens": -9, "usage": {"input_tokens": 9223372036854775807, "output_tokens": 1}}`,
	} {
		id := sendMessage(t, handler, "", "hello").ConversationID
		var before struct {
			Plan struct {
				ViewHash string `json:"view_hash"`
			}
		}
		ask(t, handler, "GET", "/api/conversations/"+id+"/context", "").into(200, &before)
		round = strings.ReplaceAll(round, "HASH", before.Plan.ViewHash)
		appended := ask(t, handler, "POST", "/api/conversations/"+id+"/entries", `{"entries": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "round": `+round+`}]}`)
		if appended.status != 201 {
			t.Fatalf("status %d: %s", appended.status, appended.body)
		}
		for _, view := range []string{"continuity", "codex", "replay"} {
			if answer := ask(t, handler, "GET", "/api/conversations/"+id+"/context?view="+view, ""); answer.status != 200 {
				t.Errorf("view %s after the round %s: %s", view, round, answer.body)
			}
		}
		if answer := ask(t, handler, "GET", "/api/conversations/"+id+"/entries/4/request", ""); answer.status >= 500 {
			t.Errorf("the request of %s: %s", round, answer.body)
		}
		if answer := sendMessage(t, handler, id, "still there?"); !strings.Contains(answer.Response, "still there?") {
			t.Errorf("after the round %s: %+v", round, answer)
		}
	}
}

// No body may make the server fail: whatever comes is answered, or refused with a reason.
func FuzzBodies(f *testing.F) {
	for _, body := range []string{
		`{"message": "hello", "session_id": "s", "mode": "agent", "view": "codex", "stream": true}`,
		`{"message": [{"type": "text", "text": "hello"}]}`,
		`{"entries": [{"role": "assistant", "content": null, "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{"}}]}, {"role": "tool", "tool_call_id": "a", "content": "x"}]}`,
		`{"role": "user", "content": "a", "round": {"view": "v", "view_hash": "h", "at": 1, "window": {"epoch": 1, "start": 1}}}`,
		`{"title": "t", "key": "k", "metadata": {"a": 1}, "mode": "chat", "active_agent": ""}`,
		`{"messages": [{"role": "user", "content": "a"}, {"role": "tool", "tool_call_id": "x", "content": "b"}], "format": "openai"}`,
		"{\"message\": \"\xff\"}", `{"message": "\ud800"}`, `[]`, `null`, ``, `{"a":`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		handler := newServer(t)
		ask(t, handler, "POST", "/api/conversations", `{"key": "s"}`)
		for _, call := range []string{
			"POST /chat", "POST /api/conversations", "POST /api/conversations/import", "PATCH /api/conversations/s",
			"POST /api/conversations/s/entries", "POST /api/conversations/s/fork",
		} {
			method, target, _ := strings.Cut(call, " ")
			request := httptest.NewRequest(method, "http://localhost"+target, strings.NewReader(body))
			request.Header.Set("Content-Type", "application/json")
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, request)
			answer := &reply{t, recorder.Code, recorder.Header(), recorder.Body.Bytes()}
			checkDescribed(t, method, target, answer)
			modelFailed := recorder.Code == http.StatusBadGateway // "fail: …" is an order to the model
			if recorder.Code >= 500 && !modelFailed && recorder.Code != http.StatusGatewayTimeout {
				t.Fatalf("%s: status %d: %s", call, recorder.Code, recorder.Body)
			}
		}
		checkLog(t, entriesOf(t, handler, "s"))
	})
}

func FuzzLoneSurrogate(f *testing.F) {
	for _, text := range []string{`"\ud83d\ude00"`, `"\ud83d"`, `"\\ud83d"`, `"\ude00\ud83d"`, `"\u`, `\`, `"\uD83D\uDE00 \u0041"`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at := loneSurrogate([]byte(text))
		if at >= len(text) || at >= 0 && text[at] != '\\' {
			t.Fatalf("%q: %d", text, at)
		}
	})
}
