package gateway_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/gateway"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/anthropic"
	"github.com/continuo-log/continuo/model/gemini"
	"github.com/continuo-log/continuo/model/openai"
	modelresponses "github.com/continuo-log/continuo/model/responses"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/turn"
)

// recordedRequest is a line of the recorded traffic of agents; the README beside it describes them.
type recordedRequest struct {
	Agent, Scenario, Method, Path, Kind string
	Seq                                 int
	Headers                             map[string]string `json:"request_headers"`
	Body                                string            `json:"request_body"`
	Status                              int
	Answered                            map[string]any `json:"response_headers"`
	Answer                              string         `json:"response_body"`
	Closed                              bool           `json:"client_closed"`
}

// eachRecorded calls f for each recorded request of an agent, or skips the test.
func eachRecorded(t *testing.T, agent string, f func(line *recordedRequest)) {
	t.Helper()
	folder := os.Getenv("CONTINUO_DATA")
	if folder == "" {
		folder = filepath.Join("..", "..", "shared", "data")
	}
	packed, err := os.Open(filepath.Join(folder, "agent-traffic", agent+".jsonl.gz"))
	if err != nil {
		t.Skipf("SKIPPED: no recorded traffic of %s in %s; set CONTINUO_DATA to the folder that holds agent-traffic", agent, folder)
	}
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReaderSize(unpacked, 1<<20)
	for {
		text, err := lines.ReadBytes('\n')
		if len(text) > 0 {
			line := &recordedRequest{}
			if err := json.Unmarshal(text, line); err != nil {
				t.Fatal(err)
			}
			f(line)
		}
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The recorded requests of agents reach the upstream byte for byte, and its answers the agents; each request that was
// answered is in the log and can be shown again.
func TestTheTrafficOfAgentsIsForwardedUnchanged(t *testing.T) {
	for _, agent := range []string{"claude-code", "codex", "gemini", "opencode", "qwen"} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			var line *recordedRequest
			var sent string
			upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				sent = string(body)
				for name, value := range line.Answered {
					w.Header().Set(name, fmt.Sprint(value))
				}
				w.Header().Del("Content-Length")
				w.Header().Del("Transfer-Encoding")
				w.Header().Del("Connection")
				w.WriteHeader(line.Status)
				_, _ = io.WriteString(w, line.Answer)
			}))
			t.Cleanup(upstream.Close)
			g := newForwardingGateway(t, upstream.URL)
			forwarded := 0
			eachRecorded(t, agent, func(next *recordedRequest) {
				if next.Method != http.MethodPost || next.Status == 0 || next.Kind == "probe" {
					return
				}
				line, sent = next, ""
				where := fmt.Sprintf("%s %d", line.Scenario, line.Seq)
				header := []string{"X-Scenario", line.Scenario}
				for name, value := range line.Headers {
					header = append(header, name, value)
				}
				response, got := g.post(t, line.Path, line.Body, header...)
				forwarded++
				if sent != line.Body {
					t.Errorf("%s: the upstream got %d bytes, not the %d that the agent sent: %.300s", where, len(sent), len(line.Body), got)
				}
				whole := line.Answer
				if line.Status == http.StatusOK && strings.Contains(whole, "\n\n") && !strings.HasSuffix(whole, "\n\n") {
					whole = whole[:strings.LastIndex(whole, "\n\n")+2] // cut in an event, which is not sent on
				}
				rest, same := strings.CutPrefix(got, whole)
				switch {
				case !same:
					t.Errorf("%s: the agent got %.300s\nwant %.300s", where, got, line.Answer)
				case response.StatusCode != line.Status:
					t.Errorf("%s: the status is %d, want %d", where, response.StatusCode, line.Status)
				case rest != "" && !strings.Contains(rest, `"error"`):
					t.Errorf("%s: the agent got %q after the answer", where, rest)
				}
				g.checkRecorded(t, where, response, line)
			})
			t.Logf("%d requests", forwarded)
			g.checkReplays(t, agent)
		})
	}
}

