package engine_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/store/storetest"
)

// What the programs of roles and of steps print is in the log of events only where that may hold the text of messages,
// also where it is why a cycle or a run came to its end.
func TestWhatProgramsPrintIsNotLogged(t *testing.T) {
	for _, logText := range []bool{false, true} {
		logged := &lockedWriter{}
		logs := func(o *engine.Options) {
			o.Models["printer"] = engine.Upstream{Model: printer{}}
			o.Logger, o.LogText = slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug})), logText
		}
		scripted := &scriptedRoles{answer: answerTimes(1), startError: func() error { return errors.New("it ended; its stderr: word hush-child") }}
		crews := newCrewSource(t, strings.Replace(threeRoleCrew, "model: plain", "model: printer", 1))
		e := newCrewEngine(t, storetest.NewMemory(), scripted, crews, func(o *engine.Options) {
			logs(o)
			o.CrewDefaults.Cooldown = time.Hour
		})
		sendMessage(t, e, "Hello")
		if status := awaitCycle(t, e); !strings.Contains(status.Reason, "hush-hush") || !strings.Contains(status.Reason, "hush-child") {
			t.Errorf("the cycle ended because %s", status.Reason)
		}
		_ = e.Close(t.Context()) // it logs until then
		steps := newRunEngine(t, storetest.NewMemory(), &scriptedModel{answer: answerWell}, func(o *engine.Options) {
			logs(o)
			o.Workflows = newWorkflowSource(t, "id: one\nnodes: {print: {brief: Print., model: printer}}\n")
		})
		if run := awaitRun(t, steps, startOf(t, steps, "one")); run.State != continuo.RunFailed || !strings.Contains(run.Reason, "hush-hush") {
			t.Errorf("the run is %s: %s", run.State, run.Reason)
		}
		_ = steps.Close(t.Context())
		lines := logged.String()
		for _, secret := range []string{"hush-hush", "hush-child"} {
			if strings.Contains(lines, secret) != logText {
				t.Errorf("text %v: logged\n%s", logText, lines)
			}
		}
		for _, event := range []string{"msg=role_failed", "msg=crew_idle", "msg=run_idle"} {
			if !strings.Contains(lines, event) {
				t.Errorf("there is no %s in\n%s", event, lines)
			}
		}
	}
}
