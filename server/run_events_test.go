package server

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/tool"
)

// runFrame is an event of a run's stream as it was sent.
type runFrame struct {
	raw      []byte
	id, kind string
	data     []byte
}

// runFrames splits a run's stream, and holds its form and its data against openapi.json.
func runFrames(t *testing.T, stream []byte) []runFrame {
	t.Helper()
	return framesAs(t, stream, "RunStatus", nil)
}

// framesAs splits a stream whose status has a schema of its own, and perhaps some of the live events.
func framesAs(t *testing.T, stream []byte, status string, own map[string]string) []runFrame {
	t.Helper()
	var all []runFrame
	in := &frames{bufio.NewReaderSize(bytes.NewReader(stream), 1<<20)}
	for {
		raw, id, err := in.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, newRunFrame(raw, id))
	}
	checkFrames(t, all, status, own)
	if n := len(all); n == 0 || all[n-1].kind != "end" && all[n-1].kind != "error" {
		t.Fatalf("the stream has no last event: %s", stream)
	}
	return all
}

func newRunFrame(raw []byte, id string) runFrame {
	frame := runFrame{raw: raw, id: id}
	for line := range bytes.Lines(raw) {
		name, value, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(": "))
		switch string(name) {
		case "event":
			frame.kind = string(value)
		case "data":
			frame.data = value
		}
	}
	return frame
}

// checkFrames checks that events are described, that entries come once and in order under their seqs, and
// that a turn's events come after its turn.
func checkFrames(t *testing.T, all []runFrame, status string, own map[string]string) {
	t.Helper()
	d, err := description()
	if err != nil {
		t.Fatal(err)
	}
	var seq int64
	inTurn := false
	for i, frame := range all {
		schema := map[string]string{"entry": "Entry", "status": status, "end": status, "error": "Error"}[frame.kind]
		var entry continuo.Entry
		switch frame.kind {
		case "entry":
			if err := json.Unmarshal(frame.data, &entry); err != nil || entry.Seq <= seq || frame.id != strconv.FormatInt(entry.Seq, 10) {
				t.Errorf("event %d is entry %d under the id %s, after entry %d: %v", i+1, entry.Seq, frame.id, seq, err)
			}
			seq = entry.Seq
		case "end":
			if !strings.HasSuffix(frame.id, api.EndSuffix) || i != len(all)-1 {
				t.Errorf("event %d of %d is the end under the id %s", i+1, len(all), frame.id)
			}
		case "status", "error":
			if frame.id != "" {
				t.Errorf("%s has the id %s", frame.kind, frame.id)
			}
		default:
			inTurn = inTurn || frame.kind == "turn"
			if schema = cmp.Or(own[frame.kind], schemaOf[frame.kind]); frame.id != "" || !inTurn || frame.kind == "done" {
				t.Errorf("event %d is %s", i+1, frame.raw)
			}
		}
		if schema == "" {
			t.Fatalf("event %d is %s", i+1, frame.raw)
		}
		if err := d.validate("/components/schemas/"+schema, frame.data); err != nil {
			t.Errorf("event %s: %v\n%s", frame.kind, err, frame.data)
		}
	}
}

// storedEvents keeps of a run's stream the events that every reader gets: entries, and the states and the end of the run.
func storedEvents(stream []byte) []byte {
	var kept bytes.Buffer
	for frame := range bytes.SplitSeq(stream, []byte("\n\n")) {
		switch newRunFrame(frame, "").kind {
		case "entry", "status", "end", "error":
			kept.Write(append(bytes.TrimSpace(frame), "\n\n"...))
		}
	}
	return kept.Bytes()
}

// normalizeRunStream leaves out of an answer, where it is a run's or a crew's stream, live events and what depends on the
// run's id, which its requests have.
func normalizeRunStream(target string, answer *reply) {
	if (strings.HasPrefix(target, "/api/runs") || strings.HasPrefix(target, "/api/crews")) && answer.header.Get("Content-Type") == "text/event-stream" {
		answer.body = roundSizes.ReplaceAll(storedEvents(answer.body), nil)
	}
}

var roundSizes = regexp.MustCompile(`,"request_bytes":\d+,"estimated_tokens":\d+`)

