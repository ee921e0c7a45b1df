package breaker_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/breaker"
	"github.com/continuo-log/continuo/model/demo"
	"github.com/continuo-log/continuo/model/modeltest"
)

var (
	fails   = []modeltest.Step{modeltest.Fails(continuo.ReasonUpstream)}
	breaks  = []modeltest.Step{modeltest.Text("half"), modeltest.Fails(continuo.ReasonNetwork)}
	answers = []modeltest.Step{modeltest.Text("fine"), modeltest.Finish()}
	refuses = []modeltest.Step{{Err: &model.Error{Reason: continuo.ReasonUpstream, Status: 400, Message: "bad request"}}}
	limits  = []modeltest.Step{{Err: &model.Error{Reason: continuo.ReasonRateLimit, Status: 429, Retryable: true, Message: "slow down"}}}
	early   = []modeltest.Step{{Err: &model.Error{Reason: continuo.ReasonUpstream, Status: 425, Retryable: true, Message: "too early"}}}
	stalls  = []modeltest.Step{{Wait: time.Hour, Delta: model.Delta{Text: "late"}}, modeltest.Finish()}
)

// fixture is a script behind a breaker that opens after three failures.
type fixture struct {
	*breaker.Model
	script *modeltest.Script

	mu      sync.Mutex // answers in progress change the state beside the test
	entered []breaker.State
}

func newFixture(script ...[]modeltest.Step) *fixture { return newPatient(0, script...) }

// newPatient is a house whose requests wait.
func newPatient(patience time.Duration, script ...[]modeltest.Step) *fixture {
	h := &fixture{script: &modeltest.Script{Answers: script}}
	h.Model = breaker.New(h.script, breaker.Options{Name: "main", Failures: 3, Patience: patience, OnChange: h.enter})
	return h
}

func (h *fixture) enter(state breaker.State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.entered = append(h.entered, state)
}

// states are the states that the breaker has entered so far.
func (h *fixture) states() []breaker.State {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.entered)
}

// ask makes one request and returns its error.
func (h *fixture) ask(ctx context.Context) *model.Error {
	var failed *model.Error
	for _, err := range h.Stream(ctx, nil) {
		failed = model.AsError(err)
	}
	return failed
}

func TestItOpensTriesAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(fails, breaks, fails, fails, answers, answers)
		for range 3 {
			h.ask(t.Context())
		}
		time.Sleep(10 * time.Second)
		refused := h.ask(t.Context())
		if h.script.Requests() != 3 || refused == nil || refused.Reason != continuo.ReasonUpstream || !refused.Retryable || refused.RetryAfter != 20*time.Second {
			t.Errorf("open: %d requests, %+v", h.script.Requests(), refused)
		}
		if want := "the upstream main was not called, because its circuit breaker is open; it is tried again in 20s"; refused.Message != want {
			t.Errorf("open: %s", refused.Message)
		}
		time.Sleep(20*time.Second + 1)
		h.ask(t.Context()) // the trial, which fails
		if refused = h.ask(t.Context()); h.script.Requests() != 4 || refused.RetryAfter != 30*time.Second {
			t.Errorf("open again: %d requests, %+v", h.script.Requests(), refused)
		}
		time.Sleep(30*time.Second + 1)
		for range 2 {
			if failed := h.ask(t.Context()); failed != nil {
				t.Errorf("closed: %v", failed)
			}
		}
		if want := []breaker.State{breaker.Open, breaker.HalfOpen, breaker.Open, breaker.HalfOpen, breaker.Closed}; !slices.Equal(h.states(), want) {
			t.Errorf("states %v, want %v", h.states(), want)
		}
	})
}

func TestWhatDoesNotCount(t *testing.T) {
	for name, script := range map[string][][]modeltest.Step{
		"refused for what it says": {fails, fails, refuses, fails, fails, refuses},
		"rate limits":              {limits, limits, limits, limits, fails, fails, limits, fails, fails},
		"the caller's own (4xx)":   {early, early, early, early},
		"answered between":         {fails, fails, answers, fails, fails, answers},
	} {
		h := newFixture(script...)
		for range script {
			h.ask(t.Context())
		}
		if h.script.Requests() != len(script) || len(h.states()) != 0 {
			t.Errorf("%s: %d requests, states %v", name, h.script.Requests(), h.states())
		}
	}
}

