//go:build unix

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/child/childtest"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/prompt"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/modeltest"
)

func TestMain(m *testing.M) {
	childtest.Main(m, map[string]func(){
		"echo": func() {
			text, _ := io.ReadAll(os.Stdin)
			fmt.Printf("got: %s\n", text)
		},
		"arguments": func() {
			rest, _ := io.ReadAll(os.Stdin)
			fmt.Printf("%q %q", os.Args[1:], rest)
		},
		"begun": begun,
		"stubborn": func() {
			signal.Ignore(syscall.SIGTERM)
			begun()
		},
		"steps": func() {
			conn := childtest.Report()
			for _, step := range []string{"one", " two", " three"} {
				fmt.Print(step)
				_, _ = io.ReadFull(conn, make([]byte, 1))
			}
		},
		"flood": func() {
			for {
				if _, err := os.Stdout.WriteString(strings.Repeat("flood ", 1000)); err != nil {
					return
				}
			}
		},
		"crash":  func() { fmt.Print("partial"); fmt.Fprintln(os.Stderr, "it broke"); os.Exit(3) },
		"stderr": func() { fmt.Fprintln(os.Stderr, "nothing to say") },
		"half":   func() { fmt.Print("\x1b[32mok\x1b[0m \xe4\xb8") },
		"deaf":   func() { fmt.Print("I do not listen") },
		"mute":   func() { _ = os.Stdout.Close(); childtest.Block() },
		"parent": func() {
			reader, writer, _ := os.Pipe()
			heir := exec.Command(os.Args[0])
			heir.Env = append(os.Environ(), "CHILDTEST_ROLE=heir")
			heir.Stdout, heir.Stderr = os.Stdout, writer
			if err := heir.Start(); err != nil {
				panic(err)
			}
			_, _ = io.ReadFull(reader, make([]byte, 1))
			fmt.Print("parent")
		},
		"heir": func() {
			signal.Ignore(syscall.SIGTERM)
			conn := childtest.Report()
			fmt.Fprint(os.Stderr, "x")
			_, _ = io.Copy(io.Discard, conn)
		},
	})
}

// begun tells the test that it runs, prints, and waits to be ended.
func begun() {
	conn := childtest.Report()
	fmt.Println("begun")
	_, _ = io.Copy(io.Discard, conn)
}

func body(text string, system ...string) []byte {
	return rawjson.MustMarshal(prompt.Request{System: system, Prompt: text})
}

func of(env []string, change func(*Options)) *Model {
	options := Options{Name: "agent", Command: []string{os.Args[0]}, Env: env, Grace: 20 * time.Millisecond}
	if change != nil {
		change(&options)
	}
	return New(options)
}

// ask takes the whole answer.
func ask(ctx context.Context, m *Model, body []byte) (text, finish string, err error) {
	for delta, failed := range m.Stream(ctx, body) {
		text, finish, err = text+delta.Text, finish+delta.Finish, failed
	}
	return text, finish, err
}

func noGoroutines(t *testing.T) {
	t.Helper()
	childtest.NoGoroutines(t, "model/command", "internal/child")
}

func reasonOf(err error) continuo.FailureReason {
	var failure *model.Error
	if !errors.As(err, &failure) || failure.Retryable {
		return ""
	}
	return failure.Reason
}

func TestModel(t *testing.T) {
	modeltest.RunModel(t, of(childtest.Env("echo"), nil), body("hello"))
	noGoroutines(t)
}

func TestThePromptReplacesItsPlaceholder(t *testing.T) {
	request := body("-v\x00 {system}", "be brief", "be kind")
	for _, c := range []struct {
		arguments []string
		argument  bool
		want      string
	}{
		{nil, false, `[] "be brief\n\nbe kind\n\n-v\x00 {system}"`},
		{[]string{"-p"}, true, `["-p" "be brief\n\nbe kind\n\n-v` + "\uFFFD" + ` {system}"] ""`},
		{[]string{"-p", "{prompt}", "--x={system}"}, true, `["-p" " -v` + "\uFFFD" + ` {system}" "--x=be brief\n\nbe kind"] ""`},
		{[]string{"--ask={prompt}", "{system}"}, true, `["--ask=-v` + "\uFFFD" + ` {system}" "be brief\n\nbe kind"] ""`},
		{[]string{"{system}", "not {prompt}"}, false, `["be brief\n\nbe kind" "not {prompt}"] "-v\x00 {system}"`},
	} {
		m := of(childtest.Env("arguments"), func(o *Options) { o.Command, o.Argument = append(o.Command, c.arguments...), c.argument })
		if text, _, err := ask(t.Context(), m, request); text != c.want || err != nil {
			t.Errorf("%q: got %s, %v\nwant %s", c.arguments, text, err, c.want)
		}
	}
}

func TestAnArgumentHasALimit(t *testing.T) {
	m := of(childtest.Env("arguments"), func(o *Options) { o.Argument = true })
	if text, _, err := ask(t.Context(), m, body(strings.Repeat("x", maxArgument))); len(text) < maxArgument || err != nil {
		t.Errorf("the longest argument: got %d bytes, %v", len(text), err)
	}
	_, _, err := ask(t.Context(), m, body(strings.Repeat("x", maxArgument+1)))
	if reasonOf(err) != continuo.ReasonUpstream || !strings.Contains(err.Error(), "an argument at most 131071") {
		t.Errorf("got %v", err)
	}
	if text, _, err := ask(t.Context(), of(childtest.Env("echo"), func(o *Options) { o.MaxOutput = 1 << 23 }), body(strings.Repeat("x", 4<<20))); len(text) != 4<<20+5 || err != nil {
		t.Errorf("4 MiB on stdin: got %d bytes, %v", len(text), err)
	}
}

