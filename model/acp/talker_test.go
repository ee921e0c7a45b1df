//go:build unix

package acp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	acp "github.com/coder/acp-go-sdk"

	"github.com/continuo-log/continuo/internal/child/childtest"
)

// scriptedAgent is an agent that remembers its sessions, in files of the folder that it works in, and does what prompts say. It
// speaks over the SDK.
type scriptedAgent struct {
	acp.Agent // methods that the tests do not call
	conn      *acp.AgentSideConnection
	can       acp.AgentCapabilities
	load      func() error // an additional result of loading

	mu      sync.Mutex
	folder  string
	prompts []string
	witness net.Conn
}

func runScriptedAgent(t *scriptedAgent) {
	t.conn = acp.NewAgentSideConnection(t, os.Stdout, os.Stdin)
	<-t.conn.Done()
}

// scriptedAgents are the roles that talk, by what they can do.
var scriptedAgents = map[string]func(){
	"talker":    func() { runScriptedAgent(&scriptedAgent{can: acp.AgentCapabilities{LoadSession: true}}) },
	"forgetful": func() { runScriptedAgent(&scriptedAgent{}) },
	"resumer": func() {
		runScriptedAgent(&scriptedAgent{can: acp.AgentCapabilities{SessionCapabilities: acp.SessionCapabilities{Resume: &acp.SessionResumeCapabilities{}}}})
	},
	"refuser": func() {
		runScriptedAgent(&scriptedAgent{can: acp.AgentCapabilities{LoadSession: true}, load: func() error { return errors.New("no such session") }})
	},
	"load crash": func() {
		runScriptedAgent(&scriptedAgent{can: acp.AgentCapabilities{LoadSession: true}, load: func() error { os.Exit(5); return nil }})
	},
	"load garbage": func() {
		runScriptedAgent(&scriptedAgent{can: acp.AgentCapabilities{LoadSession: true}, load: func() error { fmt.Println(strings.Repeat("x", maxLine+1)); return nil }})
	},
	"stays": func() { // it does not go when its stdin is closed, nor when it is asked, and has a child that does not
		signal.Ignore(syscall.SIGTERM)
		childtest.Start("stubborn child", nil)
		runScriptedAgent(&scriptedAgent{})
		childtest.Block()
	},
	"stubborn child": func() {
		signal.Ignore(syscall.SIGTERM)
		childtest.Block()
	},
}

func (t *scriptedAgent) Initialize(context.Context, acp.InitializeRequest) (acp.InitializeResponse, error) {
	return acp.InitializeResponse{ProtocolVersion: acp.ProtocolVersionNumber, AgentCapabilities: t.can}, nil
}

func (t *scriptedAgent) NewSession(_ context.Context, in acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	t.folder = in.Cwd
	id := acp.SessionId(fmt.Sprintf("s%d", os.Getpid()))
	return acp.NewSessionResponse{SessionId: id}, t.keep(id)
}

// LoadSession shows what was said, as the protocol wants it.
func (t *scriptedAgent) LoadSession(ctx context.Context, in acp.LoadSessionRequest) (acp.LoadSessionResponse, error) {
	err := t.recall(in.SessionId, in.Cwd)
	for _, text := range t.prompts {
		t.send(ctx, in.SessionId, acp.UpdateUserMessageText(text), acp.UpdateAgentMessageText("old answer to "+text))
	}
	if t.load != nil {
		err = t.load()
	}
	return acp.LoadSessionResponse{}, err
}

func (t *scriptedAgent) ResumeSession(_ context.Context, in acp.ResumeSessionRequest) (acp.ResumeSessionResponse, error) {
	return acp.ResumeSessionResponse{}, t.recall(in.SessionId, in.Cwd)
}

func (t *scriptedAgent) recall(id acp.SessionId, folder string) error {
	t.folder = folder
	text, err := os.ReadFile(t.file(id))
	if err == nil && len(text) > 0 {
		t.prompts = strings.Split(string(text), "\n")
	}
	return err
}

func (t *scriptedAgent) keep(id acp.SessionId) error {
	return os.WriteFile(t.file(id), []byte(strings.Join(t.prompts, "\n")), 0o600)
}

func (t *scriptedAgent) file(id acp.SessionId) string {
	return filepath.Join(t.folder, string(id)+".txt")
}

