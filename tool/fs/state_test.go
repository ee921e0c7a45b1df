package fs_test

import (
	"fmt"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/storetest"
)

func TestStateIsReadFromTheLog(t *testing.T) {
	p := newFixture(t, nil)
	p.calls([]string{`{"q":"one"}`, `{"q":"two"}`}, []string{"first\nline", "second"})
	p.is(p.list(`{"path":"@state/","depth":9}`), "files/\nlogs/\nlogs/tool-calls/\nlogs/tool-calls/2-0.json  11  look\nlogs/tool-calls/2-1.json  11  look\n"+
		"logs/tool-results/\nlogs/tool-results/call_0.json  10  look · Looked\nlogs/tool-results/call_1.json  6  look · Looked\nruns/")
	p.is(p.list(path("@state/logs")), "tool-calls/\ntool-results/")
	p.is(p.read(path("@state/logs/tool-results/call_0.json")), "first\nline")
	p.is(p.read(path("@state/logs/tool-calls/2-1.json")), `{"q":"two"}`)
	p.is(p.search(`{"path":"@state/","pattern":"two|line"}`), "@state/logs/tool-calls/2-1.json:1: {\"q\":\"two\"}\n@state/logs/tool-results/call_0.json:2: line")
	p.is(p.search(`{"path":"@state/logs/tool-results/call_1.json","pattern":"sec"}`), "@state/logs/tool-results/call_1.json:1: second")
	for _, name := range []string{"logs/tool-calls/2-2.json", "logs/tool-calls/1-0.json", "logs/tool-calls/99-0.json", "logs/tool-calls/999999999999999999-0.json", "logs/tool-results/call_2.json", "logs/x", "x", "logs/tool-results/%", "logs/tool-results/call_0.json/x"} {
		p.fails(p.read(path("@state/"+name)), "no such file in this conversation")
		p.fails(p.list(path("@state/"+name)), "no such file in this conversation")
	}
	p.fails(p.read(path("@state/logs")), "this is a folder")
}

// TestStateListContinues reads the listing in steps of every length and wants the same lines as at once.
func TestStateListContinues(t *testing.T) {
	p := newFixture(t, nil)
	p.calls([]string{"a", "b", "c"}, []string{"1", "2", "3"})
	p.calls([]string{"d", "e"}, []string{"4", "5"}) // ids come again
	whole := p.list(`{"path":"@state/","depth":9}`).Content
	for limit := 1; limit < 8; limit++ {
		if got := p.steps("@state/", limit); got != whole {
			t.Fatalf("limit %d:\n%s\nwant:\n%s", limit, got, whole)
		}
	}
	p.fails(p.list(`{"path":"@state/logs/tool-results","after":"gone.json"}`), "after: there is no such file")
}