func TestTheAnswerComesWhileItIsPrinted(t *testing.T) {
	w := childtest.NewWitness(t)
	var got []string
	for delta, err := range of(w.Env("steps"), nil).Stream(t.Context(), body("go")) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, delta.Text+delta.Finish); len(got) == 1 {
			conn := w.Running()
			defer conn.Close()
			_, _ = conn.Write([]byte("123"))
		}
	}
	if text := strings.Join(got, ""); text != "one two threestop" || got[0] != "one" {
		t.Errorf("got %q", got)
	}
}

func TestHowProgramsMisbehave(t *testing.T) {
	for _, c := range []struct {
		role, text, wrong string
	}{
		{"crash", "partial", `"` + os.Args[0] + `" ended with exit status 3; its stderr: it broke`},
		{"stderr", "", `agent ended without an answer: it printed nothing on stdout; its stderr: nothing to say`},
		{"half", "ok \uFFFD\uFFFD", ""},
		{"deaf", "I do not listen", ""},
	} {
		text, finish, err := ask(t.Context(), of(childtest.Env(c.role), nil), body(strings.Repeat("long ", 1<<18)))
		switch {
		case text != c.text || (finish == "stop") != (c.wrong == ""):
			t.Errorf("%s: got %q, %q", c.role, text, finish)
		case c.wrong == "" && err != nil, c.wrong != "" && (reasonOf(err) != continuo.ReasonUpstream || !strings.HasSuffix(err.Error(), c.wrong)):
			t.Errorf("%s: got %v\nwant %s", c.role, err, c.wrong)
		}
	}
	noGoroutines(t)
}

func TestAFloodIsCutOff(t *testing.T) {
	text, finish, err := ask(t.Context(), of(childtest.Env("flood"), func(o *Options) { o.MaxOutput = 100_001 }), body("go"))
	if len(text) > 100_001 || len(text) < 100_000 || finish != "" || reasonOf(err) != continuo.ReasonTurnLimit || !strings.Contains(err.Error(), "agent printed more than the maximum of 100001 bytes") {
		t.Errorf("got %d bytes, %q, %v", len(text), finish, err)
	}
	noGoroutines(t)
}

// When a reader ends an answer early, the program and its children end with the stream.
func TestNothingIsLeftBehind(t *testing.T) {
	for _, role := range []string{"begun", "stubborn"} {
		w := childtest.NewWitness(t)
		ctx, cancel := context.WithCancel(t.Context())
		var failed error
		for delta, err := range of(w.Env(role), nil).Stream(ctx, body("go")) {
			if delta.Text == "begun" {
				cancel()
			}
			failed = err
		}
		w.Gone(w.Running())
		if reasonOf(failed) != continuo.ReasonCancelled || !errors.Is(failed, context.Canceled) {
			t.Errorf("%s: cancelled: got %v", role, failed)
		}
		for range of(w.Env(role), nil).Stream(t.Context(), body("go")) {
			break
		}
		w.Gone(w.Running())
		cancel()
	}
	w := childtest.NewWitness(t)
	if text, finish, err := ask(t.Context(), of(w.Env("parent"), nil), body("go")); text != "parent" || finish != "stop" || err != nil {
		t.Errorf("a grandchild holds the output: got %q, %q, %v", text, finish, err)
	}
	w.Gone(w.Running())
	noGoroutines(t)
}

func TestAProgramHasATime(t *testing.T) {
	for _, role := range []string{"stubborn", "mute"} {
		_, _, err := ask(t.Context(), of(childtest.NewWitness(t).Env(role), func(o *Options) { o.Timeout = 100 * time.Millisecond }), body("go"))
		if reasonOf(err) != continuo.ReasonTimeout || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "agent did not end within 100ms") {
			t.Errorf("%s: got %v", role, err)
		}
	}
	noGoroutines(t)
}

func TestWhatCannotBeginIsSaid(t *testing.T) {
	m := New(Options{Name: "agent", Command: []string{"no-such-program-anywhere"}, Setting: "connectors.agent.command"})
	if _, _, err := ask(t.Context(), m, body("go")); reasonOf(err) != continuo.ReasonUpstream ||
		!strings.HasSuffix(err.Error(), `start "no-such-program-anywhere": executable file not found in $PATH; install the program, or correct connectors.agent.command`) {
		t.Errorf("got %v", err)
	}
	for _, bad := range []string{"", "{}", `{"prompt":" "}`, `{"prompt":5}`} {
		if _, _, err := ask(t.Context(), m, []byte(bad)); reasonOf(err) != continuo.ReasonUpstream || !strings.Contains(err.Error(), "read the prompt's request") {
			t.Errorf("%s: got %v", bad, err)
		}
	}
	if command := []string{"x", "{prompt}"}; !slices.Equal(command, func() []string {
		o := Options{Command: command, Argument: true}
		_, _, _ = o.invocation(prompt.Request{Prompt: "filled"})
		return o.Command
	}()) {
		t.Error("a request changed the command")
	}
}
