//go:build linux

package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// exchange is a request to a model with the bytes of its answer.
type exchange struct {
	path, body, answer string
	left               bool // the client left before the end
}

// exchanges records what passes through a proxy.
type exchanges struct {
	url string

	mu   sync.Mutex
	done []exchange
	// held is sent to when a request with holdMark has the beginning of its answer; the rest of it never comes.
	held chan struct{}
}

// holdMark is in the prompt whose answer does not end: its turn is to be cancelled.
const holdMark = "Count to a million."

// recordTo starts a proxy that records the requests to models; with holds, it holds back answers to prompts with holdMark.
func recordTo(t *testing.T, target string, holds bool) *exchanges {
	t.Helper()
	made := &exchanges{held: make(chan struct{}, 16)}
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		tee := &teeWriter{ResponseWriter: w}
		if holds && strings.Contains(lastPart(string(body)), holdMark) {
			tee.hold = func() {
				made.held <- struct{}{}
				<-r.Context().Done()
			}
		}
		defer func() {
			made.mu.Lock()
			defer made.mu.Unlock()
			if r.Method == http.MethodPost && isModelCall(r.URL.Path) {
				made.done = append(made.done, exchange{r.URL.Path, string(body), tee.said.String(), r.Context().Err() != nil})
			}
		}()
		proxy.ServeHTTP(tee, r)
	}))
	t.Cleanup(server.Close)
	made.url = server.URL
	return made
}

// lastPart is the end of a body's conversation: agents send older prompts again.
func lastPart(body string) string {
	at := strings.LastIndex(body, holdMark)
	if at < 0 || strings.Contains(body[at:], `"role":"assistant"`) || strings.Contains(body[at:], `"role":"model"`) ||
		strings.Contains(body[at:], promptAgain) {
		return ""
	}
	return body[at:]
}

func isModelCall(path string) bool {
	return strings.HasSuffix(path, "/chat/completions") || strings.HasSuffix(path, "/messages") || strings.HasSuffix(path, "/responses") ||
		strings.HasSuffix(path, "enerateContent")
}

func (e *exchanges) all() []exchange {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.done)
}

// teeWriter keeps what is written.
type teeWriter struct {
	http.ResponseWriter
	said bytes.Buffer
	hold func() // after the first bytes
}

func (w *teeWriter) Write(data []byte) (int, error) {
	if w.hold == nil {
		w.said.Write(data)
		return w.ResponseWriter.Write(data)
	}
	begins := data
	if middle := bytes.Index(data[len(data)/2:], []byte("\n\n")); middle >= 0 && len(data)/2+middle+2 < len(data) {
		begins = data[:len(data)/2+middle+2]
	}
	w.said.Write(begins)
	if _, err := w.ResponseWriter.Write(begins); err != nil {
		return 0, err
	}
	_ = http.NewResponseController(w.ResponseWriter).Flush()
	w.hold()
	return 0, http.ErrAbortHandler
}

