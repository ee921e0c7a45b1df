//go:build linux

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	signals "os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	acp "github.com/coder/acp-go-sdk"
)

// The variables that say which part of a crew a process of the test's binary plays, for which role, and where it asks
// what to say. The second one also tells such processes from all others of the machine.
const (
	partVariable     = "CREW_PART"
	upstreamVariable = "CREW_CAST"
	roleVariable     = "CREW_ROLE"
)

// TestHelperProcess is no test: a process of this binary that has a part plays it, and does not come back.
func TestHelperProcess(*testing.T) {
	name := os.Getenv(partVariable)
	if name == "" {
		return
	}
	play := testPrograms[name]
	if play == nil {
		panic("no part " + name)
	}
	play()
	os.Exit(0)
}

// testPrograms are the parts by name. The first two do as they should; see crew_fault_test.go for the others.
var testPrograms = map[string]func(){
	"agent":   func() { runTestAgent(&testAgent{}) },
	"command": runTestCommand,

	"hang command":     func() { fmt.Println("Let me"); block() },
	"stubborn command": func() { signals.Ignore(syscall.SIGTERM); block() },
	"crash command":    func() { fmt.Print("Half of "); crash() },
	"flood command":    func() { flood("Words without end. ") },
	"silent command":   func() {},
	"broken command":   func() { fmt.Print("One \x1b[31mred\x1b[0m \xff\xfe word\x00.") },
	"parent command":   func() { startChild(); fmt.Print("My child stays.") },
	"child":            func() { signals.Ignore(syscall.SIGTERM); block() },

	"hang agent": func() { runTestAgent(&testAgent{during: func() { block() }}) },
	"deaf agent": block,
	"stubborn agent": func() {
		signals.Ignore(syscall.SIGTERM)
		startChild()
		runTestAgent(&testAgent{during: func() { block() }})
		block()
	},
	"crash agent":  func() { runTestAgent(&testAgent{during: crash}) },
	"parent agent": func() { runTestAgent(&testAgent{during: func() { startChild(); crash() }}) },
	"flood agent": func() {
		runTestAgent(&testAgent{during: func() {
			flood(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Words without end. "}}}}` + "\n")
		}})
	},
	"silent agent": func() { runTestAgent(&testAgent{during: func() {}}) },
	"babble agent": func() { babble(16 << 20); block() },
	"wrong agent": func() {
		runTestAgent(&testAgent{during: func() {
			fmt.Println(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":5}}}`)
			block()
		}})
	},
	"noisy agent": func() { // what is no message is passed over
		fmt.Print("Welcome!\n{\"level\":\"info\"}\n")
		runTestAgent(&testAgent{says: "In spite of the noise.", during: func() { fmt.Println("\x1b[2K thinking...") }})
	},
}

// block does nothing, whatever happens but a signal that cannot be ignored.
func block() {
	read, write, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	_, _ = io.Copy(io.Discard, read) // nobody writes
	_ = write.Close()
}

func crash() {
	fmt.Fprintln(os.Stderr, "boom: the part fell over")
	os.Exit(3)
}

func flood(text string) {
	block := []byte(strings.Repeat(text, 1+64<<10/len(text)))
	for {
		if _, err := os.Stdout.Write(block); err != nil {
			os.Exit(1)
		}
	}
}

// babble prints so many bytes of lines that are no JSON-RPC.
func babble(size int) {
	const line = "This is no JSON-RPC at all.\n"
	block := strings.Repeat(line, 1+64<<10/len(line))
	for range 1 + size/len(block) {
		if _, err := os.Stdout.WriteString(block); err != nil {
			os.Exit(1)
		}
	}
}

// startChild starts a process of the same group, with this one's pipes, that does not go by itself.
func startChild() {
	child := exec.Command(os.Args[0], os.Args[1:]...) //nolint:noctx // outlives this one
	child.Env = append(os.Environ(), partVariable+"=child")
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	if err := child.Start(); err != nil {
		panic(err)
	}
}

// connectorYAML is the YAML of the program of a connector, and its environment, that plays a part.
func connectorYAML(t *testing.T, kind, part, cast, role string, more ...string) string {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The binary's TestMain makes a folder, which a part does not remove. With the race detector a program takes a second
	// to end, unless it is told not to.
	text := fmt.Sprintf("    %s: [%q, -test.run=^TestHelperProcess$, -test.timeout=0]\n    env: {%s: %s, %s: %q, %s: %q, TMPDIR: %q, GORACE: atexit_sleep_ms=0}\n",
		kind, binary, partVariable, part, upstreamVariable, cast, roleVariable, role, t.TempDir())
	for _, line := range more {
		text += "    " + line + "\n"
	}
	return text
}

// promptRequest is a prompt, as a test program asks the role server for its answer, or all that it finds of a session.
type promptRequest struct {
	Role, Session, Text string
	Process             int
}

// ask asks the role server for its answer, and says each piece as it comes.
func (p promptRequest) ask(say func(piece string)) error {
	response, err := p.post("/part")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	whole := false
	for pieces := bufio.NewScanner(response.Body); pieces.Scan(); {
		var piece string
		if err := json.Unmarshal(pieces.Bytes(), &piece); err != nil {
			return err
		}
		if whole = piece == ""; !whole {
			say(piece)
		}
	}
	if !whole {
		return errors.New("the cast broke off")
	}
	return nil
}

func (p promptRequest) post(path string) (*http.Response, error) {
	p.Role, p.Process = os.Getenv(roleVariable), os.Getpid()
	body, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return http.Post(os.Getenv(upstreamVariable)+path, "application/json", bytes.NewReader(body)) //nolint:noctx // until it is killed
}

// runTestCommand prints the answer to its stdin.
func runTestCommand() {
	text, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = promptRequest{Text: string(text)}.ask(func(piece string) { fmt.Print(piece) })
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// testAgent is an agent that keeps its sessions in files of the folder that it works in.
type testAgent struct {
	acp.Agent // what is not asked of it
	conn      *acp.AgentSideConnection
	during    func() // what it does when it is prompted, rather than to ask the role server
	says      string // what it says then
}

func runTestAgent(a *testAgent) {
	a.conn = acp.NewAgentSideConnection(a, os.Stdout, os.Stdin)
	<-a.conn.Done()
}

func (a *testAgent) Initialize(context.Context, acp.InitializeRequest) (acp.InitializeResponse, error) {
	return acp.InitializeResponse{ProtocolVersion: acp.ProtocolVersionNumber, AgentCapabilities: acp.AgentCapabilities{LoadSession: true}}, nil
}

func (a *testAgent) NewSession(_ context.Context, in acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	if a.during != nil {
		return acp.NewSessionResponse{SessionId: "s"}, nil
	}
	file, err := os.CreateTemp(in.Cwd, "session")
	if err != nil {
		return acp.NewSessionResponse{}, err
	}
	return acp.NewSessionResponse{SessionId: acp.SessionId(filepath.Base(file.Name()))}, file.Close()
}

// LoadSession repeats the messages of the session, as the protocol wants it, unless the role server says that it is lost.
func (a *testAgent) LoadSession(ctx context.Context, in acp.LoadSessionRequest) (acp.LoadSessionResponse, error) {
	var none acp.LoadSessionResponse
	file, err := os.Open(filepath.Join(in.Cwd, string(in.SessionId)))
	if err != nil {
		return none, err
	}
	defer file.Close()
	var all []string
	for decoder := json.NewDecoder(file); decoder.More(); {
		var request string
		if decoder.Decode(&request) != nil {
			break // killed while it wrote the last one
		}
		all = append(all, request)
	}
	response, err := promptRequest{Session: string(in.SessionId), Text: strings.Join(all, "\n")}.post("/load")
	if err != nil {
		return none, err
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return none, errors.New("the session is lost")
	}
	for _, request := range all {
		a.sendUpdate(ctx, in.SessionId, acp.UpdateUserMessageText(request))
		a.sendUpdate(ctx, in.SessionId, acp.UpdateAgentMessageText("An answer of long ago."))
	}
	return none, nil
}

func (a *testAgent) Cancel(context.Context, acp.CancelNotification) error { return nil }

func (a *testAgent) sendUpdate(ctx context.Context, id acp.SessionId, update acp.SessionUpdate) {
	_ = a.conn.SessionUpdate(ctx, acp.SessionNotification{SessionId: id, Update: update}) // the pipe may be broken
}

func (a *testAgent) Prompt(ctx context.Context, in acp.PromptRequest) (acp.PromptResponse, error) {
	done := acp.PromptResponse{StopReason: acp.StopReasonEndTurn}
	if a.during != nil {
		a.during()
		if a.says != "" {
			a.sendUpdate(ctx, in.SessionId, acp.UpdateAgentMessageText(a.says))
		}
		return done, nil
	}
	text := in.Prompt[0].Text.Text
	folder, err := os.Getwd()
	if err != nil {
		return done, err
	}
	file, err := os.OpenFile(filepath.Join(folder, string(in.SessionId)), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return done, err
	}
	if err := errors.Join(json.NewEncoder(file).Encode(text), file.Close()); err != nil {
		return done, err
	}
	return done, promptRequest{Session: string(in.SessionId), Text: text}.ask(func(piece string) {
		a.sendUpdate(ctx, in.SessionId, acp.UpdateAgentMessageText(piece))
	})
}
