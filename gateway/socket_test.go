package gateway_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// socket is a client's WebSocket connection.
type socket struct {
	t    *testing.T
	conn *websocket.Conn
}

func (g *testGateway) dial(t *testing.T) *socket {
	t.Helper()
	conn, response, err := websocket.Dial(t.Context(), g.URL+"/v1/responses", nil)
	if err != nil {
		t.Fatal(err)
	}
	if response.Body != nil {
		_ = response.Body.Close()
	}
	conn.SetReadLimit(-1)
	t.Cleanup(func() { _ = conn.CloseNow() })
	return &socket{t, conn}
}

func (s *socket) send(message string) {
	s.t.Helper()
	if err := s.conn.Write(s.t.Context(), websocket.MessageText, []byte(message)); err != nil {
		s.t.Fatal(err)
	}
}

// socketEvent is an event that came as a message.
type socketEvent struct {
	wireEvent
	Status int
	Error  *struct{ Code, Message, Type, Param string }
}

// turn sends a message and reads the events of the response to it.
func (s *socket) turn(message string) ([]wireEvent, socketEvent) {
	s.t.Helper()
	s.send(message)
	var events []wireEvent
	for {
		_, data, err := s.conn.Read(s.t.Context())
		if err != nil {
			s.t.Fatalf("after %v: %v", events, err)
		}
		event := decode[socketEvent](s.t, string(data))
		if event.SequenceNumber != len(events) {
			s.t.Errorf("the event %d comes after %d", event.SequenceNumber, len(events)-1)
		}
		events = append(events, event.wireEvent)
		if slices.Contains([]string{"response.completed", "response.incomplete", "response.failed", "error"}, event.Type) {
			return events, event
		}
	}
}

// completed is turn for a response that is expected to be completed.
func (s *socket) completed(message string) shownResponse {
	s.t.Helper()
	events, last := s.turn(message)
	if last.Type != "response.completed" {
		s.t.Fatalf("%s: the last event is %+v", message, last)
	}
	final := decode[shownResponse](s.t, string(last.Response))
	if len(final.Output) > 0 {
		checkLifecycle(s.t, events, final)
	}
	return final
}

// refused is turn for a message that is answered by an error, of any code where none is given.
func (s *socket) refused(message string, status int, code string) {
	s.t.Helper()
	if _, last := s.turn(message); last.Error == nil || code != "" && last.Error.Code != code || last.Status != status || last.Error.Message == "" {
		s.t.Errorf("%s: got %+v (%+v), want %d %s", message, last, last.Error, status, code)
	}
}

// closed returns how the server closed the connection.
func (s *socket) closed() websocket.StatusCode {
	s.t.Helper()
	for {
		if _, _, err := s.conn.Read(s.t.Context()); err != nil {
			return websocket.CloseStatus(err)
		}
	}
}

// responsesStream is a stream of the Responses API, whose response has an id of the upstream's.
func responsesStream(id, text string) string {
	item := fmt.Sprintf(`{"id":"msg_%s","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":%q,"annotations":[]}]}`, id, text)
	hidden := `{"id":"rs_1","type":"reasoning","summary":[]}`
	stream := ""
	for _, event := range []string{
		fmt.Sprintf(`{"type":"response.created","sequence_number":0,"response":{"id":"resp_%s","status":"in_progress","output":[]}}`, id),
		fmt.Sprintf(`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":%s}`, hidden),
		fmt.Sprintf(`{"type":"response.output_item.done","sequence_number":2,"output_index":0,"item":%s}`, hidden),
		fmt.Sprintf(`{"type":"response.output_item.added","sequence_number":3,"output_index":1,"item":%s}`, item),
		fmt.Sprintf(`{"type":"response.output_item.done","sequence_number":4,"output_index":1,"item":%s}`, item),
		fmt.Sprintf(`{"type":"response.completed","sequence_number":5,"response":{"id":"resp_%s","status":"completed","output":[%s,%s],"usage":{"input_tokens":3,"output_tokens":2,"total_tokens":5}}}`, id, hidden, item),
	} {
		kind, _, _ := strings.Cut(strings.TrimPrefix(event, `{"type":"`), `"`)
		stream += "event: " + kind + "\ndata: " + event + "\n\n"
	}
	return stream
}

