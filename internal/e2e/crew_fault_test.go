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

// badRole is a role whose agent does not do as it should, and what is to come of its turns.
type badRole struct {
	part  string
	slow  bool   // its turns end when their time is up
	fails string // matches its reason; "" for a turn that does not fail
	says  string // what it says then
	stays bool   // its program goes on: it only gave no answer
}

var badRoles = map[string][]badRole{
	"command": {
		{part: "hang", slow: true, fails: timeIsUp},
		{part: "stubborn", slow: true, fails: timeIsUp},
		{part: "crash", fails: "boom"},
		{part: "flood", fails: "more than the maximum of 65536 bytes"},
		{part: "silent", fails: "nothing"},
		{part: "broken", says: "One red \uFFFD\uFFFD word."},
		{part: "parent", says: "My child stays."},
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
		{part: "noisy", says: "In spite of the noise.", stays: true},
	},
}

// timeIsUp is said of turns, and of programs that could not be started in time.
const timeIsUp = "took longer than|the time for the answer ran out|did not begin a session within"

func saysWhy(reason string, role badRole) bool {
	return regexp.MustCompile(role.fails).MatchString(reason)
}

// timeOfTurn bounds the turns of a role that ends none.
const timeOfTurn = "2s"

// TestCrewWithBadAgents lets agents that hang, crash, flood, are silent, babble, do not go, and leave children speak in
// one crew with one that does as it should. Their turns fail, one by one, and that one goes on.
func TestCrewWithBadAgents(t *testing.T) {
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
	cast := startCast(t, &traps{}, rand.New(rand.NewPCG(1, 1)))
	connectors, file := "", "id: bad\nmax_rounds: 2\nroles:\n"
	for _, role := range roles {
		part := role.part + " " + map[string]string{"command": "command", "acp": "agent"}[kind]
		connectors += "  " + role.part + ":\n" + partCommand(t, kind, part, cast.url, role.part, "max_output_bytes: 65536")
		file += fmt.Sprintf("  - {role_name: %s, connector: %s, system_prompt: You are bad.", role.part, role.part)
		if role.slow {
			file += ", timeout: " + timeOfTurn
		}
		file += "}\n"
	}
	connectors += "  " + healthyRole + ":\n" + partCommand(t, kind, map[string]string{"command": "command", "acp": "agent"}[kind], cast.url, healthyRole)
	file += fmt.Sprintf("  - {role_name: %s, connector: %s, system_prompt: You are well.}\n", healthyRole, healthyRole)
	h := &home{dir: t.TempDir()}
	writeCrews(t, h.dir, "log: {level: warn}\nconnectors:\n"+connectors, map[string]string{"bad": file})
	k := h.launch(t)
	k.ready(t)
	p := &person{talk: newTalk(t, nil, nil, rand.New(rand.NewPCG(1, 1)), "s"), crew: "bad", stage: &crewStage{stage: &stage{t: t, home: h, places: []*killable{k}}, cast: cast}}
	p.say(t.Context())
	p.awaitRest(t.Context())
	entries, err := p.readLog(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	p.checkRules(entries)
	p.checkAllClosed(t.Context(), k)
	p.checkBadTurns(entries, roles)
	checkBadStatus(t, h, roles)
	checkBadProcesses(t, k, cast, roles)
	endProgram(t, k)
	checkNoParts(t, cast.url, nil)
	if t.Failed() {
		p.tell(entries)
	}
}

// checkBadTurns checks what came of each turn, and that one followed the other.
func (p *person) checkBadTurns(entries []continuo.Entry, roles []badRole) {
	turns, heard := 0, 0
	for i := range entries {
		e := &entries[i]
		if e.RunEvent == nil || e.RunEvent.Kind != continuo.RunNodeFinished && e.RunEvent.Kind != continuo.CrewRoleFailed {
			continue
		}
		role := badRole{part: healthyRole}
		if place := turns % (len(roles) + 1); place < len(roles) {
			role = roles[place]
		}
		turns++
		failed := e.RunEvent.Kind == continuo.CrewRoleFailed
		switch said := strings.TrimSpace(e.Content.String()); {
		case e.NodeID != role.part:
			p.errorf("entry %d is of a turn of %s, and it was %s's", e.Seq, e.NodeID, role.part)
			return
		case failed != (role.fails != "") || failed && !saysWhy(e.RunEvent.Reason, role):
			p.errorf("the turn of %s ended with %s: %q, want %q", role.part, e.RunEvent.Kind, e.RunEvent.Reason, role.fails)
		case !utf8.ValidString(said) || strings.Contains(said, "\x1b"):
			p.errorf("%s said %q", role.part, said)
		case role.says != "" && said != role.says:
			p.errorf("%s said %q, want %q", role.part, said, role.says)
		}
		if !failed && e.NodeID == healthyRole {
			heard++
		}
	}
	if turns < 2*(len(roles)+1) || heard < 2 {
		p.errorf("there were %d turns, %d of the one that does well", turns, heard)
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
		place := slices.IndexFunc(roles, func(b badRole) bool { return b.part == role.Name })
		if place < 0 {
			if role.Failed != "" || role.Cursor == 0 {
				t.Errorf("the one that does well is %+v", role)
			}
			continue
		}
		want := roles[place].fails
		if want == "" && role.Failed != "" || !saysWhy(role.Failed, roles[place]) {
			t.Errorf("%s has failed: %q, want %q", role.Name, role.Failed, want)
		}
		if want != "" && (role.Cursor != 0 || role.Answers != 0 || !role.HasNews) {
			t.Errorf("%s, which has never answered, is %+v", role.Name, role)
		}
	}
}

// checkBadProcesses checks that of programs of roles only those run that nothing is to be held against, each in a group
// of its own.
func checkBadProcesses(t *testing.T, k *killable, cast *cast, roles []badRole) {
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
	for _, process := range processesWith(t, castPlace+"="+cast.url, nil) {
		environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", process.id))
		if err != nil {
			continue // it has just ended
		}
		role := ""
		for variable := range strings.SplitSeq(string(environment), "\x00") {
			if value, ok := strings.CutPrefix(variable, rolePlace+"="); ok {
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
