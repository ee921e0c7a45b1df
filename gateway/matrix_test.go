package gateway_test

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/continuo-log/continuo/model"
)

var updateMatrix = flag.Bool("update-matrix", false, "write the table of docs/gateway.md")

// The features of the matrix; each cell says what a client sees of it.
var matrixFeatures = []string{"text", "parallel calls", "their results", "images", "reasoning", "stop at length", "refusal", "usage"}

// matrixUpstream is an upstream of each protocol that answers with what it was last given.
type matrixUpstream struct {
	*httptest.Server
	answer atomic.Pointer[scripted]
	sent   atomic.Pointer[string] // the newest request's body
}

func newMatrixUpstream(t *testing.T) *matrixUpstream {
	u := &matrixUpstream{}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		text := string(body)
		u.sent.Store(&text)
		v, streamed := vendorOf(r, body)
		w.Header().Set("Content-Type", "application/json")
		if streamed {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		_, _ = io.WriteString(w, u.answer.Load().answerOf(v.protocol, streamed))
	}))
	t.Cleanup(u.Close)
	return u
}

// matrixCase is a client before an upstream.
type matrixCase struct {
	g        *testGateway
	u        *matrixUpstream
	c        *client
	upstream string
	streamed bool
}

// post sends a request, and returns what the client sees, and what the upstream was sent.
func (m *matrixCase) post(t *testing.T, answer scripted, messages, tools string) (got shown, sent string) {
	t.Helper()
	m.u.answer.Store(&answer)
	path := m.c.path
	if m.streamed && m.c.stream != "" {
		path = m.c.stream
	}
	if strings.Contains(path, "%s") {
		path = fmt.Sprintf(path, m.upstream)
	}
	response, body := m.g.post(t, path, m.c.ask(m.upstream, m.streamed, messages, tools))
	if response.StatusCode != http.StatusOK {
		t.Errorf("%s: got %d %s", path, response.StatusCode, body)
		return shown{}, ""
	}
	if text := m.u.sent.Load(); text != nil {
		sent = *text
	}
	return m.c.read(dataOf(body, m.streamed), m.streamed), sent
}

// hello is a first message that no other case begins with.
func (m *matrixCase) hello(feature string) string {
	return m.c.say(fmt.Sprintf("%s through %s, %s, %v", feature, m.c.name, m.upstream, m.streamed))
}

const yes = "yes"

// cell says what the client sees of a feature: yes for all of it.
func (m *matrixCase) cell(t *testing.T, feature string) string {
	calls := []scriptedCall{{"call_1", "look", `{"at":1}`}, {"call_2", "see", `{"at":2}`}}
	expect := func(holds bool, otherwise string) string {
		if holds {
			return yes
		}
		return otherwise
	}
	switch feature {
	case "text":
		got, _ := m.post(t, scripted{text: allWords, finish: "stop"}, m.hello(feature), "")
		return expect(got.text == allWords && got.finish == m.c.finish["stop"], fmt.Sprintf("%q, %s", got.text, got.finish))
	case "parallel calls":
		got, sent := m.post(t, scripted{text: "Look.", calls: calls, finish: "tools"}, m.hello(feature), m.c.tools)
		return expect(slices.Equal(got.calls, calls) && got.text == "Look." && got.finish == m.c.finish["tools"] && strings.Contains(sent, `"look"`) && strings.Contains(sent, `"at"`), fmt.Sprintf("%+v", got))
	case "their results":
		first := m.hello(feature)
		m.post(t, scripted{text: "Look.", calls: calls, finish: "tools"}, first, m.c.tools)
		got, sent := m.post(t, scripted{text: "Both.", finish: "stop"}, first+","+m.c.calls(calls)+","+m.c.results(calls), m.c.tools)
		return expect(got.text == "Both." && strings.Count(sent, "seen look") == 1 && strings.Count(sent, "seen see") == 1 && strings.Count(sent, "Look.") == 1, fmt.Sprintf("%+v of %s", got, sent))
	case "images":
		got, sent := m.post(t, scripted{text: "A pixel.", finish: "stop"}, m.hello(feature)+","+m.c.image, "")
		return expect(got.text == "A pixel." && strings.Count(sent, pixel) == 1, fmt.Sprintf("%+v of %s", got, sent))
	case "reasoning":
		got, _ := m.post(t, scripted{reasoning: "Hm. So.", text: "Then.", finish: "stop"}, m.hello(feature), "")
		return expect(got.reasoning == "Hm. So." && got.text == "Then.", fmt.Sprintf("%+v", got))
	case "stop at length":
		got, _ := m.post(t, scripted{text: "cut o", finish: "length"}, m.hello(feature), "")
		return expect(got.text == "cut o" && got.finish == m.c.finish["length"], fmt.Sprintf("%+v", got))
	case "refusal":
		got, _ := m.post(t, scripted{text: "I cannot.", finish: "refusal"}, m.hello(feature), "")
		said := got.text + got.refusal
		switch {
		case said != "I cannot.":
			return fmt.Sprintf("%+v", got)
		case got.finish == m.c.finish["refusal"] || got.refusal != "":
			return yes
		case got.finish == m.c.finish["stop"] && m.upstream == model.ProtocolResponses:
			return "as text" // its refusal is a text with a mark, and the answer is complete
		}
		return fmt.Sprintf("%+v", got)
	}
	got, _ := m.post(t, scripted{text: "Counted.", finish: "stop"}, m.hello(feature), "")
	counted := got.input == inputTokens && got.cached == cachedTokens && got.output == outputTokens
	knows := m.c.name != "messages" && m.upstream != model.ProtocolAnthropic // its usage does not count the reasoning
	return expect(counted && (!knows || got.reasoningCounted == reasoningTokens), fmt.Sprintf("%+v", got))
}

