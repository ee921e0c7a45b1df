//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
)

// pairRoles are the roles of the crew of CLI agents, which are called like their agents.
var pairRoles = []string{"qwen", "gemini"}

const pairFile = `id: duo
roles:
  - {role_name: qwen, display_name: Qin, connector: qwen, system_prompt: You are the one who is quick.}
  - {role_name: gemini, display_name: Gem, connector: gemini, system_prompt: You are the one who glitters.}
`

// agentPair is a crew of two CLI agents from a third party, and their models.
type agentPair struct {
	*crewClient
	home   *home
	models *agentModels
}

// newAgentPair makes it, or skips the test, loudly.
func newAgentPair(t *testing.T) *agentPair {
	t.Helper()
	qwen, gemini := npmFile(t, "@qwen-code", "qwen-code", "cli-entry.js"), npmFile(t, "@google", "gemini-cli", "bundle", "gemini.js")
	node := newNode(t)
	d := &agentPair{home: &home{dir: t.TempDir()}, models: startAgentModels(t)}
	qwenHome, geminiHome := t.TempDir(), t.TempDir()
	settings, err := os.ReadFile(filepath.Join("testdata", "task", "qwen.json"))
	err = errors.Join(err, os.Mkdir(filepath.Join(qwenHome, ".qwen"), 0o700), os.Mkdir(filepath.Join(geminiHome, ".gemini"), 0o700))
	err = errors.Join(err, os.WriteFile(filepath.Join(qwenHome, ".qwen", "settings.json"), settings, 0o600))
	err = errors.Join(err, os.WriteFile(filepath.Join(geminiHome, ".gemini", "settings.json"), []byte(`{
  "security": {"auth": {"selectedType": "gemini-api-key"}},
  "general": {"enableAutoUpdate": false}, "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false}
}`), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	writeCrews(t, d.home.dir, fmt.Sprintf(`log: {level: warn}
crew: {agent_timeout: 15m}
connectors:
  qwen:
    acp: [%q, %q, --acp, --auth-type, openai]
    dir: %q
    env: {HOME: %q, OPENAI_BASE_URL: "%s/v1", OPENAI_MODEL: scripted, OPENAI_API_KEY: "${SCRIPT_KEY}", NO_COLOR: "1", %s: %q}
  gemini:
    acp: [%q, %q, --acp, -m, gemini-2.5-flash, --skip-trust]
    dir: %q
    env: {HOME: %q, GOOGLE_GEMINI_BASE_URL: %q, GEMINI_API_KEY: "${SCRIPT_KEY}", NO_COLOR: "1", %s: %q}
`, node, qwen, t.TempDir(), qwenHome, d.models.url, upstreamVariable, d.models.url, node, gemini, t.TempDir(), geminiHome, d.models.url, upstreamVariable, d.models.url), map[string]string{"duo": pairFile})
	d.crewClient = &crewClient{chatClient: newChatClient(t, nil, nil, rand.New(rand.NewPCG(1, 1)), "s"), crew: "duo", harness: &crewHarness{runHarness: &runHarness{t: t, home: d.home, slots: make([]*killable, 1)}}}
	return d
}

// TestCLIAgentsInACrew has two CLI agents talk over ACP. Each keeps its session and is sent only new messages;
// when the program was killed it loads its session, or is shown the whole history once.
func TestCLIAgentsInACrew(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: agents take their time to start")
	}
	d := newAgentPair(t)
	first := d.launch()
	d.exchange()
	d.exchange()
	for _, role := range pairRoles {
		d.checkDeltas(role)
	}
	before := d.sessions()
	groups := d.groups(first)
	first.kill(t)
	checkNoProcesses(t, d.models.url, groups) // a process that was not killed with it ends when its pipes break
	requestsBefore := map[string]int{}
	for _, role := range pairRoles {
		requestsBefore[role] = len(d.models.requests(role))
	}
	second := d.launch()
	d.exchange()
	after := d.sessions()
	for _, role := range pairRoles {
		d.checkSession(role, d.models.requests(role)[requestsBefore[role]:], before[role] == after[role])
	}
	groups = d.groups(second)
	endProgram(t, second)
	checkNoProcesses(t, d.models.url, groups)
}

func (d *agentPair) launch() *killable {
	d.t.Helper()
	k := d.home.launch(d.t)
	k.ready(d.t)
	d.harness.slots[0] = k
	return k
}

// exchange sends a message, and waits until both agents have answered it.
func (d *agentPair) exchange() {
	d.t.Helper()
	d.sendMessage(d.t.Context())
	d.awaitIdle(d.t.Context())
	entries, err := d.readLog(d.t.Context(), d.harness.any())
	if err != nil {
		d.t.Fatal(err)
	}
	d.checkRules(entries)
	said := map[string]bool{}
	for i := range entries {
		said[entries[i].Content.String()] = true
		if event := entries[i].RunEvent; event != nil && event.Kind == continuo.CrewRoleFailed {
			d.errorf("%s failed: %s", entries[i].NodeID, event.Reason)
		}
	}
	for _, role := range pairRoles {
		if want := fmt.Sprintf("%s heard Message %d.", role, len(d.messages)-1); !said[want] {
			d.errorf("nobody said %q", want)
		}
	}
	if d.t.Failed() {
		d.logEntries(entries)
		d.t.Logf("the program said:\n%s", d.harness.any().output)
		d.t.FailNow()
	}
}

// sessions are the ids of the agents' sessions.
func (d *agentPair) sessions() map[string]string {
	d.t.Helper()
	var status engine.CrewStatus
	if code, err := d.harness.any().get(d.t.Context(), "/api/crews/duo/status?session_id=s", &status); err != nil || code != http.StatusOK {
		d.t.Fatalf("status %d, %v", code, err)
	}
	sessions := map[string]string{}
	for _, role := range status.Roles {
		sessions[role.Name] = role.Session
		if role.HasNews || role.Answers != len(d.messages) {
			d.errorf("the role stands as %+v", role)
		}
	}
	return sessions
}

// checkDeltas checks that an agent was sent every message once, and its persona in the first request only.
func (d *agentPair) checkDeltas(role string) {
	d.t.Helper()
	requests := d.models.requests(role)
	if len(requests) < 2 {
		d.errorf("%s asked its model %d times", role, len(requests))
	}
	for i, request := range requests {
		if first := strings.Contains(request.prompt, "You are the one who"); first != (i == 0) {
			d.errorf("request %d of %s tells it who it is: %t\n%s", i, role, first, request.prompt)
		}
		if i > 0 && request.original != "User: "+d.messages[0] {
			d.errorf("request %d of %s has the original request %q", i, role, request.original)
		}
		request := request.before + request.prompt
		for n := range d.messages[:1+strings.Count(request, "User: Message 1")] {
			if times := strings.Count(request, fmt.Sprintf("User: Message %d", n)); times != 1 {
				d.errorf("in request %d of %s message %d stands %d times:\n%s", i, role, n, times, request)
			}
		}
	}
}

// checkSession checks the first request of an agent after its program was killed: either it remembers all, and was
// sent only what is new, or it was sent everything, once.
func (d *agentPair) checkSession(role string, requests []agentRequest, loaded bool) {
	d.t.Helper()
	if len(requests) == 0 {
		d.t.Fatalf("%s did not ask its model", role)
	}
	d.t.Logf("%s has loaded its session: %t", role, loaded)
	request := requests[0]
	for n := range d.messages {
		message := fmt.Sprintf("User: Message %d", n)
		before, now := strings.Count(request.before, message), strings.Count(request.prompt, message)
		isNew := n == len(d.messages)-1
		wantBefore, wantNow := 0, 1
		if loaded && !isNew {
			wantBefore, wantNow = 1, 0
		}
		if before != wantBefore || now != wantNow {
			d.errorf("%s (loaded: %t) was told %q %d times before and %d times now:\n%s\n\nand before\n%s", role, loaded, message, before, now, request.prompt, request.before)
		}
	}
}

// groups are the process groups of the agents: none is the program's, or the tests'.
func (d *agentPair) groups(k *killable) map[int]bool {
	d.t.Helper()
	server, err := syscall.Getpgid(k.command.Process.Pid)
	if err != nil {
		d.t.Fatal(err)
	}
	groups := map[int]bool{}
	processes := processesWith(d.t, upstreamVariable+"="+d.models.url, nil)
	for _, process := range processes {
		groups[process.group] = true
		if process.group == server || process.group == syscall.Getpgrp() {
			d.errorf("the agent's process %+v is in a group that is not its own", process)
		}
	}
	d.t.Logf("the agents have the processes %+v", processes)
	if len(groups) < len(pairRoles) {
		d.errorf("the agents have the processes %+v", processes)
	}
	return groups
}
