//go:build unix

package mcptool

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/continuo-log/continuo/tool"
)

var _ tool.Source = (*Source)(nil)

func TestToolsOfAChildProcess(t *testing.T) {
	source := connect(t, childOptions(t, "sdk"))
	if got := names(source.Tools(t.Context())); !slices.IsSorted(got) || !slices.Contains(got, "srv.echo") {
		t.Errorf("the tools are %v", got)
	}
	spec := find(t, source, "echo").Spec()
	if spec.Description != "Does echo." || string(spec.Parameters) != `{"properties":{"text":{"type":"string"}},"required":["text"],"type":"object"}` {
		t.Errorf("the tool is told of as %+v with %s", spec, spec.Parameters)
	}
	result := call(t, source, "echo", "häuser & <b>")
	if result.Content != "häuser & <b>" || result.Failed || result.Outcome != "Called srv.echo" {
		t.Errorf("the result is %+v", result)
	}
	wantResult(t, call(t, source, "fail", "x"), true, "no such bank")
}

func TestAChildGetsOnlyItsOwnEnvironment(t *testing.T) {
	t.Setenv("MCPTOOL_TEST_SECRET", "canary")
	options := childOptions(t, "sdk")
	options.Env = append(options.Env, "OWN=yes")
	result := call(t, connect(t, options), "env", "")
	wantResult(t, result, false, "OWN=yes", "PATH=")
	if strings.Contains(result.Content, "canary") {
		t.Error("the child has this process's environment")
	}
}

func TestArgumentsMustBeAnObject(t *testing.T) {
	source := connect(t, childOptions(t, "sdk"))
	echo := find(t, source, "echo")
	for _, given := range []string{`[1]`, `"a"`, `null`, `{"text":`, `{} {}`, `text=1`} {
		wantResult(t, run(t, echo, given), true, "must be one JSON object", "text (string, required)")
	}
	if _, err := objectOf(""); err != nil {
		t.Errorf("no arguments are refused: %v", err)
	}
	wantResult(t, run(t, echo, ""), false)
}

// A call that was in flight may have been carried out: the model is told so, and the server is there again.
func TestDeathInMidCall(t *testing.T) {
	options := childOptions(t, "sdk")
	notified := listen(t, &options)
	source := connect(t, options)
	wantResult(t, call(t, source, "die", ""), true, "may or may not have been carried out", "exit status 3")
	await(t, notified.lines, "dies")
	wantResult(t, call(t, source, "echo", "again"), false, "again")
	select {
	case line := <-notified.lines:
		t.Errorf("the call was repeated: %s", line)
	default:
	}
}

func TestACallThatMayBeRepeatedIs(t *testing.T) {
	wantResult(t, call(t, connect(t, childOptions(t, "sdk")), "die_once", ""), false, "done at last")
}

func TestACallWaitsForTheRestart(t *testing.T) {
	source := connect(t, childOptions(t, "sdk"))
	for range 3 {
		pid, err := strconv.Atoi(call(t, source, "pid", "").Content)
		if err != nil {
			t.Fatal(err)
		}
		life, _ := source.state()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		<-life.ctx.Done()
		wantResult(t, call(t, source, "echo", "back"), false, "back")
	}
}

func TestACallWaitsForARestartForALimitedTime(t *testing.T) {
	options := childOptions(t, "unless-file")
	options.CallWait = 10 * time.Millisecond
	file := strings.TrimPrefix(options.Env[1], fileEnv+"=")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	source := connect(t, options)
	pid, _ := strconv.Atoi(call(t, source, "pid", "").Content)
	life, _ := source.state()
	_ = os.Remove(file)
	_ = syscall.Kill(pid, syscall.SIGKILL)
	<-life.ctx.Done()
	<-source.failedStart(t)
	wantResult(t, call(t, source, "echo", ""), true, "is not available, so that nothing was done", "exit status 4", "waited for 10ms")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantResult(t, find(t, source, "echo").Run(ctx, tool.Call{}), true, "nothing was done")
}

// A call whose wait ends before the end of the session was noticed says the cause, too.
func TestTheCauseOfASessionThatHasJustEnded(t *testing.T) {
	life := &session{}
	life.ctx, life.fail = context.WithCancelCause(t.Context())
	life.fail(errors.New("the disk is gone"))
	source := &Source{options: Options{CallWait: time.Nanosecond}, ctx: t.Context(), current: life, changed: make(chan struct{})}
	if _, err := source.session(t.Context()); err == nil || !strings.Contains(err.Error(), "the disk is gone") {
		t.Errorf("the error is %v", err)
	}
}

// failedStart waits until a start has failed.
func (s *Source) failedStart(t *testing.T) <-chan struct{} {
	t.Helper()
	done := make(chan struct{})
	limit := time.After(patience)
	for {
		_, changed := s.state()
		if err := s.Err(); err != nil && strings.Contains(err.Error(), "did not start") {
			close(done)
			return done
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("no start failed: %v", s.Err())
		}
	}
}

