package durable

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/audit"
	"github.com/continuo-log/continuo/internal/backoff"
	"github.com/continuo-log/continuo/turn"
)

// Errors of runs.
var (
	// ErrClosing says that the program is ending.
	ErrClosing = errors.New("the server is shutting down")
	// ErrUnsupported says that a run needs an agent, a model or a view that is not in the settings of this process.
	// Another process may have it: the run is left unchanged.
	ErrUnsupported = errors.New("it needs an agent, model or view that these settings lack")
	// ErrCorrupt says that a run cannot be read: its text is missing, or its events are invalid. It can only be ended.
	ErrCorrupt = errors.New("the run cannot be read")
	// ErrStale says that a turn must not begin: the run has changed since the step was chosen; see [Driver.RunTurn].
	ErrStale = errors.New("the run has changed")
)

// Options configures a Driver. All fields are needed.
type Options struct {
	Log    *continuo.Log
	Keeper *turn.Keeper
	// Open makes the execution of a run. It reads nothing yet.
	Open func(run continuo.Run) Execution
	// Follow yields the events of a turn with ids above after; see [turn.Keeper.Follow].
	Follow func(ctx context.Context, t continuo.Turn, after int64) iter.Seq2[turn.Event, error]
	// IsTransient reports whether an error is transient, so that the operation is retried.
	IsTransient func(err error) bool
	// Working counts a worker until done is called.
	Working func() (done func())
	// Redact removes secrets from the reason for which a run broke off.
	Redact func(text string) string
	// Wait bounds how long a change of a run waits for calls without results.
	Wait time.Duration
	// StepPause is how long a run waits between two of its turns, so that other processes can get the conversation.
	StepPause time.Duration
	Logger    *slog.Logger
	// Draining ends when nothing may begin any more, Closing when running work must end.
	Draining, Closing context.Context
}

// Driver drives runs. It is safe for concurrent use.
type Driver struct {
	options Options
	group   sync.WaitGroup // of workers
	mu      sync.Mutex
	workers map[string]*worker // by run
}

// worker is the goroutine that drives one run in this process.
type worker struct {
	wakeRequested bool            // since the run was last read
	ctx           context.Context // when done, the worker takes no more steps
}

// New makes a driver.
func New(options Options) *Driver {
	return &Driver{options: options, workers: map[string]*worker{}}
}

// Resume gives a run a worker, whose requests to models are charged to the run's key, whoever resumes it. If the run has one in this process, that worker reads the run again. A worker that is
// not detached stops when ctx ends, and another process can resume the run. It fails with ErrClosing only.
func (d *Driver) Resume(ctx context.Context, run continuo.Run, detached bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.options.Draining.Err() != nil {
		return ErrClosing
	}
	if busy := d.workers[run.ID]; busy != nil && busy.ctx.Err() == nil {
		busy.wakeRequested = true
		return nil
	}
	workCtx := audit.WithSubject(context.WithoutCancel(ctx), nil) // the caller asked for the run, not for what its steps read
	workCtx = continuo.WithPayer(workCtx, continuo.Payer{ProjectID: run.ProjectID, KeyID: run.KeyID})
	workCtx, cancel := context.WithCancelCause(continuo.WithMemory(workCtx, nil))
	w := &worker{wakeRequested: true, ctx: workCtx}
	d.workers[run.ID] = w
	interrupt := func() { cancel(turn.ErrInterrupted) }
	stops := []func() bool{context.AfterFunc(d.options.Closing, interrupt)}
	if !detached {
		stops = append(stops, context.AfterFunc(ctx, interrupt))
	}
	done := d.options.Working()
	d.group.Go(func() {
		defer done()
		for d.takeWake(run.ID, w) {
			d.work(workCtx, run)
		}
		for _, stop := range stops {
			stop()
		}
		cancel(nil)
	})
	return nil
}

// takeWake reports whether a worker must read its run again; otherwise it removes the worker.
func (d *Driver) takeWake(runID string, w *worker) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w.wakeRequested {
		w.wakeRequested = false
		return true
	}
	if d.workers[runID] == w {
		delete(d.workers, runID)
	}
	return false
}

// hasWorker reports whether the run has a worker in this process.
func (d *Driver) hasWorker(runID string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.workers[runID] != nil
}

