package turn_test

import (
	"strings"
	"testing"

	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/turn"
)

func TestAToolIsFoundByBothOfItsNames(t *testing.T) {
	h := newHouse(t, asks(`my.echo {"n":1}`, `my_echo {"n":2}`, `My.echo {}`), textAnswer("Done."))
	h.runner.Tools = tool.Set{echo{name: "my.echo"}, echo{name: "my_other"}}
	h.runner.Policy = tool.Policy{Allow: []string{"my.echo"}, Otherwise: tool.Deny}
	if last := h.send("go"); last.Kind != turn.Finished {
		t.Fatalf("last event: %+v", last)
	}
	log := h.entries()
	if call := log[1].ToolCalls[0]; call.Name != "my.echo" {
		t.Errorf("the log says that the model called %s", call.Name)
	}
	for i, want := range []string{`my.echo {"n":1}`, `my.echo {"n":2}`, "My.echo error: there is no tool My.echo; offered were [my_echo]"} {
		if result := log[2+i]; result.ToolName+" "+result.Content.String() != want {
			t.Errorf("result %d: %s %s", i, result.ToolName, result.Content.String())
		}
	}
	if !strings.Contains(h.model.bodies[1], `"name":"my_echo","arguments":"{\"n\":1}"`) {
		t.Errorf("the next request: %s", h.model.bodies[1])
	}
	h.checkReplays()
}

func TestATranscriptsCallIsFoundByTheToolsOwnName(t *testing.T) {
	h := newTranscriptHouse(t, writes("§call: {\"name\": \"fs.list\", \"args\": {\"path\": \"@project/\"}}"), writes("§respond: There is one file."))
	if last := h.send("What is there?"); last.Kind != turn.Finished {
		t.Fatalf("last event: %+v", last)
	}
	if result := h.entries()[2]; result.ToolName != "fs.list" || !strings.Contains(result.Content.String(), "notes.txt") {
		t.Errorf("the result: %s %s", result.ToolName, result.Content.String())
	}
}