func TestAServerThatCannotStartIsTriedAgain(t *testing.T) {
	options := childOptions(t, "unless-file")
	log := newJournal()
	options.Logger = log.logger()
	again := make(chan time.Time)
	var asked atomic.Int64
	options.After = func(wait time.Duration) <-chan time.Time {
		asked.Store(int64(wait))
		return again
	}
	source := connect(t, options)
	if tools := source.Tools(t.Context()); len(tools) != 0 || source.Err() == nil {
		t.Fatalf("tools %v, error %v", names(tools), source.Err())
	}
	log.await(t, "the token is missing")
	again <- time.Time{}
	log.await(t, "retry_in=2ms")
	if err := os.WriteFile(strings.TrimPrefix(options.Env[1], fileEnv+"="), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	again <- time.Time{}
	log.await(t, "the MCP server is up")
	find(t, source, "echo")
	if source.Err() != nil {
		t.Errorf("it is up with the error %v", source.Err())
	}
}

func TestAProgramThatIsNotThere(t *testing.T) {
	options := childOptions(t, "sdk")
	options.Command = []string{"no-such-program-anywhere"}
	source := connect(t, options)
	if err := source.Err(); err == nil || !strings.Contains(err.Error(), `start "no-such-program-anywhere": executable file not found`) {
		t.Errorf("the error is %v", err)
	}
}

func TestBackoff(t *testing.T) {
	waits := backoff{first: 500 * time.Millisecond, most: 30 * time.Second, well: time.Minute}
	var got []time.Duration
	for _, up := range []time.Duration{0, time.Second, 0, 0, 0, 0, 0, 0, time.Minute, 59 * time.Second} {
		got = append(got, waits.wait(up))
	}
	want := []time.Duration{500e6, 1e9, 2e9, 4e9, 8e9, 16e9, 30e9, 30e9, 500e6, 1e9}
	if !slices.Equal(got, want) {
		t.Errorf("the waits are %v, want %v", got, want)
	}
}

func TestCancelReachesTheServer(t *testing.T) {
	options := childOptions(t, "sdk")
	notified := listen(t, &options)
	source := connect(t, options)
	ctx, cancel := context.WithCancel(t.Context())
	results := make(chan tool.Result)
	hang := find(t, source, "hang")
	go func() { results <- hang.Run(ctx, tool.Call{Arguments: `{"text":""}`}) }()
	await(t, notified.lines, "hangs")
	cancel()
	wantResult(t, <-results, true, "the call was cancelled", "may have carried it out")
	await(t, notified.lines, "cancelled")
	wantResult(t, call(t, source, "echo", "still here"), false, "still here")
}

func TestACallHasATimeLimit(t *testing.T) {
	options := childOptions(t, "sdk")
	options.CallTimeout = 20 * time.Millisecond
	wantResult(t, call(t, connect(t, options), "hang", ""), true, "no answer within 20ms")
}

func TestTheCallersTimeLimitHoldsToo(t *testing.T) {
	source := connect(t, childOptions(t, "sdk"))
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, errors.New("turn"))
	defer cancel()
	wantResult(t, find(t, source, "hang").Run(ctx, tool.Call{Arguments: "{}"}), true, "the call was cancelled")
}

func TestAChangedListIsThereAtOnce(t *testing.T) {
	source := connect(t, childOptions(t, "sdk"))
	wantResult(t, call(t, source, "grow", ""), false)
	log := time.After(patience)
	for {
		if _, ok := source.Tools(t.Context()).Find("srv.grown"); ok {
			break
		}
		select {
		case <-log:
			t.Fatal("the new tool did not appear")
		default:
			runtime.Gosched()
		}
	}
	wantResult(t, call(t, source, "grown", ""), false, "tall")
}

func TestCloseEndsTheWholeGroup(t *testing.T) {
	options := childOptions(t, "sdk")
	notified := listen(t, &options)
	source := connect(t, options)
	wantResult(t, call(t, source, "spawn", ""), false)
	await(t, notified.lines, "grandchild")
	if err := source.Close(); err != nil {
		t.Error(err)
	}
	await(t, notified.ends, "grandchild")
	if left := ours(); len(left) > 0 {
		t.Errorf("Close returned before %v", left)
	}
	_ = source.Close()
	wantResult(t, call(t, source, "echo", ""), true, "the program is closing it")
}

// A grandchild that holds the pipes does not hide that its parent died.
func TestDeathIsSeenBehindAGrandchild(t *testing.T) {
	options := childOptions(t, "sdk")
	notified := listen(t, &options)
	source := connect(t, options)
	wantResult(t, call(t, source, "spawn", ""), false)
	await(t, notified.lines, "grandchild")
	wantResult(t, call(t, source, "die", ""), true, "exit status 3")
	await(t, notified.ends, "grandchild")
	wantResult(t, call(t, source, "echo", "back"), false, "back")
}

func TestCloseDuringACall(t *testing.T) {
	options := childOptions(t, "sdk")
	notified := listen(t, &options)
	source := connect(t, options)
	results := make(chan tool.Result)
	hang := find(t, source, "hang")
	go func() { results <- hang.Run(context.Background(), tool.Call{Arguments: `{"text":""}`}) }()
	await(t, notified.lines, "hangs")
	_ = source.Close()
	wantResult(t, <-results, true, "may or may not have been carried out", "closing")
}

func TestOptionsThatCannotWork(t *testing.T) {
	for _, options := range []Options{
		{Name: "a"},
		{Name: "a", Command: []string{"x"}, URL: "http://localhost"},
		{Name: "A", URL: "http://localhost"},
		{Name: "", URL: "http://localhost"},
		{Name: strings.Repeat("a", 33), URL: "http://localhost"},
		{Name: "a", URL: "ftp://x"},
		{Name: "a", Command: []string{""}},
		{Name: "a.b", URL: "http://localhost"},
	} {
		if source, err := Connect(t.Context(), options); err == nil || source != nil {
			t.Errorf("%+v is accepted", options)
		}
	}
}
