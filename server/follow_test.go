package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/sse"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/tool"
)

// pacedModel is a model that sends much text in two rounds and, at several points, waits until the readers that connect
// there have done so.
type pacedModel struct {
	deltas    int
	milestone []chan struct{} // closed when the model has reached it
	joined    []*sync.WaitGroup
}

func newPacedModel(deltas, milestones int) *pacedModel {
	p := &pacedModel{deltas: deltas}
	for range milestones {
		p.milestone, p.joined = append(p.milestone, make(chan struct{})), append(p.joined, &sync.WaitGroup{})
	}
	return p
}

func (p *pacedModel) model() *fakeModel {
	return &fakeModel{"gpt-4o", func(_ context.Context, shown []shownMessage, yield func(model.Delta) bool) error {
		second := shown[len(shown)-1].Role == "tool"
		half := len(p.milestone) / 2
		milestones, joined := p.milestone[:half], p.joined[:half]
		if second {
			milestones, joined = p.milestone[half:], p.joined[half:]
		}
		every, begun := p.deltas/2/len(milestones), 0
		for i := range p.deltas / 2 {
			if i%every == 0 && i/every < len(milestones) {
				close(milestones[i/every])
				joined[i/every].Wait()
			}
			calls := !second && i > p.deltas/2-p.deltas/10 // they come last
			switch {
			case i%7 == 0:
				yield(model.Delta{Reasoning: fmt.Sprintf("thought %d, ", i)})
			case calls && begun < 3:
				yield(model.Delta{ToolCall: &model.ToolCallDelta{Index: begun, ID: fmt.Sprintf("call_%d", begun), Type: "function", Name: "test_upper", Arguments: `{"text":"`}})
				begun++
			case calls:
				yield(model.Delta{ToolCall: &model.ToolCallDelta{Index: i % 3, Arguments: "ab "}})
			default:
				yield(model.Delta{Text: fmt.Sprintf("word %d\n", i)})
			}
		}
		if !second {
			for call := range 3 {
				yield(model.Delta{ToolCall: &model.ToolCallDelta{Index: call, Arguments: `"}`, Done: true}})
			}
		}
		return nil
	}}
}

// frames reads a stream of events as its bytes, without comments.
type frames struct{ lines *bufio.Reader }

// next returns one event's bytes and its id.
func (f *frames) next() (frame []byte, id string, err error) {
	for {
		line, err := f.lines.ReadSlice('\n')
		switch {
		case err != nil:
			return nil, "", err
		case line[0] == ':':
			continue
		case len(line) == 1 && len(frame) > 0:
			return append(frame, '\n'), id, nil
		case len(line) == 1: // after a comment
			continue
		}
		if rest, ok := bytes.CutPrefix(line, []byte("id: ")); ok {
			id = strings.TrimSpace(string(rest))
		}
		frame = append(frame, line...)
	}
}

// reconnectingReader is a reader that drops its connection now and then.
type reconnectingReader struct {
	url       string
	drops     []int           // after how many events of a connection
	pause     <-chan struct{} // read on only when this is closed; nil for a reader that is not slow
	read      bytes.Buffer
	lastID    string
	connected func() // called once, when the first connection is open
}

// follow reads the whole turn, over as many connections as it takes.
func (w *reconnectingReader) follow(ctx context.Context, client *http.Client) error {
	for {
		request, err := http.NewRequestWithContext(ctx, "GET", w.url, nil)
		if err != nil {
			return err
		}
		if w.lastID != "" {
			request.Header.Set("Last-Event-ID", w.lastID)
		}
		response, err := client.Do(request)
		if w.connected != nil {
			w.connected()
			w.connected = nil
		}
		if err != nil {
			return err
		}
		ended, err := w.readConnection(response)
		response.Body.Close()
		if ended || err != nil {
			return err
		}
	}
}

