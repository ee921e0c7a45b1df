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
	"time"

	acp "github.com/coder/acp-go-sdk"
)

// The variables that say which part of a crew a process of the test's binary plays, for which role, and where it asks
// what to say. The second one also tells such processes from all others of the machine.
const (
	partPlace = "CREW_PART"
	castPlace = "CREW_CAST"
	rolePlace = "CREW_ROLE"
)

// TestPlayPart is no test: a process of this binary that has a part plays it, and does not come back.
func TestPlayPart(*testing.T) {
	name := os.Getenv(partPlace)
	if name == "" {
		return
	}
	play := crewParts[name]
	if play == nil {
		panic("no part " + name)
	}
	play()
	os.Exit(0)
}

// crewParts are the parts by name. The first two do as they should; see crew_fault_test.go for the others.
var crewParts = map[string]func(){
	"agent":   func() { playAgent(&partAgent{}) },
	"command": playCommand,

	"hang command":     func() { fmt.Println("Let me"); block() },
	"stubborn command": func() { signals.Ignore(syscall.SIGTERM); block() },
	"crash command":    func() { fmt.Print("Half of "); crash() },
	"flood command":    func() { flood("Words without end. ") },
	"silent command":   func() {},
	"broken command":   func() { fmt.Print("One \x1b[31mred\x1b[0m \xff\xfe word\x00.") },
	"parent command":   func() { startChild(); fmt.Print("My child stays.") },
	"child":            func() { signals.Ignore(syscall.SIGTERM); block() },

	"hang agent": func() { playAgent(&partAgent{during: func() { block() }}) },
	"deaf agent": block,
	"stubborn agent": func() {
		signals.Ignore(syscall.SIGTERM)
		startChild()
		playAgent(&partAgent{during: func() { block() }})
		block()
	},
	"crash agent":  func() { playAgent(&partAgent{during: crash}) },
	"parent agent": func() { playAgent(&partAgent{during: func() { startChild(); crash() }}) },
	"flood agent": func() {
		playAgent(&partAgent{during: func() {
			flood(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Words without end. "}}}}` + "\n")
		}})
	},
	"silent agent": func() { playAgent(&partAgent{during: func() {}}) },
	"babble agent": func() { babble(16 << 20); block() },
	"wrong agent": func() {
		playAgent(&partAgent{during: func() {
			fmt.Println(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":5}}}`)
			block()
		}})
	},
	"noisy agent": func() { // what is no message is passed over
		fmt.Print("Welcome!\n{\"level\":\"info\"}\n")
		playAgent(&partAgent{says: "In spite of the noise.", during: func() { fmt.Println("\x1b[2K thinking...") }})
	},
}

// block does nothing, whatever happens but a signal that cannot be ignored.
func block() {
	for {
		time.Sleep(time.Hour)
	}
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
	child.Env = append(os.Environ(), partPlace+"=child")
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	if err := child.Start(); err != nil {
		panic(err)
	}
}

// partCommand is the YAML of the program of a connector, and its environment, that plays a part.
func partCommand(t *testing.T, kind, part, cast, role string, more ...string) string {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The binary's TestMain makes a folder, which a part does not remove. With the race detector a program takes a second
	// to end, unless it is told not to.
	text := fmt.Sprintf("    %s: [%q, -test.run=^TestPlayPart$, -test.timeout=0]\n    env: {%s: %s, %s: %q, %s: %q, TMPDIR: %q, GORACE: atexit_sleep_ms=0}\n",
		kind, binary, partPlace, part, castPlace, cast, rolePlace, role, t.TempDir())
	for _, line := range more {
		text += "    " + line + "\n"
	}
	return text
}

// partPrompt is what a part was told, as it asks the cast what to say, or all that it finds of a session.
type partPrompt struct {
	Role, Session, Text string
	Process             int
}

// ask asks the cast what to say, and says each piece as it comes.
func (p partPrompt) ask(say func(piece string)) error {
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

func (p partPrompt) post(path string) (*http.Response, error) {
	p.Role, p.Process = os.Getenv(rolePlace), os.Getpid()
	body, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return http.Post(os.Getenv(castPlace)+path, "application/json", bytes.NewReader(body)) //nolint:noctx // until it is killed
}

// playCommand prints the answer to what stands on its stdin.
func playCommand() {
	text, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = partPrompt{Text: string(text)}.ask(func(piece string) { fmt.Print(piece) })
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// partAgent is an agent that keeps its sessions in files of the folder that it works in.
type partAgent struct {
	acp.Agent // what is not asked of it
	conn      *acp.AgentSideConnection
	during    func() // what it does when it is prompted, rather than to ask the cast
	says      string // what it says then
}

func playAgent(a *partAgent) {
	a.conn = acp.NewAgentSideConnection(a, os.Stdout, os.Stdin)
	<-a.conn.Done()
}

func (a *partAgent) Initialize(context.Context, acp.InitializeRequest) (acp.InitializeResponse, error) {
	return acp.InitializeResponse{ProtocolVersion: acp.ProtocolVersionNumber, AgentCapabilities: acp.AgentCapabilities{LoadSession: true}}, nil
}

func (a *partAgent) NewSession(_ context.Context, in acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	if a.during != nil {
		return acp.NewSessionResponse{SessionId: "s"}, nil
	}
	file, err := os.CreateTemp(in.Cwd, "session")
	if err != nil {
		return acp.NewSessionResponse{}, err
	}
	return acp.NewSessionResponse{SessionId: acp.SessionId(filepath.Base(file.Name()))}, file.Close()
}

// LoadSession repeats what the session was told, as the protocol wants it, unless the cast says that it is lost.
func (a *partAgent) LoadSession(ctx context.Context, in acp.LoadSessionRequest) (acp.LoadSessionResponse, error) {
	var none acp.LoadSessionResponse
	file, err := os.Open(filepath.Join(in.Cwd, string(in.SessionId)))
	if err != nil {
		return none, err
	}
	defer file.Close()
	var all []string
	for decoder := json.NewDecoder(file); decoder.More(); {
		var told string
		if decoder.Decode(&told) != nil {
			break // killed while it wrote the last one
		}
		all = append(all, told)
	}
	response, err := partPrompt{Session: string(in.SessionId), Text: strings.Join(all, "\n")}.post("/load")
	if err != nil {
		return none, err
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return none, errors.New("the session is lost")
	}
	for _, told := range all {
		a.tell(ctx, in.SessionId, acp.UpdateUserMessageText(told))
		a.tell(ctx, in.SessionId, acp.UpdateAgentMessageText("An answer of long ago."))
	}
	return none, nil
}

func (a *partAgent) Cancel(context.Context, acp.CancelNotification) error { return nil }

func (a *partAgent) tell(ctx context.Context, id acp.SessionId, update acp.SessionUpdate) {
	_ = a.conn.SessionUpdate(ctx, acp.SessionNotification{SessionId: id, Update: update}) // the pipe may be broken
}

func (a *partAgent) Prompt(ctx context.Context, in acp.PromptRequest) (acp.PromptResponse, error) {
	done := acp.PromptResponse{StopReason: acp.StopReasonEndTurn}
	if a.during != nil {
		a.during()
		if a.says != "" {
			a.tell(ctx, in.SessionId, acp.UpdateAgentMessageText(a.says))
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
	return done, partPrompt{Session: string(in.SessionId), Text: text}.ask(func(piece string) {
		a.tell(ctx, in.SessionId, acp.UpdateAgentMessageText(piece))
	})
}