func TestStateOfAnotherConversationCannotBeReached(t *testing.T) {
	p := newFixture(t, nil)
	p.calls([]string{`{"q":"secret"}`}, []string{"the secret"})
	owner := p.conversation
	other, err := p.Log.Create(p.Context(), continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	p.conversation = other
	p.is(p.list(`{"path":"@state/","depth":9}`), "files/\nlogs/\nlogs/tool-calls/\nlogs/tool-results/\nruns/")
	p.is(p.search(`{"path":"@state/","pattern":"secret"}`), "[nothing matches in 0 files]")
	for _, name := range []string{
		"logs/tool-results/call_0.json", "logs/tool-calls/2-0.json", owner.ID + "/logs/tool-results/call_0.json",
		"../" + owner.ID + "/logs/tool-results/call_0.json", "logs/../../" + owner.ID, "logs/tool-results/../tool-results/call_0.json",
	} {
		p.fails(p.read(path("@state/"+name)), "error")
	}
	fork, err := p.Log.Fork(p.Context(), owner.ID, 0, continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	p.conversation = fork
	p.is(p.read(path("@state/logs/tool-results/call_0.json")), "the secret")
}

// A role sees nothing from before a reset, neither by name nor in a listing, a continued listing or a search.
func TestStateFromBeforeAResetIsNotThere(t *testing.T) {
	p := newFixture(t, nil)
	p.calls([]string{`{"q":"one"}`}, []string{"before"})
	p.since = p.conversation.LastSeq
	p.is(p.list(`{"path":"@state/","depth":9}`), "files/\nlogs/\nlogs/tool-calls/\nlogs/tool-results/\nruns/")
	p.calls([]string{`{"q":"two"}`}, []string{"after"})
	second := fmt.Sprint(p.conversation.LastSeq - 2)
	result := "call_0-" + fmt.Sprint(p.conversation.LastSeq-1) + ".json"
	list := "files/\nlogs/\nlogs/tool-calls/\nlogs/tool-calls/" + second + "-0.json  11  look\nlogs/tool-results/\nlogs/tool-results/" + result + "  5  look · Looked\nruns/"
	p.is(p.list(`{"path":"@state/","depth":9}`), list)
	p.is(p.search(`{"path":"@state/","pattern":"before|after"}`), "@state/logs/tool-results/"+result+":1: after")
	for _, name := range []string{"tool-results/call_0.json", "tool-calls/2-0.json"} {
		p.fails(p.read(path("@state/logs/"+name)), "no such file in this conversation")
	}
	p.is(p.list(`{"path":"@state/logs/tool-calls","after":"2-0.json"}`), second+"-0.json  11  look")
	p.since = 0
	p.is(p.read(path("@state/logs/tool-results/call_0.json")), "before")
}

func TestWhatOnlyPeopleAreShownIsNoFile(t *testing.T) {
	p := newFixture(t, nil)
	entries := []continuo.Entry{
		{Role: continuo.User, Content: continuo.Text("hello")},
		{Role: continuo.Assistant, Hidden: true, Content: continuo.Null(), ToolCalls: []continuo.ToolCall{continuo.FunctionCall("h", "look", "for people")}},
		{Role: continuo.Tool, Hidden: true, ToolCallID: "h", Content: continuo.Text("for people")},
	}
	if _, err := p.Log.Append(p.Context(), p.conversation.ID, entries, continuo.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	p.refresh()
	p.is(p.list(`{"path":"@state/","depth":9}`), "files/\nlogs/\nlogs/tool-calls/\nlogs/tool-results/\nruns/")
	p.fails(p.read(path("@state/logs/tool-calls/2-0.json")), "no such file")
}

// TestALargeOutputIsReadFromItsObject reads, lists and searches an output that its entry shows a preview of.
func TestALargeOutputIsReadFromItsObject(t *testing.T) {
	p := newFixture(t, nil)
	p.Log = continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{MaxInlineOutput: 1000, Objects: storetest.NewObjects()})
	var err error
	if p.conversation, err = p.Log.Create(t.Context(), continuo.Conversation{}); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for i := range 2000 {
		lines = append(lines, fmt.Sprintf("line %d é語", i+1))
	}
	text := strings.Join(lines, "\n") + "\n" + strings.Repeat("x", 200<<10) + " needle"
	p.calls([]string{"{}"}, []string{text})
	const name = "@state/logs/tool-results/call_0.json"
	p.is(p.list(path("@state/logs/tool-results")), fmt.Sprintf("call_0.json  %d  look · Looked", len(text)))
	for from := 1; from < 2000; from += 97 {
		got := p.read(fmt.Sprintf(`{"path":%q,"from_line":%d,"to_line":%d}`, name, from, from+2)).Content
		if want := strings.Join(lines[from-1:min(from+2, 2000)], "\n"); !strings.HasPrefix(got, want+"\n[") {
			t.Fatalf("lines %d to %d: %s\nwant %s", from, from+2, got, want)
		}
	}
	for from := 0; from < len(text); from += 7919 {
		got := p.read(fmt.Sprintf(`{"path":%q,"from_byte":%d,"length":900}`, name, from)).Content
		want := strings.ToValidUTF8(text[from:min(len(text), from+900)], "")
		if shown, _, _ := strings.Cut(got, "\n["); !strings.HasPrefix(want, shown) || len(shown) < len(want)-3 {
			t.Fatalf("900 bytes from %d: %s\nwant %s", from, got, want)
		}
	}
	p.is(p.search(`{"path":"@state/logs/tool-results/","pattern":"line 1987 .*語$"}`), name+":1987: "+lines[1986])
	if got := p.search(`{"path":"@state/","pattern":"x needle"}`).Content; !strings.HasPrefix(got, name+":2001: …") || !strings.HasSuffix(got, "needle") {
		t.Error(got)
	}
}

// The inputs of a run and the newest outputs of its steps are files, for the run's branches too.
func TestRunsAreFiles(t *testing.T) {
	p := newFixture(t, nil)
	event := func(ref string, event continuo.RunEvent) continuo.Entry {
		return continuo.Entry{Role: continuo.System, Hidden: true, Content: continuo.Text("x"), OutputRef: ref, Mode: continuo.ModeRun, RunID: "run_1", RunEvent: &event}
	}
	add := func(entry continuo.Entry) {
		t.Helper()
		if _, err := p.Log.Append(t.Context(), p.conversation.ID, []continuo.Entry{entry}, continuo.AppendOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	add(event(continuo.InputsRef("run_1"), continuo.RunEvent{Kind: continuo.RunBegan, Inputs: []byte(`{"topic":"tea"}`)}))
	branch, err := p.Log.Fork(t.Context(), p.conversation.ID, 0, continuo.Conversation{Kind: continuo.KindBranch})
	if err != nil {
		t.Fatal(err)
	}
	fork, err := p.Log.Fork(t.Context(), p.conversation.ID, 0, continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"first", "second"} {
		add(event(continuo.StepRef("run_1", "plan"), continuo.RunEvent{Kind: continuo.RunNodeFinished, Outputs: []byte(`{"text":"` + text + `"}`)}))
	}
	reload := func(id string) {
		if p.conversation, err = p.Log.Conversation(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	main := p.conversation.ID
	for _, id := range []string{main, branch.ID} {
		reload(id)
		p.is(p.read(path("@state/runs/run_1/inputs.json")), "{\n  \"topic\": \"tea\"\n}")
		p.is(p.read(path("@state/runs/run_1/steps/plan.json")), "{\n  \"text\": \"second\"\n}")
		p.is(p.list(`{"path":"@state/runs","depth":9}`), "run_1/\nrun_1/inputs.json  20\nrun_1/steps/\nrun_1/steps/plan.json  22")
		p.is(p.search(`{"path":"@state/runs","pattern":"second|first"}`), "@state/runs/run_1/steps/plan.json:2:   \"text\": \"second\"")
		p.fails(p.read(path("@state/runs/run_1/steps/other.json")), "no such file")
		p.fails(p.list(path("@state/runs/run_2")), "no such file")
		p.fails(p.read(path("@state/runs/run_1")), "this is a folder")
	}
	reload(main)
	if whole := p.list(`{"path":"@state/","depth":9}`).Content; p.steps("@state/", 1) != whole {
		t.Errorf("in steps:\n%s\nat once:\n%s", p.steps("@state/", 1), whole)
	}
	reload(fork.ID)
	p.fails(p.read(path("@state/runs/run_1/steps/plan.json")), "no such file") // it finished after the fork
	reload(main)
	p.since = p.conversation.LastSeq
	p.fails(p.read(path("@state/runs/run_1/steps/plan.json")), "no such file")
	p.is(p.list(`{"path":"@state/","depth":9}`), "files/\nlogs/\nlogs/tool-calls/\nlogs/tool-results/\nruns/")
}