// Callers that leave, run out of time or stop reading neither open the breaker nor hide failures.
// Failures come sooner than answers: of a hundred streams that begin at once, those that break end first.
func TestRunningAnswersKeepItClosed(t *testing.T) {
	long := []modeltest.Step{modeltest.Text("Once"), {Wait: time.Minute, Delta: model.Delta{Text: "upon a time"}}, modeltest.Finish()}
	for name, c := range map[string]struct {
		streams, failures int
		kind              []modeltest.Step
		want              []breaker.State
	}{
		"some of many break":       {streams: 5, failures: 5, kind: breaks},
		"some of many are refused": {streams: 5, failures: 5, kind: fails},
		"more break than are left": {streams: 5, failures: 6, kind: breaks, want: []breaker.State{breaker.Open}},
		"few are left":             {streams: 2, failures: 3, kind: fails, want: []breaker.State{breaker.Open}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var script [][]modeltest.Step
				for range c.streams {
					script = append(script, long)
				}
				for range c.failures {
					script = append(script, c.kind)
				}
				h := newFixture(script...)
				for range c.streams {
					go h.ask(t.Context())
				}
				synctest.Wait()
				for range c.failures {
					h.ask(t.Context())
				}
				if !slices.Equal(h.states(), c.want) {
					t.Errorf("states %v, want %v", h.states(), c.want)
				}
				time.Sleep(2 * time.Minute)
			})
		})
	}
}

// An answer that has ended, however, no longer counts.
func TestAnswersThatHaveEndedDoNotKeepItClosed(t *testing.T) {
	h := newFixture(answers, breaks, answers, fails, fails, fails)
	for range 6 {
		h.ask(t.Context())
	}
	if want := []breaker.State{breaker.Open}; !slices.Equal(h.states(), want) {
		t.Errorf("states %v, want %v", h.states(), want)
	}
}

func TestTheCallersCancellationIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(fails, stalls, stalls, answers, fails, fails)
		h.ask(t.Context())
		timed, cancelTimed := context.WithTimeout(t.Context(), time.Second)
		defer cancelTimed()
		h.ask(timed)
		left, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		h.ask(left)
		for range h.Stream(t.Context(), nil) {
			break
		}
		h.ask(t.Context())
		if len(h.states()) != 0 {
			t.Errorf("states %v after two failures", h.states())
		}
		h.ask(t.Context())
		if !slices.Equal(h.states(), []breaker.State{breaker.Open}) {
			t.Errorf("states %v after three failures", h.states())
		}
	})
}

// While a trial waits for its answer, others are refused; a trial that its caller gives up makes room
// for another one; and the first visible piece is enough to let everybody in.
func TestTheTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := []modeltest.Step{{Wait: time.Second, Delta: model.Delta{Text: "a"}}, {Wait: time.Hour, Delta: model.Delta{Text: "b"}}, modeltest.Finish()}
		h := newFixture(fails, fails, fails, stalls, long, answers)
		for range 3 {
			h.ask(t.Context())
		}
		time.Sleep(30*time.Second + 1)
		ctx, cancel := context.WithCancel(t.Context())
		given := make(chan *model.Error)
		go func() { given <- h.ask(ctx) }()
		synctest.Wait()
		if refused := h.ask(t.Context()); refused == nil || refused.Message != "the upstream main was not called, because its circuit breaker is open; one request is trying it just now" {
			t.Errorf("beside the trial: %v", refused)
		}
		cancel()
		<-given
		go func() { given <- h.ask(t.Context()) }()
		time.Sleep(2 * time.Second)
		if failed := h.ask(t.Context()); failed != nil {
			t.Errorf("after the trial's first text: %v", failed)
		}
		if failed := <-given; failed != nil {
			t.Errorf("the trial: %v", failed)
		}
	})
}

// TestATrialDelaysNoRequest: a trial that fails waits for the next one and gets its answer there, and requests
// beside a trial wait for its outcome.
func TestATrialDelaysNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := []modeltest.Step{{Wait: time.Second, Delta: model.Delta{Text: "fine"}}, modeltest.Finish()}
		h := newPatient(time.Minute, fails, fails, fails, fails, slow, answers, answers)
		for range 3 {
			h.ask(t.Context())
		}
		time.Sleep(30*time.Second + 1)
		begin := time.Now()
		given := make(chan *model.Error, 3)
		go func() { given <- h.ask(t.Context()) }()
		synctest.Wait()
		if refused := h.ask(t.Context()); refused == nil || refused.RetryAfter != 30*time.Second {
			t.Errorf("between two trials: %+v", refused)
		}
		time.Sleep(30*time.Second + time.Millisecond)
		for range 2 {
			go func() { given <- h.ask(t.Context()) }()
		}
		for range 3 {
			if failed := <-given; failed != nil {
				t.Errorf("after %v: %v", time.Since(begin), failed)
			}
		}
		if took := time.Since(begin).Round(time.Second); took != 31*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// A trial gives up when the next one would come too late for it.
func TestTheTrialsPatienceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newPatient(time.Minute, fails, fails, fails, fails, fails, answers)
		for range 3 {
			h.ask(t.Context())
		}
		time.Sleep(30*time.Second + 1)
		begin := time.Now()
		if failed := h.ask(t.Context()); failed == nil || failed.Message != "it went wrong" || time.Since(begin).Round(time.Second) != 30*time.Second {
			t.Errorf("after %v: %v", time.Since(begin), failed)
		}
	})
}

func TestItIsAModel(t *testing.T) {
	body := []byte(`{"messages":[{"role":"user","content":"hello there"}]}`)
	modeltest.RunModel(t, breaker.New(demo.New(demo.Options{}), breaker.Options{}), body)
}
