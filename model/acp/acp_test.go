//go:build unix

package acp

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	acp "github.com/coder/acp-go-sdk"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/child/childtest"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/prompt"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/modeltest"
)

func body(text string, system ...string) []byte {
	return rawjson.MustMarshal(prompt.Request{System: system, Prompt: text})
}

func of(env []string, change func(*Options)) *Model {
	options := Options{Name: "agent", Command: []string{os.Args[0]}, Env: env, Grace: 100 * time.Millisecond}
	if change != nil {
		change(&options)
	}
	return New(options)
}

// patient is the grace of agents that end, or obey, by themselves, however busy the machine is.
const patient = 5 * time.Minute

// whole is a whole answer.
type whole struct {
	text, reasoning, finish string
	usage                   *continuo.Usage
	err                     error
}

func ask(ctx context.Context, m model.Model, body []byte) (all whole) {
	for delta, err := range m.Stream(ctx, body) {
		all.text, all.reasoning, all.finish = all.text+delta.Text, all.reasoning+delta.Reasoning, all.finish+delta.Finish
		if all.err = err; delta.Usage != nil {
			all.usage = delta.Usage
		}
	}
	return all
}

func noGoroutines(t *testing.T) {
	t.Helper()
	childtest.NoGoroutines(t, "model/acp", "model/internal/timed")
}

func reasonOf(err error) continuo.FailureReason {
	var failure *model.Error
	if !errors.As(err, &failure) || failure.Retryable {
		return ""
	}
	return failure.Reason
}

func TestModel(t *testing.T) {
	modeltest.RunModel(t, of(childtest.Env("polite"), nil), body("hello"))
	noGoroutines(t)
}

func TestAnAnswer(t *testing.T) {
	for allow, want := range map[bool]whole{
		false: {text: "You said be brief\n\nhello.\n\nIt was: no", reasoning: "Let me see.\ntool: Write a file\nnot permitted: Write a file\n", finish: "stop"},
		true:  {text: "You said be brief\n\nhello.\n\nIt was: yes", reasoning: "Let me see.\ntool: Write a file\n", finish: "stop"},
	} {
		got := ask(t.Context(), of(childtest.Env("polite"), func(o *Options) { o.Allow = allow }), body("hello", "be brief"))
		if got != want { // what an agent counts is of all its own requests, and would mislead the window
			t.Errorf("allow %v: got %+v\nwant %+v", allow, got, want)
		}
	}
}

func TestAnAgentWorksInItsFolder(t *testing.T) {
	folder := t.TempDir()
	if got := ask(t.Context(), of(childtest.Env("polite"), func(o *Options) { o.Dir = folder }), body("folder")); got.text != "session in "+folder {
		t.Errorf("got %+v", got)
	}
	here, _ := os.Getwd()
	if got := ask(t.Context(), of(childtest.Env("polite"), nil), body("folder")); got.text != "session in "+here {
		t.Errorf("got %+v", got)
	}
}

func TestWhyAnAgentStops(t *testing.T) {
	for stop, want := range map[string]string{"max_tokens": "length", "refusal": "content_filter", "max_turn_requests": "max_turn_requests"} {
		if got := ask(t.Context(), of(childtest.Env("polite"), nil), body("stop "+stop)); got.finish != want || got.err != nil {
			t.Errorf("%s: got %+v", stop, got)
		}
	}
	if got := ask(t.Context(), of(childtest.Env("polite"), nil), body("stop cancelled")); reasonOf(got.err) != continuo.ReasonCancelled {
		t.Errorf("got %+v", got)
	}
}

func TestHowAgentsMisbehave(t *testing.T) {
	name := `"` + os.Args[0] + `"`
	for role, want := range map[string]whole{
		"crash":      {err: errors.New("agent could not initialize: " + name + " ended with exit status 4; its stderr: no key")},
		"leaves":     {err: errors.New("agent could not answer: it ended before it had answered")},
		"logged out": {err: errors.New(`agent could not begin a session: Authentication required {"methods":["oauth"]}; log in with the agent's own program first, or give it its key in the connector's env`)},
		"newer":      {err: errors.New("agent speaks version 2 of the protocol, and Continuo version 1 only")},
		"silent":     {reasoning: "hm", err: errors.New("agent ended its turn without an answer")},
		"broken":     {err: errors.New("the agent sent a piece of its answer that cannot be read: ")},
		"foreign":    {text: "hello", finish: "stop"},
		"noisy":      {text: "code -32601", finish: "stop"},
		"endless":    {err: errors.New("agent could not answer: the agent sent a message of more than the maximum of 33554432 bytes")},
		"flood":      {text: strings.Repeat("hello", 200), err: errors.New("agent sent more than the maximum of 1000 bytes")},
	} {
		got := ask(t.Context(), of(childtest.Env(role), func(o *Options) { o.MaxOutput = 1000; o.Grace = patient }), body("go"))
		wrong, reason := want.err, continuo.ReasonUpstream
		if role == "flood" {
			reason = continuo.ReasonTurnLimit
		}
		want.err, got.err = nil, errors.Join(got.err)
		failure := got.err
		got.err = nil
		switch {
		case got != want:
			t.Errorf("%s: got %+v, %v\nwant %+v", role, got, failure, want)
		case wrong == nil && failure != nil, wrong != nil && (reasonOf(failure) != reason || !strings.Contains(failure.Error(), wrong.Error())):
			t.Errorf("%s: got %v\nwant %v", role, failure, wrong)
		}
	}
	noGoroutines(t)
}

