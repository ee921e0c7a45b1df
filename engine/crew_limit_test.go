package engine_test

import (
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/storetest"
)

// TestAFloodIsNotTriedAgain checks that a role which wrote more than its limit is asked once for the turn, and that a
// retry which does not fit any more does not hide why the first attempt failed.
func TestAFloodIsNotTriedAgain(t *testing.T) {
	for name, test := range map[string]struct {
		reasons []continuo.FailureReason // of the attempts
		asked   int
	}{
		"a flood":                      {[]continuo.FailureReason{continuo.ReasonTurnLimit}, 1},
		"a retry that cannot be shown": {[]continuo.FailureReason{continuo.ReasonUpstream, continuo.ReasonContextOverflow}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			answers, asked := answerTimes(1), 0
			scripted := &scriptedRoles{answer: func(p rolePrompt) (string, error) {
				if p.role != "forgets" || asked == len(test.reasons) {
					return answers(p)
				}
				asked++
				message := "it printed too much"
				if asked > 1 {
					message = "the request does not fit"
				}
				return "y y y", &model.Error{Reason: test.reasons[asked-1], Message: message}
			}}
			e := newCrewEngine(t, storetest.NewMemory(), scripted, newCrewSource(t, strings.Replace(threeRoleCrew, "roles:", "max_rounds: 1\nroles:", 1)), nil)
			sendMessage(t, e, "Hello")
			if status := awaitCycle(t, e); status.Roles[1].Failed != "it printed too much" {
				t.Errorf("Bob stands %+v", status.Roles[1])
			}
			if asked != test.asked {
				t.Errorf("it was asked %d times, not %d", asked, test.asked)
			}
		})
	}
}