// startRun begins a run of a workflow through the API.
func startRun(t *testing.T, handler http.Handler, workflow, inputs, session string) continuo.Run {
	t.Helper()
	var status engine.RunStatus
	body := rawjson.MustMarshal(map[string]any{"workflow_id": workflow, "inputs": json.RawMessage(inputs), "session_id": session})
	ask(t, handler, "POST", "/api/runs", string(body)).into(201, &status)
	return status.Run
}

// However often a client is cut off, and whichever process it asks: it gets each entry of the run once and in
// order, and the end.
func TestRunStreamsAreComplete(t *testing.T) {
	a, b := twoEngines(t, withRuns(engine.Options{Tools: tool.Set{upper{}}}))
	here, there := httptest.NewServer(New(a, Options{})), httptest.NewServer(New(b, Options{}))
	defer here.Close()
	defer there.Close()
	run := startRun(t, New(a, Options{}), "report", `{"topic": "tea"}`, "s")
	random := rand.New(rand.NewPCG(3, 4))
	readers := make([]*runReader, 12)
	var reading sync.WaitGroup
	for i := range readers {
		readers[i] = &runReader{urls: []string{here.URL, there.URL}, path: "/api/runs/" + run.ID + "/events", after: random.IntN(4)}
		reading.Go(func() {
			if err := readers[i].read(t.Context()); err != nil {
				t.Errorf("reader %d: %v", i, err)
			}
		})
	}
	reading.Wait()
	var want bytes.Buffer
	for _, entry := range entriesOf(t, New(b, Options{}), "s") {
		if entry.RunID == run.ID {
			fmt.Fprintf(&want, "%d %s\n", entry.Seq, entry.ID)
		}
	}
	for i, reader := range readers {
		if !bytes.Equal(reader.last, readers[0].last) {
			t.Errorf("reader %d received last\n%sreader 0\n%s", i, reader.last, readers[0].last)
		}
		if reader.entries.String() != want.String() || reader.end.State != continuo.RunFinished {
			t.Errorf("reader %d received\n%s and the state %s; the log has\n%s", i, reader.entries.String(), reader.end.State, want.String())
		}
	}
}

// runReader reads a run's stream and drops each connection after some entries.
type runReader struct {
	urls    []string // asked in turn
	path    string
	after   int // how many entries of a connection; 0 for never
	lastID  string
	entries bytes.Buffer // seq and id of each
	last    []byte       // the event end as it was sent
	end     engine.RunStatus
}

func (r *runReader) read(ctx context.Context) error {
	for i := 0; r.end.State == ""; i++ {
		if err := r.connect(ctx, r.urls[i%len(r.urls)]); err != nil {
			return err
		}
	}
	return nil
}

func (r *runReader) connect(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, "GET", url+r.path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Last-Event-ID", r.lastID)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d after %s", response.StatusCode, r.lastID)
	}
	in := &frames{bufio.NewReaderSize(response.Body, 1<<20)}
	for count := 0; r.after == 0 || count < r.after; {
		raw, id, err := in.next()
		if err != nil {
			return fmt.Errorf("after %s: %w", r.lastID, err)
		}
		switch frame := newRunFrame(raw, id); frame.kind {
		case "entry":
			var entry continuo.Entry
			if err := json.Unmarshal(frame.data, &entry); err != nil {
				return err
			}
			fmt.Fprintf(&r.entries, "%d %s\n", entry.Seq, entry.ID)
			r.lastID = id
			count++
		case "end":
			r.last = raw
			return json.Unmarshal(frame.data, &r.end)
		case "error":
			return fmt.Errorf("the stream broke off: %s", frame.data)
		}
	}
	return nil
}

