package engine_test

import (
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/store/storetest"
)

// rewrite changes the file of the trio.
func (b crewSource) rewrite(t *testing.T, old, text string) {
	t.Helper()
	if !strings.Contains(threeRoleCrew, old) {
		t.Fatalf("the file has no %q", old)
	}
	b["trio"] = newCrewSource(t, strings.Replace(threeRoleCrew, old, text, 1))["trio"]
}

// A role whose connector is another in the crew's file is asked through that one from the next cycle on.
func TestAChangedConnectorAnswers(t *testing.T) {
	scripted, crews := &scriptedRoles{answer: answerTimes(1)}, newCrewSource(t, threeRoleCrew)
	e := newCrewEngine(t, storetest.NewMemory(), scripted, crews, nil)
	sendMessage(t, e, "Hello")
	awaitCycle(t, e)
	crews.rewrite(t, "display_name: Ann, connector: loads", "display_name: Ann, connector: forgets")
	old, now := len(scripted.prompts("loads")), len(scripted.prompts("forgets"))
	sendMessage(t, e, "And now?")
	awaitCycle(t, e)
	if n := len(scripted.prompts("loads")) - old; n != 0 {
		t.Errorf("the old connector was asked %d times", n)
	}
	prompted := false
	for _, p := range scripted.prompts("forgets")[now:] {
		prompted = prompted || strings.Contains(p.text, "You are Ann.")
	}
	if !prompted {
		t.Error("the new connector does not know who it speaks for")
	}
}

// A role whose system prompt is another in the crew's file is told so.
func TestAChangedSystemPromptIsSent(t *testing.T) {
	scripted, crews := &scriptedRoles{answer: answerTimes(1)}, newCrewSource(t, threeRoleCrew)
	e := newCrewEngine(t, storetest.NewMemory(), scripted, crews, nil)
	sendMessage(t, e, "Hello")
	awaitCycle(t, e)
	crews.rewrite(t, "You are Ann.", "You are brief Ann.")
	before := len(scripted.prompts("loads"))
	sendMessage(t, e, "And now?")
	awaitCycle(t, e)
	if all := scripted.prompts("loads")[before:]; len(all) == 0 || !strings.Contains(all[0].text, "You are brief Ann.") {
		t.Errorf("Ann was not told of her new system prompt: %+v", all)
	}
}

// Agents that remember are told who else is there when that changes, and a role that has come is shown the whole talk.
func TestAddedAndRemovedRolesAreReported(t *testing.T) {
	scripted, crews := &scriptedRoles{answer: answerTimes(1)}, newCrewSource(t, threeRoleCrew)
	e := newCrewEngine(t, storetest.NewMemory(), scripted, crews, nil)
	sendMessage(t, e, "Hello")
	awaitCycle(t, e)
	crews.rewrite(t, "role_name: cid, display_name: Cid,", "role_name: dan, display_name: Dan,")
	loads, plain := len(scripted.prompts("loads")), len(scripted.prompts("plain"))
	scripted.answer = answerTimes(1)
	sendMessage(t, e, "And now?")
	status := awaitCycle(t, e)
	if ann := scripted.prompts("loads")[loads]; !strings.Contains(ann.text, "Dan") {
		t.Errorf("Ann was not told of Dan:\n%s", ann.text)
	}
	if dan := scripted.prompts("plain")[plain]; !strings.Contains(dan.text, "User: Hello") || !strings.Contains(dan.text, "Assistant (Cid): plain says 1") {
		t.Errorf("Dan, who is new, was not shown what was said before:\n%s", dan.text)
	}
	if dan := status.Roles[2]; dan.Name != "dan" || dan.Answers != 1 {
		t.Errorf("Dan stands %+v", dan)
	}
}

// namesake is a crew with a role that is called as one of the trio.
const namesake = `
id: namesake
roles:
  - {role_name: ann, display_name: Anna, connector: loads, system_prompt: You are Anna.}
`

// Two crews in one conversation have roles of their own, whatever these are called.
func TestTwoCrewsHaveTheirOwnRoles(t *testing.T) {
	scripted := &scriptedRoles{answer: answerTimes(3)}
	e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, strings.Replace(threeRoleCrew, "roles:", "max_rounds: 1\nroles:", 1), namesake), nil)
	toAnna := func(text string) {
		t.Helper()
		session := engine.CrewSession{Scope: continuo.Scope{ProjectID: "default"}, Crew: "namesake", SessionID: "s"}
		status, err := e.Crews.Send(t.Context(), engine.CrewMessage{Session: session, Message: continuo.Text(text), Detached: true})
		if err != nil {
			t.Fatal(err)
		}
		awaitEndOfCycle(t, e, status.RunID)
	}
	awaitEndOfCycle(t, e, sendMessage(t, e, "Hello").RunID)
	toAnna("And you?")
	scripted.answer = func(rolePrompt) (string, error) { return "the crucial thing", nil }
	awaitEndOfCycle(t, e, sendMessage(t, e, "Once more.").RunID)
	scripted.answer = answerTimes(0)
	before := len(scripted.prompts("loads"))
	toAnna("And you again?")
	if p := scripted.prompts("loads")[before]; !strings.Contains(p.text, "Assistant (Ann): the crucial thing") {
		t.Errorf("Anna was not shown what Ann said:\n%s", p.text)
	}
	if n := scripted.starts("loads"); n != 2 {
		t.Errorf("the programs of Ann and Anna were started %d times", n)
	}
}
