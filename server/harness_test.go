package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/prompt"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/tool"
)

// fakeModel is a model whose answers a test makes up.
type fakeModel struct {
	name   string
	answer func(ctx context.Context, shown []shownMessage, yield func(model.Delta) bool) error
}

// smallModel has a window that is known, and small.
const smallModel = "small"

// shownMessage is a message of a request.
type shownMessage struct {
	Role    string           `json:"role"`
	Content continuo.Content `json:"content"`
}

func (f *fakeModel) Info() model.Info {
	info := model.Info{Provider: "fake", Name: f.name, Protocol: model.ProtocolOpenAIChat}
	if f.name == smallModel {
		info.ContextWindow = 4096
	}
	return info
}

func (f *fakeModel) Stream(ctx context.Context, body []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		var request struct {
			Messages []shownMessage `json:"messages"`
		}
		if err := json.Unmarshal(body, &request); err != nil {
			yield(model.Delta{}, &model.Error{Reason: continuo.ReasonUpstream, Message: err.Error()})
			return
		}
		stopped := false
		give := func(delta model.Delta) bool {
			stopped = stopped || !yield(delta, nil)
			return !stopped
		}
		err := f.answer(ctx, request.Messages, give)
		switch {
		case stopped:
		case err != nil:
			yield(model.Delta{}, err)
		default:
			give(model.Delta{Finish: "stop", Usage: &continuo.Usage{InputTokens: 10 * len(request.Messages), OutputTokens: 5}})
		}
	}
}