// Each endpoint before an upstream of each protocol, streamed and whole: what the client sees is in the table of
// docs/gateway.md.
func TestEachEndpointBeforeEachUpstream(t *testing.T) {
	u := newMatrixUpstream(t)
	g := newVendorsGateway(t, u.URL)
	var upstreams []string
	for _, v := range vendors {
		upstreams = append(upstreams, v.protocol)
	}
	table := "| endpoint | feature | `" + strings.Join(upstreams, "` | `") + "` |\n|---|---|" + strings.Repeat("---|", len(upstreams)) + "\n"
	clients := matrixRows()
	for i := range clients {
		for _, feature := range matrixFeatures {
			table += fmt.Sprintf("| %s | %s |", clients[i].name, feature)
			for _, upstream := range upstreams {
				streamed, whole := &matrixCase{g, u, &clients[i], upstream, true}, &matrixCase{g, u, &clients[i], upstream, false}
				cell := streamed.cell(t, feature)
				if other := whole.cell(t, feature); other != cell {
					cell = "streamed: " + cell + "; whole: " + other
				}
				if cell != yes && cell != "as text" {
					t.Errorf("%s through %s before %s: %s", feature, clients[i].name, upstream, cell)
				}
				table += " " + cell + " |"
			}
			table += "\n"
		}
	}
	checkTable(t, table)
}

// The pieces of several calls may alternate: each client puts its calls together as they were.
func TestPiecesOfCallsThatAlternate(t *testing.T) {
	piece := func(index int, arguments string) string {
		return chatChunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, index, quoted(arguments)), "null")
	}
	answer := chatChunk(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"look","arguments":""}}]}`, "null") + piece(0, `{"at"`) +
		chatChunk(`{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"see","arguments":""}}]}`, "null") + piece(1, `{"at":`) + piece(0, `:1}`) + piece(1, `2}`) +
		chatChunk("{}", `"tool_calls"`) + data("[DONE]")
	want := []scriptedCall{{"a", "look", `{"at":1}`}, {"b", "see", `{"at":2}`}}
	for _, c := range matrixRows() {
		g := newVendorsGateway(t, newUpstream(t, stream(answer)).URL)
		path := c.path
		if c.stream != "" {
			path = fmt.Sprintf(c.stream, model.ProtocolOpenAIChat)
		}
		_, body := g.post(t, path, c.ask(model.ProtocolOpenAIChat, true, c.say("hi"), c.tools))
		if got := c.read(dataOf(body, true), true); !slices.Equal(got.calls, want) {
			t.Errorf("%s: got %+v of %s", c.name, got.calls, body)
		}
	}
}

// checkTable compares the table of docs/gateway.md with the one that holds.
func checkTable(t *testing.T, table string) {
	const file, begin, end = "../docs/gateway.md", "<!-- matrix -->\n", "<!-- /matrix -->\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	written, after, closed := strings.Cut(rest, end)
	switch {
	case !found || !closed:
		t.Fatalf("%s has no table between %q and %q", file, begin, end)
	case *updateMatrix:
		if err := os.WriteFile(file, []byte(before+begin+table+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
	case written != table:
		t.Errorf("%s has\n%s, what holds is\n%s; run the test with -update-matrix", file, written, table)
	}
}