// A client that connects in the middle of a step receives its live events, turn first, and then the entry of its answer.
func TestLiveEventsOfRuns(t *testing.T) {
	gate := newGate()
	options := withModel(gate.model())
	options.Workflows = workflowFolder{"testdata/workflows"}
	handler := New(newEngine(t, options), Options{})
	remote := httptest.NewServer(handler)
	defer remote.Close()
	run := startRun(t, handler, "release", `{"version": "1"}`, "s")
	within(t, "the first step's turn", gate.reached)
	stream := listen(t, newRequest(t, "GET", remote.URL+"/api/runs/"+run.ID+"/events", ""))
	defer stream.Body.Close()        // before the server's Close waits for it
	seen := stream.until(t, "delta") // what is there
	gate.open <- struct{}{}
	for data := ""; !strings.Contains(data, "upon a time"); data = string(seen[len(seen)-1].Data) {
		seen = append(seen, stream.until(t, "delta")...)
	}
	kinds := map[string]int{}
	for i, event := range seen {
		if _, there := kinds[event.Type]; !there {
			kinds[event.Type] = i
		}
	}
	if first, there := kinds["turn"]; !there || first > kinds["delta"] {
		t.Errorf("the live events are %v", kinds)
	}
	var ids api.ChatIDs
	if err := json.Unmarshal(seen[kinds["turn"]].Data, &ids); err != nil || ids.ConversationID != run.ConversationID || ids.TurnID == "" {
		t.Errorf("turn says %s: %v", seen[kinds["turn"]].Data, err)
	}
	for {
		var entry continuo.Entry
		if err := json.Unmarshal(last(stream.until(t, "entry")).Data, &entry); err != nil {
			t.Fatal(err)
		}
		if entry.Role == continuo.Assistant {
			if entry.Content.String() != "Once upon a time" || entry.TurnID != ids.TurnID || entry.RunID != run.ID || entry.NodeID != "prepare" {
				t.Errorf("the answer is %+v", entry)
			}
			return
		}
	}
}

func last[T any](all []T) T { return all[len(all)-1] }

// A run continues when the client that began it disconnects.
func TestRunsSurviveTheirClients(t *testing.T) {
	gate := newGate()
	options := withModel(gate.model())
	options.Workflows = workflowFolder{"testdata/workflows"}
	made := newEngine(t, options)
	handler := New(made, Options{})
	ctx, leave := context.WithCancel(t.Context())
	request := httptest.NewRequestWithContext(ctx, "POST", "http://localhost/api/runs", strings.NewReader(`{"workflow_id": "release", "inputs": {"version": "1"}, "stream": true}`))
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		handler.ServeHTTP(httptest.NewRecorder(), request)
	}()
	within(t, "the first step's turn", gate.reached)
	leave()
	within(t, "the end of the request", gone)
	var page api.List[continuo.Run]
	if ask(t, handler, "GET", "/api/runs?workflow_id=release&state=running", "").into(200, &page); len(page.Data) != 1 {
		t.Fatalf("the runs are %+v", page.Data)
	}
	gate.open <- struct{}{}
	if status := waitForState(t, made, page.Data[0], continuo.RunWaiting); status.Nodes[0].State != "finished" {
		t.Errorf("the state of the run is %+v", status)
	}
}

// Calls of tools in a step are decided on by the run, or at the step's turn.
func TestCallsOfRunsAreDecided(t *testing.T) {
	made, handler := newRunServer(t)
	remote := httptest.NewServer(handler)
	defer remote.Close()
	run := startRun(t, handler, "release", `{"version": "1"}`, "s")
	waitForState(t, made, run, continuo.RunWaiting)
	path := "/api/runs/" + run.ID
	stream := listen(t, newRequest(t, "GET", remote.URL+path+"/events", ""))
	ask(t, handler, "POST", path+"/approvals", `{"node_id": "release", "decision": "approve", "comment": "Go."}`).into(202, &struct{}{})
	stream.until(t, "approval")
	var status engine.RunStatus
	if ask(t, handler, "GET", path, "").into(200, &status); status.State != continuo.RunWaiting || status.TurnID == "" {
		t.Errorf("the state of the run is %+v", status)
	}
	ask(t, handler, "POST", path+"/approvals", `{"decision": "allow", "tool_call_id": "other"}`).failed(404, "not_found", "tool_call_id")
	ask(t, handler, "POST", path+"/approvals", `{"decision": "allow", "tool_call_id": "call_0"}`).into(202, &struct{}{})
	if end := last(stream.until(t, "end")); !bytes.Contains(end.Data, []byte(`"state":"finished"`)) {
		t.Errorf("the run ended as %s", end.Data)
	}
}