func (t *scriptedAgent) send(ctx context.Context, id acp.SessionId, updates ...acp.SessionUpdate) {
	for _, update := range updates {
		_ = t.conn.SessionUpdate(ctx, acp.SessionNotification{SessionId: id, Update: update})
	}
}

func (t *scriptedAgent) Cancel(context.Context, acp.CancelNotification) error { return nil } // the SDK ends the prompt's context

// report reports to the test that the agent runs; the connection stays.
func (t *scriptedAgent) report() net.Conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.witness == nil {
		t.witness = childtest.Report()
	}
	return t.witness
}

// oncePrompted does something when the test asks for it, and then reports to the test.
func (t *scriptedAgent) oncePrompted(do func()) {
	conn := t.report()
	go func() {
		_, _ = io.ReadFull(conn, make([]byte, 1))
		do()
		_, _ = conn.Write([]byte("done"))
	}()
}

func (t *scriptedAgent) Prompt(ctx context.Context, in acp.PromptRequest) (acp.PromptResponse, error) {
	text := in.Prompt[0].Text.Text
	switch text {
	case "pid":
		t.send(ctx, in.SessionId, acp.UpdateAgentMessageText(fmt.Sprint(os.Getpid())))
		return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
	case "ask":
		t.send(ctx, in.SessionId, acp.UpdateAgentMessageText(t.ask(in.SessionId)))
		return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
	case "report":
		t.report()
	case "refuse":
		return acp.PromptResponse{}, errors.New("the upstream is busy")
	case "refuse with its secret":
		return acp.PromptResponse{}, fmt.Errorf("%s is refused, %s", os.Getenv("AGENT_SECRET"), strings.Repeat("x", 490)+os.Getenv("AGENT_SECRET"))
	case "crash":
		os.Exit(3)
	case "die later":
		t.oncePrompted(func() { fmt.Fprintln(os.Stderr, "so long"); os.Exit(3) })
	case "die later, with a child":
		childtest.Start("stubborn child", nil)
		t.oncePrompted(func() { os.Exit(3) })
	case "close later":
		t.oncePrompted(func() { _ = os.Stdout.Close() })
	case "write later":
		t.oncePrompted(func() { fmt.Print(strings.Repeat("noise\n"+chunk, 2<<20/len(chunk))) })
	case "flood later":
		t.oncePrompted(func() { endless(os.Stdout, strings.Repeat("noise", 10_000)+"\n") })
	case "ask later":
		t.oncePrompted(func() { fmt.Fprintf(t.report(), "%v ", t.ask(in.SessionId)) })
	case "flood":
		t.report()
		endless(os.Stdout, chunk)
	case "garbage":
		t.report()
		fmt.Print(update(`{"sessionUpdate":"agent_message_chunk","content":5}`))
	case "hang":
		t.report()
		t.send(ctx, in.SessionId, acp.UpdateAgentMessageText("begun"))
		<-ctx.Done()
		t.send(context.Background(), in.SessionId, acp.UpdateAgentMessageText("too late"))
		return acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
	case "hang for good":
		t.report()
		fmt.Print(strings.ReplaceAll(chunk, "hello", "begun") + chunk) // in one piece
		select {}
	}
	t.prompts = append(t.prompts, text)
	t.send(ctx, in.SessionId, acp.UpdateAgentMessageText("prompts: "), acp.UpdateAgentMessageText(strings.Join(t.prompts, " | ")))
	return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, t.keep(in.SessionId)
}

// ask asks for a permission and gives the option that was chosen.
func (t *scriptedAgent) ask(id acp.SessionId) string {
	answer, err := t.conn.RequestPermission(context.Background(), acp.RequestPermissionRequest{
		SessionId: id, ToolCall: acp.ToolCallUpdate{ToolCallId: "c1"},
		Options: []acp.PermissionOption{
			{OptionId: "yes", Kind: acp.PermissionOptionKindAllowOnce, Name: "Yes"},
			{OptionId: "no", Kind: acp.PermissionOptionKindRejectOnce, Name: "No"},
		},
	})
	if err != nil || answer.Outcome.Selected == nil {
		return "none"
	}
	return string(answer.Outcome.Selected.OptionId)
}

func endless(to io.Writer, text string) {
	block := []byte(strings.Repeat(text, 1+64<<10/len(text)))
	for {
		if _, err := to.Write(block); err != nil {
			return
		}
	}
}