// An agent receives a cancel request before it is ended.
func TestAnAgentIsCancelled(t *testing.T) {
	w := childtest.NewWitness(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var failed error
	for delta, err := range of(w.Env("patient"), func(o *Options) { o.Grace = patient }).Stream(ctx, body("go")) {
		if delta.Text == "begun" {
			cancel()
		}
		failed = err
	}
	conn := w.Running()
	if yielded, err := io.ReadAll(conn); string(yielded) != "cancelled" || err != nil {
		t.Errorf("the agent says %q, %v", yielded, err)
	}
	if reasonOf(failed) != continuo.ReasonCancelled || !errors.Is(failed, context.Canceled) {
		t.Errorf("got %v", failed)
	}
	noGoroutines(t)
}

func TestNothingIsLeftBehind(t *testing.T) {
	w := childtest.NewWitness(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var failed error
	for delta, err := range of(w.Env("stubborn"), nil).Stream(ctx, body("go")) {
		if delta.Text == "hello" {
			cancel()
		}
		failed = err
	}
	w.Gone(w.Running())
	if reasonOf(failed) != continuo.ReasonCancelled {
		t.Errorf("got %v", failed)
	}
	for range of(w.Env("stubborn"), nil).Stream(t.Context(), body("go")) {
		break
	}
	w.Gone(w.Running())
	noGoroutines(t)
}

func TestAnAgentHasATime(t *testing.T) {
	for _, role := range []string{"deaf", "stubborn", "mute"} {
		long := body(strings.Repeat("long ", 1<<18)) // more than a pipe holds
		got := ask(t.Context(), of(childtest.NewWitness(t).Env(role), func(o *Options) { o.Timeout, o.Grace = 150*time.Millisecond, 300*time.Millisecond }), long)
		if reasonOf(got.err) != continuo.ReasonTimeout || !errors.Is(got.err, context.DeadlineExceeded) || !strings.Contains(got.err.Error(), "agent did not end within 150ms") {
			t.Errorf("%s: got %+v, %v", role, got, got.err)
		}
	}
	noGoroutines(t)
}

func TestWhatCannotBeginIsSaid(t *testing.T) {
	m := New(Options{Name: "agent", Command: []string{"no-such-program-anywhere"}, Setting: "connectors.agent.acp"})
	if got := ask(t.Context(), m, body("go")); reasonOf(got.err) != continuo.ReasonUpstream ||
		!strings.HasSuffix(got.err.Error(), `start "no-such-program-anywhere": executable file not found in $PATH; install the program, or correct connectors.agent.acp`) {
		t.Errorf("got %v", got.err)
	}
	if got := ask(t.Context(), m, []byte(`{}`)); reasonOf(got.err) != continuo.ReasonUpstream || !strings.Contains(got.err.Error(), "read the prompt's request") {
		t.Errorf("got %v", got.err)
	}
}

func TestPermissionsGoByKind(t *testing.T) {
	option := func(id acp.PermissionOptionId, kind acp.PermissionOptionKind) acp.PermissionOption {
		return acp.PermissionOption{OptionId: id, Kind: kind}
	}
	once, always := option("1", acp.PermissionOptionKindAllowOnce), option("2", acp.PermissionOptionKindAllowAlways)
	no, never := option("3", acp.PermissionOptionKindRejectOnce), option("4", acp.PermissionOptionKindRejectAlways)
	for _, c := range []struct {
		allow, cancelled bool
		options          []acp.PermissionOption
		want             acp.PermissionOptionId // "" for cancelled
	}{
		{true, false, []acp.PermissionOption{never, no, always, once}, "1"},
		{true, false, []acp.PermissionOption{never, no, always}, "2"},
		{true, false, []acp.PermissionOption{never, no}, ""},
		{false, false, []acp.PermissionOption{once, always, never, no}, "3"},
		{false, false, []acp.PermissionOption{once, always, never}, "4"},
		{false, false, []acp.PermissionOption{once, always}, ""},
		{false, false, nil, ""},
		{true, true, []acp.PermissionOption{once}, ""},
		{false, true, []acp.PermissionOption{no}, ""},
	} {
		s := &session{options: Options{Allow: c.allow}}
		s.cancelled.Store(c.cancelled)
		got := s.decide(acp.RequestPermissionRequest{Options: c.options}, nil)
		if c.want == "" && got.Cancelled == nil || c.want != "" && (got.Selected == nil || got.Selected.OptionId != c.want) {
			t.Errorf("%+v: got %+v", c, got)
		}
	}
}
