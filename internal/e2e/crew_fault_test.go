//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
)

// badRole is a role whose agent misbehaves, and the expected outcome of its turns.
type badRole struct {
	part  string
	slow  bool   // its turns end when their time is up
	fails string // matches its reason; "" for a turn that does not fail
	text  string // what it says then
	stays bool   // its program continues: it only gave no answer
}

var badRoles = map[string][]badRole{
	"command": {
		{part: "hang", slow: true, fails: timeIsUp},
		{part: "stubborn", slow: true, fails: timeIsUp},
		{part: "crash", fails: "boom"},
		{part: "flood", fails: "more than the maximum of 65536 bytes"},
		{part: "silent", fails: "nothing"},
		{part: "broken", text: "One red \uFFFD\uFFFD word."},
		{part: "parent", text: "My child stays."},
	},
	"acp": {
		{part: "hang", slow: true, fails: timeIsUp},
		{part: "deaf", slow: true, fails: timeIsUp},
		{part: "stubborn", slow: true, fails: timeIsUp},
		{part: "crash", fails: "boom"},
		{part: "parent", fails: "boom"},
		{part: "flood", fails: "more than the maximum of 65536 bytes"},
		{part: "silent", fails: "without an answer", stays: true},
		{part: "babble", slow: true, fails: timeIsUp},
		{part: "wrong", fails: "read"},
		{part: "noisy", text: "In spite of the noise.", stays: true},
	},
}

// timeIsUp is said of turns, and of programs that could not be started in time.
const timeIsUp = "took longer than|the time for the answer ran out|did not begin a session within"

func matchesReason(reason string, role badRole) bool {
	return regexp.MustCompile(role.fails).MatchString(reason)
}

// timeOfTurn bounds the turns of a role that ends none.
const timeOfTurn = "2s"

// TestCrewWithBadAgents lets agents that hang, crash, flood, are silent, babble, do not go, and leave children speak in
// one crew with one that does as it should. Their turns fail, one by one, and that one continues.
func TestCrewWithBadAgents(t *testing.T) {
	t.Parallel()
	for kind, roles := range badRoles {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			if testing.Short() {
				t.Skip("SKIPPED: agents take their time to hang")
			}
			testBadAgents(t, kind, roles)
		})
	}
}

const healthyRole = "healthy"

