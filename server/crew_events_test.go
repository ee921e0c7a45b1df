package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"sync"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
)

// However often a client is cut off, and whichever process it asks: it gets each entry once and in order, and the end.
func TestCrewStreamsAreComplete(t *testing.T) {
	a, b := twoEngines(t, withCrews(engine.Options{}))
	here, there := httptest.NewServer(New(a, Options{})), httptest.NewServer(New(b, Options{}))
	defer here.Close()
	defer there.Close()
	ask(t, New(a, Options{}), "POST", "/api/crews/team/messages", `{"session_id": "s", "message": "Plant a tree."}`).into(202, &struct{}{})
	random := rand.New(rand.NewPCG(5, 6))
	readers := make([]*runReader, 12)
	var reading sync.WaitGroup
	for i := range readers {
		readers[i] = &runReader{urls: []string{here.URL, there.URL}, path: "/api/crews/team/events?session_id=s", after: random.IntN(4)}
		reading.Go(func() {
			if err := readers[i].read(t.Context()); err != nil {
				t.Errorf("reader %d: %v", i, err)
			}
		})
	}
	reading.Wait()
	var want bytes.Buffer
	for _, entry := range entriesOf(t, New(b, Options{}), "s") {
		fmt.Fprintf(&want, "%d %s\n", entry.Seq, entry.ID)
	}
	for i, reader := range readers {
		if reader.entries.String() != want.String() || reader.end.State != continuo.RunFinished {
			t.Errorf("reader %d received\n%s and the state %s; the log has\n%s", i, reader.entries.String(), reader.end.State, want.String())
		}
	}
}

// A client that was disconnected receives all cycles since; one that has received everything gets 204; a new client
// receives the newest cycle.
func TestACrewIsFollowedOverItsCycles(t *testing.T) {
	_, handler := newCrewServer(t)
	events := func(lastID string) *reply {
		return ask(t, handler, "GET", "/api/crews/team/events?session_id=s", "", "Last-Event-ID", lastID)
	}
	first := sendToCrew(t, handler, "team", "s", "Plant a tree.")
	lastID := last(first).id
	if answer := events(lastID); answer.status != 204 {
		t.Errorf("a client that has received the end gets %d %s", answer.status, answer.body)
	}
	second := sendToCrew(t, handler, "team", "s", "And a bush.")
	third := sendToCrew(t, handler, "team", "s", "And grass.")
	missed := crewFrames(t, events(lastID).body)
	if have, want := textOf(t, missed), textOf(t, second)+textOf(t, third); have != want {
		t.Errorf("a client that was disconnected received\n%s, not\n%s", have, want)
	}
	if have, want := textOf(t, crewFrames(t, events("").body)), textOf(t, third); have != want {
		t.Errorf("a new client received\n%s, not\n%s", have, want)
	}
	runs := map[string]bool{}
	for _, frame := range missed {
		var status engine.CrewStatus
		if frame.kind == "status" && json.Unmarshal(frame.data, &status) == nil {
			runs[status.RunID] = true
		}
	}
	if len(runs) != 2 || !runs[endOf(t, second).RunID] || !runs[endOf(t, third).RunID] {
		t.Errorf("the statuses are of %v", runs)
	}
	ask(t, handler, "POST", "/api/crews/team/reset", `{"session_id": "s"}`).into(202, &struct{}{})
	if behind := crewFrames(t, events(last(third).id).body); len(behind) != 3 || !bytes.Contains(behind[0].data, []byte("crew_reset")) {
		t.Errorf("after the end came %q", behind)
	}
}

// A key that was used before gives the stream of the cycle that its message went into.
func TestAMessageStreamIsReplayed(t *testing.T) {
	_, handler := newCrewServer(t)
	first := sendToCrew(t, handler, "team", "s", "Plant a tree.", "Idempotency-Key", "k")
	again := sendToCrew(t, handler, "team", "s", "Plant a tree.", "Idempotency-Key", "k")
	if have, want := textOf(t, again), textOf(t, first); have != want || last(again).id != last(first).id {
		t.Errorf("received\n%s, then\n%s", want, have)
	}
}

// A client that connects in the middle of a turn receives its role; the answer is an entry of that turn.
func TestLiveEventsOfCrews(t *testing.T) {
	gate := newGate()
	handler := New(newEngine(t, withCrews(withModel(gate.model()))), Options{})
	remote := httptest.NewServer(handler)
	defer remote.Close()
	ask(t, handler, "POST", "/api/crews/pair/messages", `{"session_id": "s", "message": "Go."}`).into(202, &struct{}{})
	within(t, "the first role's turn", gate.reached)
	stream := listen(t, newRequest(t, "GET", remote.URL+"/api/crews/pair/events?session_id=s", ""))
	defer stream.Body.Close() // before the server's Close waits for it
	var turn api.CrewTurnEvent
	if err := json.Unmarshal(last(stream.until(t, "turn")).Data, &turn); err != nil || turn.Role != "one" || turn.SessionID != "s" || turn.TurnID == "" {
		t.Errorf("the turn is %+v: %v", turn, err)
	}
	var event api.CrewTextEvent
	if err := json.Unmarshal(last(stream.until(t, "delta")).Data, &event); err != nil || event.Role != "one" || event.Text == "" {
		t.Errorf("received %+v: %v", event, err)
	}
	close(gate.open)
	for {
		var entry continuo.Entry
		if err := json.Unmarshal(last(stream.until(t, "entry")).Data, &entry); err != nil {
			t.Fatal(err)
		}
		if entry.Role == continuo.Assistant {
			if entry.Content.String() != "Once upon a time" || entry.TurnID != turn.TurnID || entry.NodeID != "one" {
				t.Errorf("the answer is %+v", entry)
			}
			break
		}
	}
	if end := last(stream.until(t, "end")); !bytes.Contains(end.Data, []byte(`"state":"finished"`)) {
		t.Errorf("the crew rests as %s", end.Data)
	}
}

// A message that is sent during a cycle is shown to the roles in it.
func TestAMessageDuringACycle(t *testing.T) {
	gate := newGate()
	handler := New(newEngine(t, withCrews(withModel(gate.model()))), Options{}).(*server)
	var first, second engine.CrewStatus
	ask(t, handler, "POST", "/api/crews/pair/messages", `{"session_id": "s", "message": "Go."}`).into(202, &first)
	within(t, "the first role's turn", gate.reached)
	ask(t, handler, "POST", "/api/crews/pair/messages", `{"session_id": "s", "message": "Quick!"}`).into(202, &second)
	if second.RunID != first.RunID {
		t.Errorf("the second message began %s while %s was in progress", second.RunID, first.RunID)
	}
	close(gate.open)
	waitForIdleCrew(t, handler, "pair", "s")
}
