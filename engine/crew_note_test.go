package engine_test

import (
	"fmt"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/storetest"
)

// Long talks are shown to a role in its own notes, or in a summary, and what is new stands whole behind them.
func TestNotesAndSummariesAreMadeAndShown(t *testing.T) {
	for kind, block := range map[string]string{"memory": "[NOTES]\n", "{kind: summary, newest: 4}": "[CONTEXT SUMMARY]\n"} {
		t.Run(kind, func(t *testing.T) {
			scripted := &scriptedRoles{answer: answerTimes(11)}
			text := strings.NewReplacer("system_prompt", "view: "+kind+", system_prompt", "roles:", "max_rounds: 20\nroles:").Replace(threeRoleCrew)
			e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, text), nil)
			sendMessage(t, e, "We must finish on Friday.")
			awaitCycle(t, e)
			last := scripted.received[len(scripted.received)-1]
			if !strings.Contains(last.text, block) || !strings.Contains(last.text, "We must finish on Friday.") {
				t.Errorf("%s was shown in the end\n%s", last.role, last.text)
			}
			if n := strings.Count(last.text, "\n\nAssistant ("); n > 60 {
				t.Errorf("it was shown %d messages whole", n)
			}
			conversation, err := e.Log.Find(t.Context(), continuo.Scope{ProjectID: "default"}, "s")
			if err != nil {
				t.Fatal(err)
			}
			made := map[string]int{}
			for entry, err := range e.Log.Read(t.Context(), conversation, continuo.Range{}) {
				if err != nil {
					t.Fatal(err)
				}
				if s := entry.Summary; s != nil {
					made[fmt.Sprintf("%s of %q by %s, hidden: %t", entry.PartType, s.Role, s.By, entry.Hidden)]++
				}
			}
			if len(made) == 0 {
				t.Error("no notes were made")
			}
			t.Log(made)
			checkCrewLog(t, e, []string{"ann", "bob", "cid"})
		})
	}
}