func (w *reconnectingReader) readConnection(response *http.Response) (over bool, err error) {
	if response.StatusCode != http.StatusOK {
		return false, fmt.Errorf("status %d", response.StatusCode)
	}
	in := &frames{bufio.NewReaderSize(response.Body, 64<<10)}
	for count := 1; ; count++ {
		frame, id, err := in.next()
		if err != nil {
			return false, fmt.Errorf("after event %s: %w", w.lastID, err)
		}
		w.read.Write(frame)
		w.lastID = id
		if bytes.Contains(frame, []byte("event: done\n")) {
			_, _, err := in.next()
			if !errors.Is(err, io.EOF) {
				return true, fmt.Errorf("after the end: %w", err)
			}
			return true, nil
		}
		if len(w.drops) > 0 && count == w.drops[0] {
			w.drops = w.drops[1:]
			return false, nil
		}
		if w.pause != nil && count == 5 {
			<-w.pause
			w.pause = nil
		}
	}
}

// However many follow a turn, wherever they are, whenever they join and however often they are cut off: all
// of them read the same bytes.
func TestManyReadersReadTheSame(t *testing.T) {
	const readers, milestones = 200, 10
	deltas := 2000
	if raceDetector { // which makes it ten times as slow
		deltas = 400
	}
	random := rand.New(rand.NewPCG(1, 2))
	script := newPacedModel(deltas, milestones)
	options := withModel(script.model())
	options.Tools = tool.Set{upper{}}
	a, b := twoEngines(t, options)
	here, there := httptest.NewServer(New(a, Options{})), httptest.NewServer(New(b, Options{}))
	defer here.Close()
	defer there.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: readers}}
	defer client.CloseIdleConnections()

	ended := make(chan struct{})
	all := make([]*reconnectingReader, readers)
	starts := make([]int, readers)
	for i := range all {
		w := &reconnectingReader{}
		for range random.IntN(4) {
			w.drops = append(w.drops, 1+random.IntN(deltas/3))
		}
		if i%10 == 3 {
			w.pause = ended
		}
		starts[i] = random.IntN(milestones)
		script.joined[starts[i]].Add(1)
		w.connected = script.joined[starts[i]].Done
		all[i] = w
	}
	answer := background(t, New(a, Options{}), `{"message": "tell", "session_id": "s", "stream": true}`)
	within(t, "the first milestone", script.milestone[0])
	path := turnPath("s", newestTurn(t, New(a, Options{}), "s").ID) + "/events"
	var running sync.WaitGroup
	for i, w := range all {
		w.url = here.URL + path
		if i%4 == 1 { // in another process, which polls
			w.url = there.URL + path
		}
		running.Go(func() {
			<-script.milestone[starts[i]]
			if err := w.follow(t.Context(), client); err != nil {
				t.Errorf("reader %d: %v", i, err)
			}
		})
	}
	first := within(t, "the turn's end", answer)
	select {
	case <-script.milestone[milestones-1]:
	default:
		t.Fatalf("the turn ended early: %s", first.body[max(0, len(first.body)-2000):])
	}
	close(ended)
	running.Wait()
	events := readEvents(t, first)
	if len(events) < deltas {
		t.Errorf("the turn had %d events", len(events))
	}
	for _, kind := range []string{"reasoning", "delta", "tool_call_delta", "tool_call", "tool_result", "done"} {
		if !slices.ContainsFunc(events, func(e sse.Event) bool { return e.Type == kind }) {
			t.Errorf("the turn had no %s", kind)
		}
	}
	for i, w := range all {
		if !bytes.Equal(w.read.Bytes(), first.body) {
			t.Errorf("reader %d read %d bytes, the first one %d", i, w.read.Len(), len(first.body))
		}
	}
}

// killableStore is a store whose process can be killed: from then on nothing is written.
type killableStore struct {
	maintenance.Store
	dead     atomic.Bool
	appended chan struct{} // gets a value for each append
}

var errDead = errors.New("the process was killed")

func (m *killableStore) Append(ctx context.Context, batch continuo.Batch) error {
	if m.dead.Load() {
		return errDead
	}
	err := m.Store.Append(ctx, batch)
	m.appended <- struct{}{}
	return err
}

func (m *killableStore) UpdateTurn(ctx context.Context, update continuo.TurnUpdate) ([]continuo.TurnSignal, error) {
	if m.dead.Load() {
		return nil, errDead
	}
	return m.Store.UpdateTurn(ctx, update)
}

func (m *killableStore) TakeTurn(ctx context.Context, seen continuo.Turn, owner string, lease time.Duration) (continuo.Turn, error) {
	if m.dead.Load() {
		return continuo.Turn{}, errDead
	}
	return m.Store.TakeTurn(ctx, seen, owner, lease)
}