// A connection creates one response after the other, and continues its own although they are not stored: with the whole
// input, and with what the model answered.
func TestAConnectionContinuesItsOwnResponses(t *testing.T) {
	u := newUpstream(t, stream(chatStream), stream(chatStream), stream(chatStream))
	g := newGateway(t, u)
	s := g.dial(t)
	first := s.completed(`{"type":"response.create","model":"gpt","store":false,"input":"one","instructions":"Be brief."}`)
	second := s.completed(fmt.Sprintf(`{"type":"response.create","model":"gpt","store":false,"input":[{"role":"user","content":"two"}],"instructions":"Be brief.","previous_response_id":%q}`, first.ID))
	if len(second.Output) != 1 || second.Output[0].Content[0].Text != "Grüß Gott" {
		t.Errorf("the second response is %+v", second)
	}
	s.completed(`{"type":"response.create","model":"gpt","store":false,"input":"three"}`)
	for _, want := range [][2][]string{{{"one", "Be brief."}, {"two"}}, {{"one", "Grüß Gott", "two"}, {"three"}}, {{"three"}, {"one", "two"}}} {
		sent := (<-u.requests).body
		for _, text := range want[0] {
			if !strings.Contains(sent, text) {
				t.Errorf("the upstream got %s without %q", sent, text)
			}
		}
		for _, text := range want[1] {
			if strings.Contains(sent, text) {
				t.Errorf("the upstream got %s with %q", sent, text)
			}
		}
	}
	if conversationOf(first.ID) != conversationOf(second.ID) {
		t.Errorf("the responses %s and %s are in different conversations", first.ID, second.ID)
	}
	s.refused(fmt.Sprintf(`{"type":"response.create","model":"gpt","input":"x","previous_response_id":%q}`, second.ID), 400, "previous_response_not_found")
	g.dial(t).refused(fmt.Sprintf(`{"type":"response.create","model":"gpt","input":"x","previous_response_id":%q}`, first.ID), 400, "previous_response_not_found")
}

// Where the upstream speaks the Responses API, its events are the client's, and a continued response is sent to it whole:
// without reasoning that exists nowhere.
func TestAConnectionForwards(t *testing.T) {
	u := newUpstream(t, stream(responsesStream("a", "first")), stream(responsesStream("b", "second")))
	g := newGateway(t, u)
	s := g.dial(t)
	if first := s.completed(`{"type":"response.create","model":"o4","store":false,"input":"one","x_unknown":[1,2]}`); first.ID != "resp_a" {
		t.Errorf("the response is %s", first.ID)
	}
	s.completed(`{"type":"response.create","model":"o4","store":false,"input":"two","previous_response_id":"resp_a"}`)
	if sent := <-u.requests; !strings.Contains(sent.body, `"x_unknown":[1,2]`) || !strings.Contains(sent.body, `"stream":true`) || strings.Contains(sent.body, "response.create") || sent.header.Get("Sec-Websocket-Key") != "" {
		t.Errorf("the upstream got %+v", sent)
	}
	sent := decode[struct {
		Input    []struct{ Type, Role string }
		Previous *string `json:"previous_response_id"`
	}](t, (<-u.requests).body)
	if want := []struct{ Type, Role string }{{"message", "user"}, {"message", "assistant"}, {"message", "user"}}; !slices.Equal(sent.Input, want) || sent.Previous != nil {
		t.Errorf("the upstream got %+v", sent)
	}
}

