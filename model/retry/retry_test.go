package retry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	_ "github.com/continuo-log/continuo/internal/rapidseed" // the same values in every run
	"pgregory.net/rapid"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/demo"
	"github.com/continuo-log/continuo/model/modeltest"
	"github.com/continuo-log/continuo/model/retry"
)

// outcome is what a consumer got, how long it took, and what was observed of the attempts.
type outcome struct {
	text  string
	usage *continuo.Usage
	err   *model.Error
	took  time.Duration
	waits []time.Duration
}

// play asks a script once. Waits are drawn as the middle of their range.
func play(ctx context.Context, script *modeltest.Script, options retry.Options) outcome {
	var got outcome
	options.Random = func() float64 { return 0.5 }
	options.OnRetry = func(_ int, _ error, wait time.Duration) { got.waits = append(got.waits, wait) }
	begin := time.Now()
	for delta, err := range retry.New(script, options).Stream(ctx, nil) {
		got.text += delta.Text
		if delta.Usage != nil {
			got.usage = delta.Usage
		}
		got.err = model.AsError(err)
	}
	got.took = time.Since(begin)
	return got
}

// asks is a failure with a Retry-After.
func asks(wait time.Duration) modeltest.Step {
	return modeltest.Step{Err: &model.Error{Reason: continuo.ReasonUpstream, Status: 503, Retryable: true, RetryAfter: wait, Message: "slow down"}}
}

func usage(tokens int) modeltest.Step {
	return modeltest.Step{Delta: model.Delta{Usage: &continuo.Usage{InputTokens: tokens}}}
}

type answers = [][]modeltest.Step

func TestAPassingFailureIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := &modeltest.Script{Answers: answers{
			{usage(1), modeltest.Fails(continuo.ReasonUpstream)},
			{modeltest.Fails(continuo.ReasonNetwork)},
			{usage(3), modeltest.Text("fine"), modeltest.Finish()},
		}}
		got := play(t.Context(), script, retry.Options{})
		if got.err != nil || got.text != "fine" || got.usage.InputTokens != 3 || script.Requests() != 3 {
			t.Errorf("%d requests, got %+v", script.Requests(), got)
		}
		if want := []time.Duration{250 * time.Millisecond, 500 * time.Millisecond}; !slices.Equal(got.waits, want) || got.took != 750*time.Millisecond {
			t.Errorf("waited %v, %v in all; want %v", got.waits, got.took, want)
		}
	})
}

func TestErrorsThatAreNotRetried(t *testing.T) {
	refused := modeltest.Step{Err: &model.Error{Reason: continuo.ReasonUpstream, Status: 400, Message: "bad request"}}
	call := modeltest.Step{Delta: model.Delta{ToolCall: &model.ToolCallDelta{ID: "a", Name: "f"}}}
	reasoning := modeltest.Step{Delta: model.Delta{Reasoning: "hm"}}
	costly := modeltest.Step{Err: &model.Error{Reason: continuo.ReasonTimeout, Retryable: true, Costly: true, Message: "no first token"}}
	if got := play(t.Context(), &modeltest.Script{Answers: answers{{costly}}}, retry.Options{}); got.err == nil || !got.err.Retryable ||
		got.err.Message != "no first token: it is not retried automatically, because the upstream had begun to work and a retry costs as much" {
		t.Errorf("costly: got %+v, %v", got, got.err)
	}
	for name, answer := range map[string][]modeltest.Step{
		"refused":         {refused},
		"refused form":    {{Err: &model.Error{Reason: continuo.ReasonUpstream, Status: 500, Retryable: true, Message: "roles must alternate"}}},
		"after text":      {modeltest.Text("half"), modeltest.Fails(continuo.ReasonNetwork)},
		"after a call":    {call, modeltest.Fails(continuo.ReasonNetwork)},
		"after reasoning": {reasoning, modeltest.Fails(continuo.ReasonNetwork)},
	} {
		script := &modeltest.Script{Answers: answers{answer, {modeltest.Text("never")}}}
		got := play(t.Context(), script, retry.Options{})
		if want := answer[len(answer)-1].Err; script.Requests() != 1 || got.err == nil || *got.err != *want || strings.Contains(got.text, "never") {
			t.Errorf("%s: %d requests, got %+v", name, script.Requests(), got)
		}
	}
}

func TestTheLastErrorIsReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := &modeltest.Script{Answers: answers{{modeltest.Fails(continuo.ReasonNetwork)}, {usage(2), asks(0)}}}
		got := play(t.Context(), script, retry.Options{Attempts: 2})
		if got.err.Status != 503 || got.err.Reason != continuo.ReasonUpstream || !got.err.Retryable || got.err.Message != "slow down (tried 2 times)" {
			t.Errorf("got %+v", got.err)
		}
		if got.usage == nil || got.usage.InputTokens != 2 {
			t.Errorf("what the last attempt told besides is lost: %+v", got.usage)
		}
	})
}

