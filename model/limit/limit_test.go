package limit_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/demo"
	"github.com/continuo-log/continuo/model/limit"
	"github.com/continuo-log/continuo/model/modeltest"
)

// after is a step that comes late.
func after(wait time.Duration, step modeltest.Step) modeltest.Step {
	step.Wait = wait
	return step
}

func TestLimits(t *testing.T) {
	usage := modeltest.Step{Delta: model.Delta{Usage: &continuo.Usage{InputTokens: 1}}}
	for _, test := range []struct {
		name    string
		answer  []modeltest.Step
		took    time.Duration
		message string // of the timeout, "" for a whole answer
	}{
		{"in time", []modeltest.Step{after(299*time.Second, modeltest.Text("a")), after(119*time.Second, modeltest.Text("b")), after(119*time.Second, modeltest.Finish())}, 537 * time.Second, ""},
		{"nothing", []modeltest.Step{after(time.Hour, modeltest.Text("a"))}, 5 * time.Minute, "the model gave no first token within 5m0s, the first token limit (turn.first)"},
		{"nothing to see", []modeltest.Step{after(4*time.Minute, usage), after(4*time.Minute, modeltest.Text("a"))}, 5 * time.Minute, "the model gave no first token within 5m0s, the first token limit (turn.first)"},
		{"stalled", []modeltest.Step{modeltest.Text("a"), after(time.Hour, modeltest.Text("b"))}, 2 * time.Minute, "the model sent nothing for 2m0s, the idle limit (turn.idle)"},
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			var failed *model.Error
			for _, err := range limit.New(&modeltest.Script{Answers: [][]modeltest.Step{test.answer}}, limit.Options{FirstTokenSetting: "turn.first", IdleSetting: "turn.idle"}).Stream(t.Context(), nil) {
				failed = model.AsError(err)
			}
			if took := time.Since(begin); took != test.took {
				t.Errorf("%s: took %v, want %v", test.name, took, test.took)
			}
			if (failed != nil) != (test.message != "") || failed != nil && (failed.Message != test.message || failed.Reason != continuo.ReasonTimeout || !failed.Retryable || !failed.Costly) {
				t.Errorf("%s: got %v", test.name, failed)
			}
		})
	}
}

func TestTheConsumersTimeDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := &modeltest.Script{Answers: [][]modeltest.Step{{modeltest.Text("a"), modeltest.Text("b"), modeltest.Finish()}}}
		for delta, err := range limit.New(script, limit.Options{}).Stream(t.Context(), nil) {
			if err != nil {
				t.Fatalf("%+v: %v", delta, err)
			}
			time.Sleep(time.Hour) // the consumer's own time, which costs none here
		}
	})
}

// The turn's own end is told as what it is, not as one of these limits.
func TestTheCallersEndIsNotALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		script := &modeltest.Script{Answers: [][]modeltest.Step{{after(time.Hour, modeltest.Text("a"))}}}
		for _, err := range limit.New(script, limit.Options{}).Stream(ctx, nil) {
			if model.AsError(err).Reason != continuo.ReasonCancelled {
				t.Errorf("got %v", err)
			}
		}
	})
}

func TestItIsAModel(t *testing.T) {
	body := []byte(`{"messages":[{"role":"user","content":"hello there"}]}`)
	modeltest.RunModel(t, limit.New(demo.New(demo.Options{}), limit.Options{}), body)
}