// All entries of a run name its workflow, also one that has its id from its file's name.
func TestEntriesNameTheirWorkflow(t *testing.T) {
	made, handler := newRunServer(t)
	run := startRun(t, handler, "plain", `{}`, "s")
	waitForState(t, made, run, continuo.RunFinished)
	for _, entry := range entriesOf(t, handler, "s") {
		if entry.RunID != run.ID || entry.WorkflowID != "plain" {
			t.Errorf("entry %d is of the run %s of %q: %s", entry.Seq, entry.RunID, entry.WorkflowID, entry.Content.String())
		}
	}
}

// The streams of a run end when it fails or is stopped; after it was resumed, clients that connect again receive the rest.
func TestStreamsOfStoppedRunsContinue(t *testing.T) {
	var broken sync.Once
	fails := &fakeModel{"gpt-4o", func(ctx context.Context, shown []shownMessage, yield func(model.Delta) bool) (err error) {
		broken.Do(func() {
			yield(model.Delta{Text: "I was just "})
			err = &model.Error{Reason: continuo.ReasonUpstream, Status: 418, Message: "the provider said no"}
		})
		if err != nil {
			return err
		}
		return worker(ctx, shown, yield)
	}}
	options := withModel(fails)
	options.Workflows = workflowFolder{"testdata/workflows"}
	handler := New(newEngine(t, options), Options{})
	first := runFrames(t, ask(t, handler, "POST", "/api/runs", `{"workflow_id": "report", "inputs": {"topic": "tea"}, "session_id": "s", "stream": true}`).body)
	var end engine.RunStatus
	if err := json.Unmarshal(last(first).data, &end); err != nil || end.State != continuo.RunFailed || end.Reason == "" {
		t.Fatalf("the run ended as %s: %v", last(first).data, err)
	}
	path, lastID := "/api/runs/"+end.ID, last(first).id
	if answer := ask(t, handler, "GET", path+"/events", "", "Last-Event-ID", lastID); answer.status != http.StatusNoContent {
		t.Errorf("status %d after the end: %s", answer.status, answer.body)
	}
	again := runFrames(t, ask(t, handler, "GET", path+"/events?after="+strings.TrimSuffix(lastID, api.EndSuffix), "").body)
	if len(again) != 1 || again[0].kind != "end" || again[0].id != lastID {
		t.Errorf("the end was %s, and is %s", last(first).raw, last(again).raw)
	}
	ask(t, handler, "POST", path+"/resume", "").into(202, &struct{}{})
	rest := runFrames(t, ask(t, handler, "GET", path+"/events", "", "Last-Event-ID", lastID).body)
	if err := json.Unmarshal(last(rest).data, &end); err != nil || end.State != continuo.RunFinished {
		t.Errorf("the run ended as %s: %v", last(rest).data, err)
	}
	second := ask(t, handler, "GET", path+"/events", "").body
	whole := runFrames(t, second)
	if third := ask(t, handler, "GET", path+"/events", "").body; !bytes.Equal(storedEvents(third), storedEvents(second)) {
		t.Errorf("the stream was, read again,\n%s\nand then\n%s", second, third)
	}
	if have, want := entryIDs(first)+entryIDs(rest), entryIDs(whole); have != want {
		t.Errorf("two streams had the entries\n%s, one has\n%s", have, want)
	}
}

// entryIDs lists the ids under which a stream has entries.
func entryIDs(all []runFrame) (ids string) {
	for _, frame := range all {
		if frame.kind == "entry" {
			ids += frame.id + " "
		}
	}
	return ids
}

// The stream of a run that waits for a person stays open, with comments.
func TestStreamsOfWaitingRunsKeepAlive(t *testing.T) {
	made := newEngine(t, withRuns(engine.Options{}))
	remote := httptest.NewServer(New(made, Options{KeepAlive: time.Millisecond}))
	defer remote.Close()
	run := startRun(t, New(made, Options{}), "release", `{"version": "1"}`, "s")
	waitForState(t, made, run, continuo.RunWaiting)
	response, err := http.DefaultClient.Do(newRequest(t, "GET", remote.URL+"/api/runs/"+run.ID+"/events?after=1000", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines, comments := bufio.NewScanner(response.Body), 0
	for comments < 3 && lines.Scan() {
		if lines.Text() == ": keep-alive" {
			comments++
		} else if lines.Text() != "" {
			t.Fatalf("the stream has %q", lines.Text())
		}
	}
	if comments < 3 {
		t.Errorf("the stream ended after %d comments: %v", comments, lines.Err())
	}
}
