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
func TestCrewsAreHeardWhole(t *testing.T) {
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
			t.Errorf("reader %d was told of\n%s and the state %s; the log has\n%s", i, reader.entries.String(), reader.end.State, want.String())
		}
	}
}

// A client that was away hears of all cycles since; who has heard everything is told so; who comes anew hears the
// newest cycle.
func TestACrewIsHeardOverItsCycles(t *testing.T) {
	_, handler := newCrewServer(t)
	events := func(lastID string) *reply {
		return ask(t, handler, "GET", "/api/crews/team/events?session_id=s", "", "Last-Event-ID", lastID)
	}
	first := tellCrew(t, handler, "team", "s", "Plant a tree.")
	heard := last(first).id
	if answer := events(heard); answer.status != 204 {
		t.Errorf("who has heard the end gets %d %s", answer.status, answer.body)
	}
	second := tellCrew(t, handler, "team", "s", "And a bush.")
	third := tellCrew(t, handler, "team", "s", "And grass.")
	missed := crewFrames(t, events(heard).body)
	if have, want := wordsOf(t, missed), wordsOf(t, second)+wordsOf(t, third); have != want {
		t.Errorf("a client that was away heard\n%s, not\n%s", have, want)
	}
	if have, want := wordsOf(t, crewFrames(t, events("").body)), wordsOf(t, third); have != want {
		t.Errorf("a new client heard\n%s, not\n%s", have, want)
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
		t.Errorf("behind the end was heard %q", behind)
	}
}

// A key that was used before gives the stream of the cycle that its message went into.
func TestAMessageIsHeardAgain(t *testing.T) {
	_, handler := newCrewServer(t)
	first := tellCrew(t, handler, "team", "s", "Plant a tree.", "Idempotency-Key", "k")
	again := tellCrew(t, handler, "team", "s", "Plant a tree.", "Idempotency-Key", "k")
	if have, want := wordsOf(t, again), wordsOf(t, first); have != want || last(again).id != last(first).id {
		t.Errorf("it was heard\n%s, then\n%s", want, have)
	}
}

// Who joins in the middle of a turn is told whose it is; the answer is an entry of that turn.
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
	var said api.CrewTextEvent
	if err := json.Unmarshal(last(stream.until(t, "delta")).Data, &said); err != nil || said.Role != "one" || said.Text == "" {
		t.Errorf("it was heard %+v: %v", said, err)
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

// What is said while a cycle is under way is heard in it.
func TestACrewIsSpokenToWhileItWorks(t *testing.T) {
	gate := newGate()
	handler := New(newEngine(t, withCrews(withModel(gate.model()))), Options{}).(*server)
	var first, second engine.CrewStatus
	ask(t, handler, "POST", "/api/crews/pair/messages", `{"session_id": "s", "message": "Go."}`).into(202, &first)
	within(t, "the first role's turn", gate.reached)
	ask(t, handler, "POST", "/api/crews/pair/messages", `{"session_id": "s", "message": "Quick!"}`).into(202, &second)
	if second.RunID != first.RunID {
		t.Errorf("the second message began %s while %s was under way", second.RunID, first.RunID)
	}
	close(gate.open)
	restedCrew(t, handler, "pair", "s")
}