func testBadAgents(t *testing.T, kind string, roles []badRole) {
	roleServer := startRoleServer(t, &killPoints{}, rand.New(rand.NewPCG(1, 1)))
	connectors, file := "", "id: bad\nmax_rounds: 2\nroles:\n"
	for _, role := range roles {
		part := role.part + " " + map[string]string{"command": "command", "acp": "agent"}[kind]
		connectors += "  " + role.part + ":\n" + connectorYAML(t, kind, part, roleServer.url, role.part, "max_output_bytes: 65536")
		file += fmt.Sprintf("  - {role_name: %s, connector: %s, system_prompt: You are bad.", role.part, role.part)
		if role.slow {
			file += ", timeout: " + timeOfTurn
		}
		file += "}\n"
	}
	connectors += "  " + healthyRole + ":\n" + connectorYAML(t, kind, map[string]string{"command": "command", "acp": "agent"}[kind], roleServer.url, healthyRole)
	file += fmt.Sprintf("  - {role_name: %s, connector: %s, system_prompt: You are well.}\n", healthyRole, healthyRole)
	h := &home{dir: t.TempDir()}
	writeCrews(t, h.dir, "log: {level: warn}\nconnectors:\n"+connectors, map[string]string{"bad": file})
	k := h.launch(t)
	k.ready(t)
	p := &crewClient{chatClient: newChatClient(t, nil, nil, rand.New(rand.NewPCG(1, 1)), "s"), crew: "bad", harness: &crewHarness{runHarness: &runHarness{t: t, home: h, slots: []*killable{k}}, roleServer: roleServer}}
	p.sendMessage(t.Context())
	p.awaitIdle(t.Context())
	entries, err := p.readLog(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	p.checkRules(entries)
	p.checkNoneRunning(t.Context(), k)
	p.checkBadTurns(entries, roles)
	checkBadStatus(t, h, roles)
	checkBadProcesses(t, k, roleServer, roles)
	endProgram(t, k)
	checkNoProcesses(t, roleServer.url, nil)
	if t.Failed() {
		p.logEntries(entries)
	}
}

// checkBadTurns checks the outcome of each turn, and that one followed the other.
func (p *crewClient) checkBadTurns(entries []continuo.Entry, roles []badRole) {
	turns, answered := 0, 0
	for i := range entries {
		e := &entries[i]
		if e.RunEvent == nil || e.RunEvent.Kind != continuo.RunNodeFinished && e.RunEvent.Kind != continuo.CrewRoleFailed {
			continue
		}
		role := badRole{part: healthyRole}
		if index := turns % (len(roles) + 1); index < len(roles) {
			role = roles[index]
		}
		turns++
		failed := e.RunEvent.Kind == continuo.CrewRoleFailed
		switch said := strings.TrimSpace(e.Content.String()); {
		case e.NodeID != role.part:
			p.errorf("entry %d is of a turn of %s, and it was %s's", e.Seq, e.NodeID, role.part)
			return
		case failed != (role.fails != "") || failed && !matchesReason(e.RunEvent.Reason, role):
			p.errorf("the turn of %s ended with %s: %q, want %q", role.part, e.RunEvent.Kind, e.RunEvent.Reason, role.fails)
		case !utf8.ValidString(said) || strings.Contains(said, "\x1b"):
			p.errorf("%s said %q", role.part, said)
		case role.text != "" && said != role.text:
			p.errorf("%s said %q, want %q", role.part, said, role.text)
		}
		if !failed && e.NodeID == healthyRole {
			answered++
		}
	}
	if turns < 2*(len(roles)+1) || answered < 2 {
		p.errorf("there were %d turns, %d of the one that does well", turns, answered)
	}
}

// checkBadStatus reads on the command line why each role failed.
func checkBadStatus(t *testing.T, h *home, roles []badRole) {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), path, "crew", "status", "bad", "--session", "s", "--json")
	command.Dir, command.Stderr = h.dir, os.Stderr
	command.Env = []string{"HOME=" + h.dir, "PATH=" + os.Getenv("PATH"), "CONTINUO_STORE_PATH=" + h.dir + "/continuo.db"}
	said, err := command.Output()
	if err != nil {
		t.Fatalf("continuo crew status: %v\n%s", err, said)
	}
	var status engine.CrewStatus
	if err := json.Unmarshal(said, &status); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	for _, role := range status.Roles {
		index := slices.IndexFunc(roles, func(b badRole) bool { return b.part == role.Name })
		if index < 0 {
			if role.Failed != "" || role.Cursor == 0 {
				t.Errorf("the one that does well is %+v", role)
			}
			continue
		}
		want := roles[index].fails
		if want == "" && role.Failed != "" || !matchesReason(role.Failed, roles[index]) {
			t.Errorf("%s has failed: %q, want %q", role.Name, role.Failed, want)
		}
		if want != "" && (role.Cursor != 0 || role.Answers != 0 || !role.HasNews) {
			t.Errorf("%s, which has never answered, is %+v", role.Name, role)
		}
	}
}

// checkBadProcesses checks that of programs of roles only those run that nothing is to be held against, each in a group
// of its own.
func checkBadProcesses(t *testing.T, k *killable, roleServer *roleServer, roles []badRole) {
	t.Helper()
	server, err := syscall.Getpgid(k.command.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, role := range roles {
		want[role.part] = role.stays
	}
	groups := map[int]string{}
	for _, process := range processesWith(t, upstreamVariable+"="+roleServer.url, nil) {
		environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", process.id))
		if err != nil {
			continue // it has just ended
		}
		role := ""
		for variable := range strings.SplitSeq(string(environment), "\x00") {
			if value, ok := strings.CutPrefix(variable, roleVariable+"="); ok {
				role = value
			}
		}
		if role != healthyRole && !want[role] {
			t.Errorf("a process of %s is left: %+v", role, process)
		}
		if other := groups[process.group]; process.group == server || process.group == syscall.Getpgrp() || other != "" && other != role {
			t.Errorf("the process %+v of %s is in the group of the server, of the tests, or of %s", process, role, other)
		}
		groups[process.group] = role
	}
}