// Unwrap is for [http.ResponseController].
func (w *teeWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// agentRun is one agent in a home of its own.
type agentRun struct {
	*codingAgent
	t       *testing.T
	home    string
	command func(arguments []string) *exec.Cmd
	held    <-chan struct{}
	first   bool
	whole   bool // all prompts, as in long runs
}

// newAgentRun makes a home for an agent whose requests go to url, by continuo launch or directly.
func (a *codingAgent) newRun(t *testing.T, url, tools string, launched bool, held <-chan struct{}) *agentRun {
	t.Helper()
	r := &agentRun{codingAgent: a, t: t, home: t.TempDir(), held: held, first: true, whole: os.Getenv("CONTINUO_LONG") != ""}
	bin := filepath.Join(r.home, "bin")
	nodePath, program := newNode(t), a.program(t)
	line := fmt.Sprintf("exec %q \"$@\"\n", program)
	if strings.HasSuffix(program, ".js") {
		line = fmt.Sprintf("exec %q --no-warnings %q \"$@\"\n", nodePath, program)
	}
	writeIn(t, r.home, "bin/"+a.name, "#!/bin/sh\n"+line)
	if err := os.Chmod(filepath.Join(bin, a.name), 0o700); err != nil {
		t.Fatal(err)
	}
	a.prepare(t, r.home, tools)
	env := append([]string{
		"HOME=" + r.home, "PATH=" + bin + ":" + filepath.Dir(nodePath) + ":" + os.Getenv("PATH"), "TERM=dumb", "NO_COLOR=1",
		"OPENAI_API_KEY=k", "ANTHROPIC_API_KEY=k", "GEMINI_API_KEY=k",
	}, a.env...)
	path, words := filepath.Join(bin, a.name), []string(nil)
	if launched {
		path = mustProgram(t)
		words = []string{"launch", "--server", url, a.name, "--"}
	} else {
		var more []string
		more, words = a.base(url)
		env = append(env, more...)
	}
	work := filepath.Join(r.home, "work")
	if err := os.MkdirAll(work, 0o700); err != nil {
		t.Fatal(err)
	}
	r.command = func(arguments []string) *exec.Cmd {
		command := exec.Command(path, slices.Concat(words, arguments)...) //nolint:noctx // wait ends it
		command.Dir, command.Env = work, env
		command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		return command
	}
	return r
}

func mustProgram(t *testing.T) string {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// agentTime bounds the work on one prompt.
const agentTime = 5 * time.Minute

// ask runs the agent with a prompt, and returns what it says. With cancel, it gets a Ctrl-C when the model has begun to answer.
func (r *agentRun) ask(text string, small, cancel bool) string {
	r.t.Helper()
	command := r.command(r.prompt(text, r.first, small))
	r.first = false
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	command.WaitDelay = 10 * time.Second // a process that the agent left behind has the pipe
	if err := command.Start(); err != nil {
		r.t.Fatal(err)
	}
	group := -command.Process.Pid
	ctx, stop := context.WithTimeout(r.t.Context(), agentTime)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	if cancel {
		select {
		case <-r.held:
			_ = syscall.Kill(group, syscall.SIGINT)
		case <-ctx.Done():
		}
	}
	select {
	case err := <-ended:
		if err != nil && !cancel && !errors.Is(err, exec.ErrWaitDelay) {
			r.t.Errorf("%s, %q: %v\n%s", r.name, text, err, lastLines(said.String()))
		}
	case <-ctx.Done():
		r.t.Errorf("%s does not end after %q:\n%s", r.name, text, lastLines(said.String()))
	}
	_ = syscall.Kill(group, syscall.SIGKILL) // what it left behind
	return said.String()
}

func lastLines(text string) string { return text[max(0, len(text)-3000):] }

// The prompts of a session; the comment keeps a quote that opencode adds out of the command.
const (
	promptRemember = "Remember: my code = 21"
	promptRecall   = "What is my code?"
	promptShell    = "RUN: echo marker-42 #"
	promptTool     = "CALL: enter {"
	promptAgain    = "Remember: it is over."
)

// session runs the prompts: turns, a shell tool, an MCP tool, a turn that is cancelled and one after it. Each but the
// first resumes the session in a new process.
func (r *agentRun) session(tools *toolServer) {
	r.t.Helper()
	r.ask(promptRemember, false, false)
	for _, prompt := range []struct{ text, want string }{{promptRecall, "21"}, {promptShell, "marker-42"}} {
		if !r.whole && prompt.text == promptRecall {
			continue
		}
		if said := r.ask(prompt.text, false, false); !strings.Contains(said, prompt.want) {
			r.t.Errorf("%s answers %q without %q:\n%s", r.name, prompt.text, prompt.want, lastLines(said))
		}
	}
	before := len(tools.calls())
	note := `"note":"from the agent"`
	if r.bareTool {
		note = ""
	}
	said := r.ask(promptTool+note+"}", false, false)
	if calls := tools.calls(); !r.hidesTools && len(calls) != before+1 {
		r.t.Errorf("%s has called %+v:\n%s", r.name, calls, lastLines(said))
	}
	r.ask(holdMark, false, true)
	r.ask(promptAgain, false, false)
}

// Coding agents that are launched from an empty home: their session is in the log once, in order, their calls beside it
// are apart, and what passes between agent and model is the same before and behind Continuo, byte for byte. In long
// runs it is also compared with a run without Continuo, where ids, numbers and paths differ.
func TestLaunchedAgents(t *testing.T) {
	if os.Getenv("CONTINUO_LONG") == "" {
		t.Skip("SKIPPED: an agent takes a minute; it runs with CONTINUO_LONG=1, as in .ci/run for those that npm installs")
	}
	t.Parallel()
	mock := startScriptedMock(t)
	for i := range codingAgents {
		agent := &codingAgents[i]
		t.Run(agent.name, func(t *testing.T) {
			if agent.program(t) == "" {
				t.Skipf("SKIPPED: %s is not installed: run make npm, or set CONTINUO_AGENTS to a folder that has %s/node_modules", agent.name, agent.name)
			}
			behind := recordTo(t, mock.url, true)
			gateway := serve(t, upstreamsAt(behind.url))
			before := recordTo(t, gateway.url, false)
			tools := startToolServer(t, &killPoints{})
			launched := agent.newRun(t, before.url, tools.url, true, behind.held)
			launched.session(tools)
			compareExchanges(t, before.all(), behind.all())
			gateway.checkSession(t)
			direct := recordTo(t, mock.url, true)
			alone := agent.newRun(t, direct.url, tools.url, false, direct.held)
			alone.session(tools)
			compareRuns(t, normalised(behind.all(), launched.home), normalised(direct.all(), alone.home))
			launched.ask(promptRecall, true, false)
			launched.ask(promptRecall, false, false)
			gateway.checkCompacted(t)
		})
	}
}

// An agent whose second run begins after midnight tells its model another day.
func TestRunsBeforeAndAfterMidnightAreEqual(t *testing.T) {
	t.Parallel()
	said := func(words string) []exchange {
		return []exchange{{body: string(rawjson.MustMarshal(map[string]string{"content": words}))}}
	}
	before := normalised(said("Today's date is Monday, November 30, 2026. Files of Nov 30 11:59:58 PM."), "/home/a")
	after := normalised(said("Today's date is Tuesday, December 1, 2026. Files of Dec  1 12:00:01 AM."), "/home/b")
	if !slices.Equal(before, after) {
		t.Errorf("%q differs from %q", before, after)
	}
}

// An agent whose files were read in another order lists its skills in another one.
func TestRunsWithSkillsInAnyOrderAreEqual(t *testing.T) {
	t.Parallel()
	body := func(first, second string) []exchange {
		return []exchange{{body: fmt.Sprintf(`{"system": "<available_skills>\n<skill>%[1]s</skill>\n<skill>%[2]s</skill>\n</available_skills>",
			"tools": [{"description": "Activates a skill (Available: '%[1]s', '%[2]s').", "parameters": {"enum": ["%[1]s", "%[2]s"]}}]}`, first, second)}}
	}
	if a, b := normalised(body("support", "creator"), "/home/a"), normalised(body("creator", "support"), "/home/b"); !slices.Equal(a, b) || !strings.Contains(a[0], "creator") {
		t.Errorf("%q differs from %q", a, b)
	}
}

// upstreamsAt are settings with an upstream of each protocol.
func upstreamsAt(url string) string {
	return fmt.Sprintf(`upstreams:
  responses: {protocol: openai-responses, base_url: "%[1]s/v1", api_key_env: "", models: ["gpt-*"]}
  chat: {protocol: openai-chat, base_url: "%[1]s/v1", api_key_env: "", models: ["gpt-*"]}
  anthropic: {protocol: anthropic-messages, base_url: "%[1]s", api_key_env: "", models: ["claude-*"]}
  google: {protocol: gemini, base_url: "%[1]s", api_key_env: "", models: ["gemini-*"]}
`, url)
}

// compareExchanges compares what passed before Continuo with what passed behind it.
func compareExchanges(t *testing.T, before, behind []exchange) {
	t.Helper()
	order := func(a, b exchange) int {
		return cmp.Or(strings.Compare(a.body, b.body), strings.Compare(a.answer, b.answer))
	}
	slices.SortFunc(before, order)
	slices.SortFunc(behind, order)
	if len(before) != len(behind) || len(before) == 0 {
		t.Fatalf("the agent made %d requests, the model got %d", len(before), len(behind))
	}
	for i, asked := range before {
		got := behind[i]
		switch {
		case asked.path != got.path || asked.body != got.body:
			t.Errorf("request %d to %s differs behind Continuo (%s):\n%.500s\n%.500s", i, asked.path, got.path, asked.body, got.body)
		case asked.left || got.left:
			if !strings.HasPrefix(got.answer, asked.answer) {
				t.Errorf("request %d: the agent that left got %.300q, the model said %.300q", i, asked.answer, got.answer)
			}
		case asked.answer != got.answer:
			t.Errorf("request %d: the agent got %.300q, the model said %.300q", i, asked.answer, got.answer)
		}
	}
	t.Logf("%d requests are the same before and behind Continuo", len(before))
}

// listed is a conversation in the list of the API.
type listed struct {
	ID       string `json:"id"`
	Kind     string `json:"kind"`
	ParentID string `json:"parent_id"`
	Title    string `json:"title"`
}

func (s server) conversations(t *testing.T, kind string) []listed {
	t.Helper()
	var page struct {
		Data []listed `json:"data"`
	}
	getJSON(t, s.url+"/api/conversations?limit=100&kind="+kind, &page)
	return page.Data
}

// checkSession checks that the only conversation of a user has each prompt once, in order.
func (s server) checkSession(t *testing.T) {
	t.Helper()
	users := s.conversations(t, "user")
	for _, side := range s.conversations(t, "side") {
		t.Logf("beside: %q, of %s", side.Title, side.ParentID)
	}
	if len(users) != 1 {
		t.Errorf("there are %d conversations, want 1: %+v", len(users), users)
	}
	if len(users) == 0 {
		return
	}
	entries := s.entries(t, users[len(users)-1].ID)
	failed := map[string]bool{} // turns: what a client says in them it may say again in the next one
	for i := range entries {
		failed[entries[i].TurnID] = failed[entries[i].TurnID] || entries[i].Error != nil
	}
	at := 0
	for _, prompt := range []string{promptRemember, promptShell, promptTool, holdMark, promptAgain} {
		found, again := 0, 0
		for i := range entries {
			text := entries[i].Content.String()
			if entries[i].Role != continuo.User || !strings.Contains(text, prompt) || failed[entries[i].TurnID] && found > 0 {
				continue
			}
			if found++; failed[entries[i].TurnID] {
				again = 1
			}
			if i < at {
				t.Errorf("%q is entry %d, before the prompt that it follows", prompt, i)
			}
			at = i
		}
		if found != 1 && found != 1+again {
			t.Errorf("%q is in the log %d times", prompt, found)
		}
	}
	if t.Failed() {
		for i := range entries {
			t.Logf("%d %s %.160q", entries[i].Seq, entries[i].Role, entries[i].Content.String())
		}
	}
}

// checkCompacted checks that a compacted session continues in a fork of its conversation.
func (s server) checkCompacted(t *testing.T) {
	t.Helper()
	users := s.conversations(t, "user")
	t.Logf("after the compaction there are %+v", users)
	roots := 0
	for _, user := range users {
		if user.ParentID == "" {
			roots++
		}
	}
	if roots != 1 {
		t.Errorf("there are %d conversations that are not forks, want 1", roots)
	}
}

// What differs between two runs of an agent.
var (
	runIDs = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|` +
		`\b(?:call|toolu|msg|rs|ses|prt|fc|fco|resp|req|at|ctc|chatcmpl|TOOL)[_-][A-Za-z0-9_-]+|` +
		`[0-9a-f]{16,}|cch=\w+|cc_version=[\w.]+|YWlt[\w+/=]+|Chunk ID: \w+`)
	runNumbers = regexp.MustCompile(`\d+`)
	// Agents say which day it is, and midnight may come between two runs.
	runDays = regexp.MustCompile(`\b(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|Mon|Tue|Wed|Thu|Fri|Sat|Sun|` +
		`January|February|March|April|May|June|July|August|September|October|November|December|` +
		`Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Oct|Nov|Dec|[AP]M)\b(?: +\d+\b)?`)
	// Qwen Code's and Gemini's terminal misses the output of a command that ends at once, now and then.
	shellOutput = regexp.MustCompile(`Output: (?:marker-42|\(empty\))`)
	// Gemini CLI lists its skills in the order in which their files were read: in its prompt, and in the description of a tool
	// with their names ('a', 'b'), whose enum withoutIDs sorts.
	skillList  = regexp.MustCompile(`(?s)<available_skills>.*?</available_skills>`)
	skill      = regexp.MustCompile(`(?s)<skill>.*?</skill>`)
	skillNames = regexp.MustCompile(`\(Available: '[^()]*'\)`)
)

// normalised are the requests of a run without what differs between runs.
func normalised(all []exchange, home string) []string {
	var texts []string
	for _, asked := range all {
		if strings.Contains(asked.body, holdMark) {
			continue // how much an agent keeps of a cancelled answer is a matter of time
		}
		var body any
		_ = json.Unmarshal([]byte(asked.body), &body) // nil is seen in the comparison
		text := strings.ReplaceAll(string(rawjson.MustMarshal(withoutIDs(body))), home, "HOME")
		text = strings.ReplaceAll(text, strings.ReplaceAll(home, "/", "-"), "HOME")
		text = shellOutput.ReplaceAllString(text, "Output")
		text = skillList.ReplaceAllStringFunc(text, func(list string) string {
			skills := skill.FindAllString(list, -1)
			slices.Sort(skills)
			return strings.Join(skills, "\n")
		})
		text = skillNames.ReplaceAllStringFunc(text, func(list string) string {
			names := strings.Split(strings.TrimSuffix(strings.TrimPrefix(list, "(Available: "), ")"), ", ")
			slices.Sort(names)
			return strings.Join(names, ", ")
		})
		text = runDays.ReplaceAllString(runIDs.ReplaceAllString(text, "ID"), "DAY")
		texts = append(texts, runNumbers.ReplaceAllString(text, "N"))
	}
	slices.Sort(texts)
	return texts
}

// withoutIDs removes the ids of items, which Codex leaves out where it does not like them, reads JSON in strings, whose
// keys it shuffles, and sorts enums of strings.
func withoutIDs(value any) any {
	switch value := value.(type) {
	case map[string]any:
		delete(value, "id")
		if enum, ok := value["enum"].([]any); ok {
			slices.SortStableFunc(enum, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
		for key, member := range value {
			value[key] = withoutIDs(member)
		}
	case []any:
		for i := range value {
			value[i] = withoutIDs(value[i])
		}
	case string:
		var object map[string]any
		if json.Unmarshal([]byte(value), &object) == nil {
			return withoutIDs(object)
		}
	}
	return value
}

// compareRuns compares the requests of a run with Continuo with those of one without it.
func compareRuns(t *testing.T, with, without []string) {
	t.Helper()
	if len(with) != len(without) {
		t.Errorf("the agent made %d requests with Continuo and %d without it", len(with), len(without))
	}
	for i := range min(len(with), len(without)) {
		if with[i] == without[i] {
			continue
		}
		at := 0
		for at < min(len(with[i]), len(without[i])) && with[i][at] == without[i][at] {
			at++
		}
		from := max(0, at-200)
		t.Errorf("request %d differs with Continuo:\n%.500s\nand without it:\n%.500s", i, with[i][from:], without[i][from:])
	}
}