// Wait returns when the last worker has ended. No worker may begin meanwhile, which holds once Options.Draining has
// ended.
func (d *Driver) Wait() {
	d.mu.Lock()
	//lint:ignore SA2001 a Resume that saw the program running has counted its worker when it lets go of the lock
	d.mu.Unlock()
	d.group.Wait()
}

// transientPause is the wait before a retry after a transient error.
const transientPause = time.Second

// work takes steps until none is due, and retries after transient errors. Other errors break the run off: a person
// may remove the cause and resume it.
func (d *Driver) work(ctx context.Context, run continuo.Run) {
	logger := d.options.Logger.With("conversation_id", run.ConversationID, "run_id", run.ID)
	for {
		err := d.options.Open(run).Advance(ctx)
		var failed error // to record what happens to the run
		switch d.afterError(ctx, err) {
		case idle:
			return
		case leaveToOthers:
			logger.WarnContext(ctx, "run_unsupported", "error", err.Error())
			return
		case retry:
			logger.WarnContext(ctx, "run_retried", "error", err.Error())
			d.pause(ctx, transientPause)
			continue
		case endCorrupt:
			logger.ErrorContext(ctx, "run_corrupt", "error", err.Error())
			failed = d.EndCorrupt(ctx, run, continuo.RunEventFailed, err.Error())
		case breakOff:
			logger.ErrorContext(ctx, "run_failed", "error", err.Error())
			failed = d.options.Open(run).BreakOff(ctx, err.Error())
		}
		if failed != nil {
			logger.ErrorContext(ctx, "run_end_not_recorded", "error", failed.Error())
		}
		return
	}
}

// disposition is what a worker does after its steps have ended.
type disposition int

const (
	idle          disposition = iota // no step is due here
	retry                            // after a pause
	leaveToOthers                    // processes with other settings
	endCorrupt                       // the run, by an event that does not depend on its state
	breakOff                         // the run, until a person resumes it
)

// afterError is the disposition after an error; nil for none.
func (d *Driver) afterError(ctx context.Context, err error) disposition {
	switch {
	case errors.Is(err, ErrUnsupported):
		return leaveToOthers
	case errors.Is(err, ErrCorrupt):
		return endCorrupt
	case err == nil, ctx.Err() != nil, errors.Is(err, ErrClosing):
		return idle
	case errors.Is(err, continuo.ErrArchived), errors.Is(err, continuo.ErrNotFound): // the conversation
		return idle
	case d.options.IsTransient(err):
		return retry
	}
	return breakOff
}

// pause waits, unless the process shuts down.
func (d *Driver) pause(ctx context.Context, wait time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.options.Draining, cancel)()
	_ = backoff.Wait(ctx, wait) // the next step returns the error of ctx
}

// maxYield bounds the wait before an attempt that follows broken-off ones.
const maxYield = 30 * time.Second

// yieldToOthers waits between two turns of a run, since processes that wait for the conversation may poll it. The
// wait grows with the number of attempts that broke off in a row.
func (d *Driver) yieldToOthers(ctx context.Context, attempts int) {
	d.pause(ctx, max(d.options.StepPause, backoff.Doubled(d.options.StepPause, maxYield, attempts)))
}

// maxAbandoned bounds how many runs one ResumeAbandoned inspects.
const maxAbandoned = 1000

// ResumeAbandoned resumes runs whose process is gone: those in the state running with no event for the time quiet and
// no turn in progress. It returns how many. Resuming a run that another process still drives is harmless.
func (d *Driver) ResumeAbandoned(ctx context.Context, quiet time.Duration) (resumed int, err error) {
	running, err := d.options.Log.Runs().RunningRuns(ctx, time.Now().Add(-quiet), maxAbandoned)
	if err != nil {
		return 0, err
	}
	var failure error // the first
	for _, run := range running {
		if d.hasWorker(run.ID) {
			continue
		}
		running, err := d.RunningTurn(ctx, run.ConversationID)
		if err == nil && !d.options.Open(run).IsSupported(ctx) {
			continue
		}
		if err == nil && (running == nil || running.RunID != run.ID) {
			err = d.Resume(ctx, run, true)
			resumed++
		}
		if failure == nil {
			failure = err
		}
	}
	return resumed, failure
}