func TestRetryAfterIsObeyed(t *testing.T) {
	ok := []modeltest.Step{modeltest.Text("ok"), modeltest.Finish()}
	for _, test := range []struct {
		name    string
		asked   time.Duration
		options retry.Options
		within  time.Duration // of the turn
		took    time.Duration
		message string // of the error
	}{
		{"longer than the backoff", 7 * time.Second, retry.Options{}, time.Hour, 7 * time.Second, ""},
		{"shorter than the backoff", time.Millisecond, retry.Options{}, time.Hour, 250 * time.Millisecond, ""},
		{"as long as is allowed", 30 * time.Second, retry.Options{}, time.Hour, 30 * time.Second, ""},
		{"longer than is allowed", 31 * time.Second, retry.Options{}, time.Hour, 0, "slow down: it asks to wait 31s, longer than the limit of 30s"},
		{"longer than the turn", 7 * time.Second, retry.Options{}, 7 * time.Second, 0, "slow down: another try after 7s would be too late for the turn"},
		{"longer than all tries", 7 * time.Second, retry.Options{MaxTotal: 6 * time.Second}, time.Hour, 0, "slow down: another try after 7s would exceed the limit of 6s for all tries"},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), test.within)
			defer cancel()
			got := play(ctx, &modeltest.Script{Answers: answers{{asks(test.asked)}, ok}}, test.options)
			answered := ""
			if got.err != nil {
				answered = got.err.Message
			}
			if got.took != test.took || answered != test.message || (answered == "") != (got.text == "ok") {
				t.Errorf("%s: got %+v, error %q", test.name, got, answered)
			}
		})
	}
}

func TestCancellingEndsAWaitAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		got := play(ctx, &modeltest.Script{Answers: answers{{asks(20 * time.Second)}, {modeltest.Text("never")}}}, retry.Options{})
		if got.took != 3*time.Second || got.err.Reason != continuo.ReasonCancelled || !errors.Is(got.err, context.Canceled) {
			t.Errorf("got %+v, %v", got, got.err)
		}
	})
}

// TestAReaderNeverSeesTextTwice: whatever fails and when, what a reader sees is the beginning of one
// attempt, the first that showed anything; a failure after that is the reader's to know.
func TestAReaderNeverSeesTextTwice(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		script := &modeltest.Script{}
		tries := rapid.IntRange(1, 6).Draw(r, "attempts")
		shows := -1
		for n := range tries {
			var steps []modeltest.Step
			for i := range rapid.IntRange(0, 4).Draw(r, "deltas") {
				if rapid.Bool().Draw(r, "visible") {
					steps = append(steps, modeltest.Text(fmt.Sprintf("<%d.%d>", n, i)))
					shows = cmpFirst(shows, n)
				} else {
					steps = append(steps, usage(n))
				}
			}
			switch rapid.IntRange(0, 4).Draw(r, "end") {
			case 0:
				steps = append(steps, modeltest.Finish())
				shows = cmpFirst(shows, n)
			default:
				steps = append(steps, modeltest.Step{Err: &model.Error{Reason: continuo.ReasonNetwork, Retryable: true, RetryAfter: time.Nanosecond}})
			}
			script.Answers = append(script.Answers, steps)
		}
		answer := retry.New(script, retry.Options{Attempts: tries, FirstWait: time.Nanosecond})
		stop := rapid.IntRange(1, 10).Draw(r, "the consumer stops at")
		var got, want string
		seen := 0
		for delta := range answer.Stream(t.Context(), nil) {
			got += delta.Text
			if seen++; seen == stop {
				break
			}
		}
		if shows < 0 {
			shows = tries - 1
		}
		for _, step := range script.Answers[shows] {
			want += step.Delta.Text
		}
		if !strings.HasPrefix(want, got) || seen < stop && got != want || script.Requests() != shows+1 {
			r.Fatalf("saw %q after %d requests, want %q after %d", got, script.Requests(), want, shows+1)
		}
	})
}

// cmpFirst keeps the first n that was found.
func cmpFirst(found, n int) int {
	if found < 0 {
		return n
	}
	return found
}

func TestItIsAModel(t *testing.T) {
	body := []byte(`{"messages":[{"role":"user","content":"hello there"}]}`)
	modeltest.RunModel(t, retry.New(demo.New(demo.Options{}), retry.Options{}), body)
}