// A response that is not stored, of a conversation whose history the server keeps, is continued by its connection alone.
func TestAConnectionContinuesWhatIsNotStoredOfAKeptHistory(t *testing.T) {
	u := newUpstream(t, stream(chatStream), stream(chatStream), stream(chatStream))
	g := newGateway(t, u)
	s := g.dial(t)
	stored := s.completed(`{"type":"response.create","model":"gpt","input":"one"}`)
	local := s.completed(fmt.Sprintf(`{"type":"response.create","model":"gpt","input":"two","store":false,"previous_response_id":%q}`, stored.ID))
	again := s.completed(fmt.Sprintf(`{"type":"response.create","model":"gpt","input":"three","store":false,"previous_response_id":%q}`, local.ID))
	if conversationOf(again.ID) != conversationOf(stored.ID) {
		t.Errorf("%s and %s are in different conversations", stored.ID, again.ID)
	}
	for range 2 {
		<-u.requests
	}
	for _, text := range []string{"one", "two", "three"} {
		if sent := (<-u.requests).body; !strings.Contains(sent, text) {
			t.Errorf("the upstream got %s without %q", sent, text)
		} else {
			u.requests <- received{body: sent}
		}
	}
	g.dial(t).refused(fmt.Sprintf(`{"type":"response.create","model":"gpt","input":"x","previous_response_id":%q}`, again.ID), 400, "previous_response_not_found")
}

// After a continuation that failed, the response that it named is forgotten: the client begins again with the whole input.
func TestAFailedContinuationForgetsTheResponse(t *testing.T) {
	g := newGateway(t, newUpstream(t, stream(chatStream)))
	s := g.dial(t)
	first := s.completed(`{"type":"response.create","model":"gpt","store":false,"input":"one"}`)
	s.refused(fmt.Sprintf(`{"type":"response.create","model":"gpt","store":false,"previous_response_id":%q,"input":[{"type":"function_call_output","call_id":"none","output":"x"}]}`, first.ID), 400, "")
	s.refused(fmt.Sprintf(`{"type":"response.create","model":"gpt","store":false,"previous_response_id":%q,"input":"two"}`, first.ID), 400, "previous_response_not_found")
}

// A request that generates nothing asks no model, and is continued as a response is.
func TestARequestThatGeneratesNothing(t *testing.T) {
	u := newUpstream(t, stream(chatStream))
	s := newGateway(t, u).dial(t)
	warm := s.completed(`{"type":"response.create","model":"gpt","generate":false,"input":"one","instructions":"Be brief."}`)
	if warm.ID == "" || len(warm.Output) != 0 {
		t.Errorf("the response is %+v", warm)
	}
	s.completed(fmt.Sprintf(`{"type":"response.create","model":"gpt","input":"two","previous_response_id":%q}`, warm.ID))
	if sent := (<-u.requests).body; !strings.Contains(sent, "one") || !strings.Contains(sent, "two") {
		t.Errorf("the upstream got %s", sent)
	}
}

