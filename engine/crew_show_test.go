package engine_test

import (
	"errors"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/store/storetest"
)

// blank are words that nobody can see.
var blank = map[string]string{"nothing": "", "white space": " \n", "no ink": "\u200b"}

// A message that says nothing, or that no role could be shown, is refused before it is in the log.
func TestAMessageThatCannotBeShownIsRefused(t *testing.T) {
	narrow := strings.ReplaceAll(threeRoleCrew, "system_prompt", "view: {chars: 1000}, system_prompt")
	refused := func(t *testing.T, text string, is func(error) bool) {
		t.Helper()
		scripted := &scriptedRoles{answer: answerTimes(1)}
		e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, narrow), nil)
		_, err := e.Crews.Send(t.Context(), engine.CrewMessage{Session: testSession, Message: continuo.Text(text), Detached: true})
		if !is(err) {
			t.Errorf("the answer is %v", err)
		}
		if _, err := e.Log.Find(t.Context(), continuo.Scope{ProjectID: "default"}, "s"); !errors.Is(err, continuo.ErrNotFound) {
			t.Errorf("it left a conversation: %v", err)
		}
	}
	for name, text := range blank {
		t.Run(name, func(t *testing.T) {
			refused(t, text, func(err error) bool { return errors.Is(err, continuo.ErrInvalid) })
		})
	}
	t.Run("too long", func(t *testing.T) {
		refused(t, strings.Repeat("word ", 1000), func(err error) bool { return errors.As(err, new(*continuo.OverflowError)) })
	})
}

// What nobody can see is a pass, and no news: agents that remember are not asked for it.
func TestBlankWordsAreNoNews(t *testing.T) {
	for name, text := range blank {
		t.Run(name, func(t *testing.T) {
			scripted := &scriptedRoles{answer: func(rolePrompt) (string, error) { return text, nil }}
			e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, threeRoleCrew), nil)
			sendMessage(t, e, "Hello")
			status := awaitCycle(t, e)
			for _, p := range scripted.received {
				if strings.TrimSpace(p.text) == "" {
					t.Errorf("%s was asked with nothing", p.role)
				}
			}
			if len(scripted.received) > 6 { // each, and each once more where saying nothing is a failure
				t.Errorf("they were asked %d times", len(scripted.received))
			}
			for _, role := range status.Roles {
				if role.Answers > 0 {
					t.Errorf("%s has %d answers", role.Name, role.Answers)
				}
			}
		})
	}
}

// Words that were removed do not make a role's pass a word.
func TestARedactedPassStaysAPass(t *testing.T) {
	scripted := &scriptedRoles{answer: answerTimes(1)}
	e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, threeRoleCrew), nil)
	sendMessage(t, e, "Hello")
	awaitCycle(t, e)
	conversation, err := e.Log.Find(t.Context(), continuo.Scope{ProjectID: "default"}, "s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Log.Redact(t.Context(), conversation, 1, 0, ""); err != nil {
		t.Fatal(err)
	}
	scripted.answer = answerTimes(0)
	before := len(scripted.received)
	sendMessage(t, e, "And now?")
	awaitCycle(t, e)
	for _, p := range scripted.received[before:] {
		if n := strings.Count(p.text, "[redacted]"); n > 4 { // the message, and one word of each role
			t.Errorf("%s was shown %d redacted words:\n%s", p.role, n, p.text)
		}
	}
}