// The stream of a turn whose process was killed ends in other processes with the text that is in the log, and another
// process resumes the turn.
func TestAnotherEngineTakesUpAKilledTurn(t *testing.T) {
	path, gate := filepath.Join(t.TempDir(), "log.db"), make(chan struct{})
	speaker := &fakeModel{"gpt-4o", func(_ context.Context, _ []shownMessage, yield func(model.Delta) bool) error {
		yield(model.Delta{Reasoning: "Hm. "})
		yield(model.Delta{Text: "Let me "})
		yield(model.Delta{Text: "see."})
		yield(model.Delta{ToolCall: &model.ToolCallDelta{Index: 0, ID: "call_0", Type: "function", Name: "test_upper", Arguments: `{"text":"ab"}`, Done: true}})
		yield(model.Delta{ToolCall: &model.ToolCallDelta{Index: 1, ID: "call_1", Type: "function", Name: "test_upper", Arguments: `{"te`}})
		<-gate
		return nil
	}}
	store := &killableStore{Store: openFile(t, path), appended: make(chan struct{}, 8)}
	options := withModel(speaker)
	options.Turns, options.Turns.Owner = impatient, "doomed"
	doomed := New(engineOver(t, store, options), Options{})
	answer := background(t, doomed, `{"message": "do it", "session_id": "s", "stream": true}`)
	t.Cleanup(func() { // before the engine is closed
		close(gate)
		<-answer
	})
	within(t, "the user's entry", store.appended)

	options = engine.Options{Turns: impatient, Tools: tool.Set{upper{}}}
	options.Turns.Gone = func(owner string) bool { return owner == "doomed" && store.dead.Load() }
	handler := New(engineOver(t, openFile(t, path), options), Options{})
	remote := httptest.NewServer(handler)
	defer remote.Close()
	turnID := newestTurn(t, handler, "s").ID
	stream := listen(t, newRequest(t, "GET", remote.URL+turnPath("s", turnID)+"/events", ""))
	seen := stream.until(t, "tool_call_delta")
	seen = append(seen, stream.until(t, "tool_call_delta")...)
	store.dead.Store(true)
	seen = append(seen, stream.until(t, "error")...)

	var shown continuo.Turn
	ask(t, handler, "GET", turnPath("s", turnID), "").into(200, &shown)
	if shown.State != continuo.TurnFailed || shown.Reason != continuo.ReasonInterrupted {
		t.Errorf("the turn is %+v", shown)
	}
	if last := seen[len(seen)-1]; !strings.Contains(string(last.Data), `"reason":"interrupted"`) || !strings.Contains(string(last.Data), `"response":"Let me see."`) {
		t.Errorf("the last event is %s", last.Data)
	}
	if again := readEvents(t, ask(t, handler, "GET", turnPath("s", turnID)+"/events", "")); !sameEvents(again, seen) {
		t.Errorf("replayed\n%+v\nseen were\n%+v", again, seen)
	}
	entries := entriesOf(t, handler, "s")
	if checkLog(t, entries); len(entries) != 3 {
		t.Fatalf("the log has %d entries", len(entries))
	}
	broken := entries[1]
	if broken.Content.String() != "Let me see." || broken.Reasoning == nil || broken.Reasoning.Text != "Hm. " || broken.Error == nil ||
		len(broken.ToolCalls) != 1 || len(broken.Error.PartialToolCalls) != 1 || broken.Mode != continuo.ModeChat || broken.Round == nil {
		t.Errorf("the broken answer is %+v", broken)
	}
	if !strings.Contains(entries[2].Content.String(), "interrupted") {
		t.Errorf("the call's result is %q", entries[2].Content.String())
	}

	var resumed chatReply
	ask(t, handler, "POST", turnPath("s", turnID)+"/resume", `{"model": "other"}`).into(200, &resumed)
	if !strings.Contains(resumed.Response, "The tool said: error: interrupted") || resumed.TurnID == turnID {
		t.Errorf("resumed: %+v", resumed)
	}
	if entries = entriesOf(t, handler, "s"); len(entries) != 4 {
		t.Errorf("the log has %d entries after the resumed turn", len(entries))
	}
	checkLog(t, entries)
}