// checkReplays checks that the recorded answers of all conversations can be asked for again: of a model that speaks another
// protocol, with what the client sent beside its messages.
func (g *testGateway) checkReplays(t *testing.T, agent string) {
	t.Helper()
	found, err := g.log.Conversations(t.Context(), continuo.ConversationQuery{ProjectID: continuo.DefaultProject, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	request := engine.Replay{DryRun: true, Variants: []engine.ReplayVariant{
		{Name: "whole", Variant: engine.RequestVariant{Model: "default"}},
		{Name: "codex", Variant: engine.RequestVariant{Model: "default", View: "codex"}},
	}}
	for _, conversation := range found {
		request.Conversations = append(request.Conversations, engine.ReplayConversation{Conversation: conversation})
	}
	built, skipped, withPrompt := 0, map[string]int{}, 0
	err = g.engine.Replays.Run(t.Context(), request, func(result engine.ReplayResult) error {
		switch result.State {
		case "built":
			built++
			if result.Replayed.Request.Totals.PromptSize.Tokens > 0 {
				withPrompt++
			}
		case "skipped":
			skipped[result.Problem]++
		default:
			t.Errorf("%s entry %d, %s: %s: %s", agent, result.Seq, result.Variant, result.State, result.Problem)
		}
		return nil
	})
	if err != nil || built == 0 || withPrompt == 0 {
		t.Errorf("%d requests were built again, %d of them with a prompt: %v", built, withPrompt, err)
	}
	t.Logf("%d requests were built again, skipped: %v", built, skipped)
}

// checkRecorded checks that the newest answer of a request's conversation shows the request again.
func (g *testGateway) checkRecorded(t *testing.T, where string, response *http.Response, line *recordedRequest) {
	t.Helper()
	conversation, err := g.log.Conversation(t.Context(), response.Header.Get("X-Conversation-ID"))
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	for entry, err := range g.log.Read(t.Context(), conversation, continuo.Range{Backward: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if entry.Round == nil {
			t.Fatalf("%s: the log ends with %s %.80q", where, entry.Role, entry.Content.String())
		}
		again, same, err := turn.Replay(t.Context(), g.log, conversation, entry.Round, turn.ReadWindowView)
		if err != nil || !same || string(again.Body) != line.Body {
			t.Errorf("%s: the request cannot be shown again: %v", where, err)
		}
		return
	}
}

// newForwardingGateway is a gateway that serves every model at an upstream that speaks the client's protocol.
func newForwardingGateway(t *testing.T, url string) *testGateway {
	store := storetest.NewMemory()
	log := continuo.NewLog(store, continuo.LogOptions{})
	serve := func(name, protocol string) (engine.Upstream, bool) {
		switch protocol {
		case model.ProtocolAnthropic:
			return engine.Upstream{Model: anthropic.New(anthropic.Options{BaseURL: url, Name: name})}, true
		case model.ProtocolGemini:
			return engine.Upstream{Model: gemini.New(gemini.Options{BaseURL: url, Name: name})}, true
		case model.ProtocolResponses:
			return engine.Upstream{Model: modelresponses.New(modelresponses.Options{BaseURL: url + "/v1", Name: name})}, true
		}
		return engine.Upstream{Model: openai.New(openai.Options{BaseURL: url + "/v1", Name: name})}, true
	}
	first, _ := serve("default", "")
	e, err := engine.New(log, engine.Options{Models: map[string]engine.Upstream{"default": first}, Default: "default", Serve: serve}, nil)
	if err != nil {
		t.Fatal(err)
	}
	g := &testGateway{log: log, engine: e, Server: httptest.NewServer(gateway.New(e, log, store, gateway.Options{}).Handler(continuo.Scope{ProjectID: continuo.DefaultProject}))}
	t.Cleanup(func() {
		g.Close()
		_ = e.Close(context.Background())
	})
	return g
}