// obedient answers as the newest message asks: "think", "use the tool", "fail REASON", or else by saying
// what it was shown.
func obedient(_ context.Context, shown []shownMessage, yield func(model.Delta) bool) error {
	newest := shown[len(shown)-1]
	order, argument, _ := strings.Cut(newest.Content.String(), ": ")
	switch {
	case newest.Role == "tool":
		yield(model.Delta{Text: "The tool said: " + firstLine(newest.Content.String())})
	case order == "use the tool":
		yield(model.Delta{Text: "Let me see. "})
		for i, text := range strings.Split(argument, " and ") {
			arguments := string(rawjson.MustMarshal(map[string]string{"text": text}))
			yield(model.Delta{ToolCall: &model.ToolCallDelta{Index: i, ID: fmt.Sprintf("call_%d", i), Type: "function", Name: "test_upper", Arguments: arguments, Done: true}})
		}
	case order == "fail":
		yield(model.Delta{Text: "I was just "})
		return &model.Error{Reason: continuo.FailureReason(argument), Status: 418, Retryable: argument != "content_filter", Message: "the provider said no"}
	case order == "think":
		yield(model.Delta{Reasoning: "Hm. "})
		yield(model.Delta{Reasoning: "Well. "})
		yield(model.Delta{Text: "I thought."})
	default:
		yield(model.Delta{Text: fmt.Sprintf("I was shown %d messages; ", len(shown))})
		yield(model.Delta{Text: fmt.Sprintf("the newest says %q.", firstLine(newest.Content.String()))})
	}
	return nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// upper is a tool that writes text in capitals, many times when there is a lot to say.
type upper struct{}

func (upper) Spec() continuo.ToolSpec {
	return continuo.ToolSpec{Name: "test.upper", Description: "Writes text in capitals.", Parameters: json.RawMessage(`{"type":"object"}`)}
}

func (upper) Run(_ context.Context, call tool.Call) tool.Result {
	var arguments struct {
		Text string `json:"text"`
	}
	if json.Unmarshal([]byte(call.Arguments), &arguments) != nil || arguments.Text == "" {
		return tool.Failure("there is no text")
	}
	if arguments.Text == "much" {
		return tool.Result{Outcome: "Wrote much", Content: strings.Repeat("MUCH\n", 1000)}
	}
	return tool.Result{Outcome: "Wrote it", Content: strings.ToUpper(arguments.Text)}
}

// newEngine makes an engine over a store in memory, with the obedient model unless options say otherwise.
func newEngine(t *testing.T, options engine.Options) *engine.Engine {
	t.Helper()
	return engineOver(t, storetest.NewMemory(), options)
}

func engineOver(t *testing.T, store maintenance.Store, options engine.Options) *engine.Engine {
	t.Helper()
	return engineWith(t, store, continuo.LogOptions{}, options)
}

// engineWith makes an engine over a store, which it closes, and a log of it, with objects in memory unless
// the log's options say otherwise.
func engineWith(t *testing.T, store maintenance.Store, logOptions continuo.LogOptions, options engine.Options) *engine.Engine {
	t.Helper()
	if logOptions.Objects == nil {
		logOptions.Objects = storetest.NewObjects()
	}
	if options.Models == nil {
		options.Models = map[string]engine.Upstream{
			"obedient": {Model: &fakeModel{"gpt-4o", obedient}}, "other": {Model: &fakeModel{"gpt-4o-mini", obedient}},
			smallModel: {Model: &fakeModel{smallModel, obedient}},
		}
		options.Default = "obedient"
	}
	if options.Policy.Otherwise == "" {
		options.Policy.Otherwise = tool.Allow
	}
	if options.Prompts.Dir == "" {
		options.Prompts = prompt.Prompts{Dir: "testdata/prompts"}
	}
	if options.Archivist == nil {
		options.Archivist = &maintenance.Archivist{Store: store, Objects: logOptions.Objects}
	}
	log := continuo.NewLog(store, logOptions)
	options.Index = store
	made, err := engine.New(log, options, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := made.Close(t.Context()); err != nil { // it is over: what a test left in progress is interrupted
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return made
}

// withModel is the options of an engine that has one model.
func withModel(m model.Model) engine.Options {
	return engine.Options{Models: map[string]engine.Upstream{"only": {Model: m}}, Default: "only"}
}

// newServer makes a server over an engine with the obedient model and its tool.
func newServer(t *testing.T) http.Handler {
	return New(newEngine(t, engine.Options{Tools: tool.Set{upper{}}}), Options{})
}

// reply is an answer of the server.
type reply struct {
	t      *testing.T
	status int
	header http.Header
	body   []byte
}

// ask sends a request to a handler, without a network, and holds the answer against openapi.json.
func ask(t *testing.T, handler http.Handler, method, target, body string, header ...string) *reply {
	t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	request := httptest.NewRequest(method, "http://localhost:8787"+target, reader)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			request.Host = header[i+1]
		}
		request.Header.Del(header[i])
		if header[i+1] != "" {
			request.Header.Set(header[i], header[i+1])
		}
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	answer := &reply{t, recorder.Code, recorder.Header(), recorder.Body.Bytes()}
	if !strings.HasPrefix(answer.header.Get("X-Request-Id"), "req_") {
		t.Errorf("%s %s: no X-Request-Id", method, target)
	}
	checkDescribed(t, method, target, answer)
	return answer
}

// into decodes the answer, which must have the status.
func (r *reply) into(status int, value any) {
	r.t.Helper()
	if r.status != status {
		r.t.Fatalf("status %d, want %d: %s", r.status, status, r.body)
	}
	if err := json.Unmarshal(r.body, value); err != nil {
		r.t.Fatalf("decode %s: %v", r.body, err)
	}
}

// errorBody is an error as clients see it.
type errorBody struct {
	Error struct {
		Type, Code, Message string
		Param               *string
		Reason              string
	}
	TurnID         string `json:"turn_id"`
	ConversationID string `json:"conversation_id"`
	Response       string
}

// failed checks that the answer is an error with this status, code and param ("" for null).
func (r *reply) failed(status int, code, param string) errorBody {
	r.t.Helper()
	var body errorBody
	var members struct{ Error map[string]json.RawMessage }
	r.into(status, &body)
	_ = json.Unmarshal(r.body, &members)
	for _, name := range []string{"type", "code", "message", "param"} {
		if members.Error[name] == nil {
			r.t.Errorf("the error has no %s: %s", name, r.body)
		}
	}
	have := ""
	if body.Error.Param != nil {
		have = *body.Error.Param
	}
	if body.Error.Code != code || have != param {
		r.t.Errorf("code %q, param %q; want %q, %q: %s", body.Error.Code, have, code, param, r.body)
	}
	if strings.Contains(body.Error.Message, "goroutine") || strings.Contains(body.Error.Message, "Go value") || strings.Contains(body.Error.Message, "Go struct") {
		r.t.Errorf("the message tells of the program: %s", body.Error.Message)
	}
	return body
}

type chatReply struct {
	SessionID      string `json:"session_id"`
	ConversationID string `json:"conversation_id"`
	TurnID         string `json:"turn_id"`
	Response       string
	Context        struct {
		View          string
		Entries, Kept int64
		Epoch         int64
	}
}

func sendMessage(t *testing.T, handler http.Handler, session, message string) chatReply {
	t.Helper()
	var answer chatReply
	body := rawjson.MustMarshal(map[string]string{"session_id": session, "message": message})
	ask(t, handler, "POST", "/chat", string(body)).into(200, &answer)
	return answer
}

// entriesOf reads a whole log through the API, oldest first.
func entriesOf(t *testing.T, handler http.Handler, conversation string) []continuo.Entry {
	t.Helper()
	var all []continuo.Entry
	for cursor := ""; ; {
		var page struct {
			Data       []continuo.Entry
			HasMore    bool    `json:"has_more"`
			NextCursor *string `json:"next_cursor"`
		}
		target := "/api/conversations/" + conversation + "/entries?limit=7"
		if cursor != "" {
			target += "&cursor=" + cursor
		}
		ask(t, handler, "GET", target, "").into(200, &page)
		all = append(all, page.Data...)
		if !page.HasMore {
			return all
		}
		cursor = *page.NextCursor
	}
}

// checkLog checks that a log is gapless and that the rules accept it.
func checkLog(t *testing.T, entries []continuo.Entry) {
	t.Helper()
	var group continuo.Group
	for i := range entries {
		if entries[i].Seq != int64(i+1) {
			t.Fatalf("entry %d has seq %d", i+1, entries[i].Seq)
		}
		if err := group.Accept(&entries[i]); err != nil {
			t.Fatalf("entry %d: %v", i+1, err)
		}
	}
}

// within fails a test that hangs, with a clear message, before the run times out.
func within[T any](t *testing.T, what string, ready <-chan T) T {
	t.Helper()
	select {
	case value := <-ready:
		return value
	case <-time.After(5 * time.Minute):
		t.Fatalf("%s did not happen", what)
		panic("unreachable")
	}
}

func pretty(body []byte) string {
	var out bytes.Buffer
	if json.Indent(&out, bytes.TrimSpace(body), "", "  ") != nil {
		return string(body)
	}
	return out.String()
}
