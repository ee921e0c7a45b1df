package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

// shownConversation is what a conversation is set to.
type shownConversation struct {
	ActiveMode  continuo.Mode `json:"active_mode"`
	ActiveAgent string        `json:"active_agent"`
}

// TestOneHistoryForAllModes talks, asks an agent, runs workflows and talks again in one conversation: to every model the
// history only grows, and nothing that a run did is taken for another's or stays behind in the conversation.
func TestOneHistoryForAllModes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: runs take their time")
	}
	s := newRunHarness(t, rand.New(rand.NewPCG(1, 0)), "", 1)
	s.ending = true // nothing is killed that could be waited for
	s.open()
	j := newRunClient(s, "h", 0)
	chat := func(message string, more map[string]any) {
		t.Helper()
		body := map[string]any{"session_id": j.key, "message": message + " " + markOf(j.key), "stream": false}
		for name, value := range more {
			body[name] = value
		}
		var said answer
		if err := j.post(t.Context(), s.any(), "/chat", body, &said); err != nil || said.Response != "I hear you." {
			t.Fatalf("%q is answered with %+v, %v", message, said, err)
		}
	}
	set := func(want shownConversation) {
		t.Helper()
		var got shownConversation
		if status, err := s.any().get(t.Context(), j.path(""), &got); err != nil || status != http.StatusOK || got != want {
			t.Errorf("the conversation is set to %+v, want %+v; status %d, %v", got, want, status, err)
		}
	}
	run := func(workflow string) {
		t.Helper()
		one := &clientRun{workflow: workflow, tag: fmt.Sprintf("%s.%d", j.key, len(j.runs))}
		j.runs = append(j.runs, one)
		if !j.execute(t.Context(), one) {
			t.FailNow()
		}
	}

	chat("hello", map[string]any{"mode": "chat"})
	set(shownConversation{ActiveMode: continuo.ModeChat})
	chat("who are you?", map[string]any{"agent_id": "pilot"})
	agent := shownConversation{ActiveMode: continuo.ModeAgent, ActiveAgent: "pilot"}
	set(agent)
	run("consent")
	set(agent)
	chat("what came of it?", map[string]any{"mode": "chat"})
	chatting := shownConversation{ActiveMode: continuo.ModeChat, ActiveAgent: "pilot"}
	set(chatting)
	run("consent")
	set(chatting)
	chat("and now?", nil)
	set(chatting)

	requests, wrong := s.model.requests()
	for _, one := range wrong { // that a history does not begin with the one before is among it
		t.Error(one)
	}
	checkModes(t, requests)
	checkApart(t, j)
}

// checkModes checks the system messages of the requests of a conversation.
func checkModes(t *testing.T, requests []stepRequest) {
	t.Helper()
	var modes []string
	for _, request := range requests {
		mode, persona := "", false
		for _, text := range request.systemMessages {
			if _, rest, ok := strings.Cut(text, "MODE\n- active: "); ok {
				mode, _, _ = strings.Cut(rest, "\n")
			}
			persona = persona || strings.Contains(text, "You are the pilot.")
		}
		if persona != (mode == "agent") {
			t.Errorf("in a request in the mode %q the persona stands: %v", mode, persona)
		}
		if (request.run != "") != (mode == "run") {
			t.Errorf("a request of run %q is in the mode %q", request.run, mode)
		}
		modes = append(modes, mode+" "+request.run)
	}
	order := slices.Compact(modes)
	runs := map[string]bool{}
	var names []string
	for _, mode := range order {
		name, id, _ := strings.Cut(mode, " ")
		names = append(names, name)
		if id != "" {
			runs[id] = true
		}
	}
	if got, want := strings.Join(names, " "), "chat agent run chat run chat"; got != want || len(runs) != 2 {
		t.Errorf("the requests came in the order %q, want %q; of %d runs", got, want, len(runs))
	}
}

// checkApart checks that the entries of two runs of one workflow can be distinguished.
func checkApart(t *testing.T, j *runClient) {
	t.Helper()
	entries, err := j.readLog(t.Context(), j.harness.any())
	if err != nil {
		t.Fatal(err)
	}
	j.checkRules(entries)
	var order []string
	for _, e := range entries {
		place := string(e.Mode)
		if e.RunID != "" {
			place = "run " + e.RunID
		}
		order = append(order, place)
	}
	want := []string{"chat", "agent", "run " + j.runs[0].id, "chat", "run " + j.runs[1].id, "chat"}
	if got := slices.Compact(order); !slices.Equal(got, want) {
		t.Errorf("the log holds %q, want %q", got, want)
	}
	j.readBranches(t.Context(), j.harness.any(), entries)
	for _, run := range j.runs {
		j.checkSteps(run, ofRun(entries, run))
		j.checkOutputs(t.Context(), j.harness.any(), run)
	}
}