// What cannot be answered is answered by an event, and the connection goes on.
func TestRefusedMessages(t *testing.T) {
	g := newGateway(t, newUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"error":{"message":"slow down","type":"rate_limit_error","code":"rate_limit_exceeded","param":null}}`)
	}, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, "<html>")
	}, stream(strings.SplitAfter(responsesStream("a", "cut"), "\n\n")[0]), stream(chatStream)))
	s := g.dial(t)
	for _, test := range []struct {
		message string
		status  int
		code    string
	}{
		{"hello", 400, ""},
		{`[1]`, 400, ""},
		{`{"model":"gpt","input":"x"}`, 400, ""},
		{`{"type":"session.update","model":"gpt","input":"x"}`, 400, ""},
		{`{"type":"response.create","input":"x"}`, 400, ""},
		{`{"type":"response.create","model":"nope","input":"x"}`, 404, "model_not_found"},
		{`{"type":"response.create","model":"gpt","input":"x","previous_response_id":"resp_nope"}`, 400, "previous_response_not_found"},
		{`{"type":"response.create","model":"o4","store":false,"input":"x"}`, 429, "rate_limit_exceeded"},
	} {
		s.refused(test.message, test.status, test.code)
	}
	for range 2 {
		if _, last := s.turn(`{"type":"response.create","model":"o4","store":false,"input":"x"}`); last.Error == nil || last.Status < 500 {
			t.Errorf("got %+v, want an error", last)
		}
	}
	s.completed(`{"type":"response.create","model":"gpt","input":"x"}`)
}

// Messages that break the limits close the connection, for the reason that the protocol has for it.
func TestMessagesAreLimited(t *testing.T) {
	held, answered := make(chan struct{}), make(chan struct{}, 1)
	g := newGateway(t, newUpstream(t, func(http.ResponseWriter, *http.Request) { answered <- struct{}{}; <-held }))
	defer close(held)
	g.gateway.LimitSockets(1<<10, 0, 0)
	binary := g.dial(t)
	if err := binary.conn.Write(t.Context(), websocket.MessageBinary, []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	if code := binary.closed(); code != websocket.StatusUnsupportedData {
		t.Errorf("after a binary message: %v", code)
	}
	large := g.dial(t)
	large.send(strings.Repeat(" ", 2<<10))
	if code := large.closed(); code != websocket.StatusMessageTooBig {
		t.Errorf("after a large message: %v", code)
	}
	many := g.dial(t)
	many.send(`{"type":"response.create","model":"gpt","input":"x"}`)
	<-answered
	for range 5 {
		many.send(`{"type":"response.create","model":"gpt","input":"x"}`)
	}
	if code := many.closed(); code != websocket.StatusPolicyViolation {
		t.Errorf("after many messages: %v", code)
	}
}

// When the client leaves, the request to the upstream is cancelled.
func TestAClientThatLeavesItsConnectionCancels(t *testing.T) {
	asked, cancelled := make(chan struct{}), make(chan struct{})
	g := newGateway(t, newUpstream(t, func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
		close(cancelled)
	}))
	s := g.dial(t)
	s.send(`{"type":"response.create","model":"gpt","input":"x"}`)
	<-asked
	_ = s.conn.CloseNow()
	<-cancelled
	g.gateway.Wait(t.Context())
}

// A connection ends at its limit, and when the server shuts down: with a reason, and not in silence.
func TestAConnectionEnds(t *testing.T) {
	g := newGateway(t, newUpstream(t))
	g.gateway.LimitSockets(0, time.Nanosecond, 0)
	old := g.dial(t)
	_, data, err := old.conn.Read(t.Context())
	if event := decode[socketEvent](t, string(data)); err != nil || event.Error == nil || event.Error.Code != "websocket_connection_limit_reached" {
		t.Errorf("at the limit: %s %v", data, err)
	}
	if code := old.closed(); code != websocket.StatusGoingAway {
		t.Errorf("at the limit: %v", code)
	}
	g.gateway.LimitSockets(0, time.Hour, 0)
	idle := g.dial(t)
	g.engine.Drain()
	if code := idle.closed(); code != websocket.StatusGoingAway {
		t.Errorf("at the end of the server: %v", code)
	}
	g.gateway.Wait(t.Context())
}

// A client that does not answer pings is disconnected.
func TestASilentClientIsDisconnected(t *testing.T) {
	g := newGateway(t, newUpstream(t))
	g.gateway.LimitSockets(0, 0, time.Millisecond)
	conn, err := net.Dial("tcp", g.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET /v1/responses HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	if _, err := io.Copy(io.Discard, bufio.NewReader(conn)); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Logf("the connection ended: %v", err)
	}
	g.gateway.Wait(t.Context())
}

// The handshake is refused in OpenAI's form where it is none, and for the pages of other sites.
func TestRefusedHandshakes(t *testing.T) {
	g := newGateway(t, newUpstream(t))
	if got := g.get(t, "/v1/responses"); got.status != http.StatusUpgradeRequired || !json.Valid([]byte(got.body)) || !strings.Contains(got.body, "upgrade_required") {
		t.Errorf("without an upgrade: %+v", got)
	}
	_, response, err := websocket.Dial(t.Context(), g.URL+"/v1/responses", &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {"http://evil.example"}}})
	if err == nil || response.StatusCode != http.StatusForbidden {
		t.Errorf("of another origin: %v", err)
	}
}

// Clients ask with HEAD whether the server is there.
func TestProbesOfClients(t *testing.T) {
	g := newGateway(t, newUpstream(t))
	for path, status := range map[string]int{"/api/hello": 200, "/v1/messages": 200, "/v1/responses": 200, "/v1/models": 200, "/v1/nothing": 404} {
		if got := g.call(t, http.MethodHead, path, ""); got.status != status || got.body != "" {
			t.Errorf("HEAD %s: got %+v", path, got)
		}
	}
}
