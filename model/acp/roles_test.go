//go:build unix

package acp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	acp "github.com/coder/acp-go-sdk"

	"github.com/continuo-log/continuo/internal/child/childtest"
)

// The agents that the tests talk to: one over the SDK's own connection, which is not ours, and others that write
// what no connection would.
func TestMain(m *testing.M) {
	roles := map[string]func(){
		"polite":  func() { serve(&polite{}) },
		"patient": func() { serve(&polite{waits: true}) },
		"stubborn": func() {
			signal.Ignore(syscall.SIGTERM)
			conn := childtest.Report()
			raw(chunk, nil)
			_, _ = io.Copy(io.Discard, conn)
		},
		"deaf":   childtest.Block,
		"crash":  func() { fmt.Fprintln(os.Stderr, "no key"); os.Exit(4) },
		"leaves": func() { raw(chunk, func(string) { os.Exit(0) }) },
		"mute": func() { // it closes its output during a call: between calls, that alone would end it
			conn := childtest.Report()
			_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
			_ = os.Stdout.Close()
			_, _ = io.Copy(io.Discard, conn)
		},
		"logged out": func() {
			raw("", func(method string) {
				if method == acp.AgentMethodSessionNew {
					reply(`"error":{"code":-32000,"message":"Authentication required","data":{"methods":["oauth"]}}`)
				}
			})
		},
		"newer":   func() { raw("", func(string) { reply(`"result":{"protocolVersion":2}`) }) },
		"silent":  func() { raw(reasoned, nil) },
		"broken":  func() { raw(update(`{"sessionUpdate":"agent_message_chunk","content":5}`), nil) },
		"foreign": func() { raw(update(`{"sessionUpdate":"from_the_future","content":5}`)+update(`[]`)+chunk, nil) },
		"noisy": func() {
			raw("Loading…\n\n{}\n[1]\n{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}\n{\"jsonrpc\":\"2.0\",\"method\":\"_x/note\"}\n"+
				`{"jsonrpc":"2.0","id":"a-1","method":"craft/drainMidTurnQueue","params":{}}`+"\n", nil)
		},
		"flood": func() { raw(strings.Repeat(chunk, 100_000), nil) },
		"late": func() { // it sends more directly after its result
			raw("", func(method string) {
				if method == acp.AgentMethodSessionPrompt {
					fmt.Printf("%s"+`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`+"\n%s", chunk, asked.ID, reasoned+reasoned)
				}
			})
		},
		"endless": func() { raw(strings.Repeat("x", maxLine+1), nil) },
	}
	maps.Copy(roles, scriptedAgents)
	childtest.Main(m, roles)
}

const reasoned = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}}}` + "\n"

var chunk = update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hello"}}`)

func update(what string) string {
	return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":` + what + "}}\n"
}

// asked is the newest request.
var asked message

// reply answers it.
func reply(what string) { fmt.Printf(`{"jsonrpc":"2.0","id":%s,%s}`+"\n", asked.ID, what) }

// raw answers each request after other, if there is one, and writes text before the answer to a prompt; an answer of
// ours that it gets becomes a piece of its own answer.
func raw(text string, other func(method string)) {
	lines := bufio.NewReader(os.Stdin)
	var prompt message
	for {
		line, err := lines.ReadBytes('\n')
		var got message
		if err != nil || json.Unmarshal(line, &got) != nil {
			return
		}
		if got.Method == "" { // it answers the request that stood in text
			fmt.Print(update(fmt.Sprintf(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"code %d"}}`, got.Error.Code)))
			asked = prompt
			reply(`"result":{"stopReason":"end_turn"}`)
			continue
		}
		if len(got.ID) == 0 {
			continue
		}
		asked = got
		if other != nil && (got.Method == acp.AgentMethodSessionPrompt || text == "") {
			other(got.Method)
		}
		switch got.Method {
		case acp.AgentMethodInitialize:
			reply(`"result":{"protocolVersion":1}`)
		case acp.AgentMethodSessionNew:
			reply(`"result":{"sessionId":"s"}`)
		case acp.AgentMethodSessionPrompt:
			prompt = got
			fmt.Print(text)
			if !strings.Contains(text, "craft/") && os.Getenv("CHILDTEST_ROLE") != "stubborn" {
				reply(`"result":{"stopReason":"end_turn"}`)
			}
		}
	}
}

// polite is an agent that does what its prompt says, over the SDK.
type polite struct {
	acp.Agent // what is not asked of it
	conn      *acp.AgentSideConnection
	waits     bool
	cancelled chan struct{}
}

func serve(agent *polite) {
	agent.cancelled = make(chan struct{})
	agent.conn = acp.NewAgentSideConnection(agent, os.Stdout, os.Stdin)
	<-agent.conn.Done()
}

func (p *polite) Initialize(_ context.Context, in acp.InitializeRequest) (acp.InitializeResponse, error) {
	if in.ClientInfo == nil || in.ClientInfo.Name != "continuo" || in.ClientCapabilities.Terminal || in.ClientCapabilities.Fs.ReadTextFile {
		return acp.InitializeResponse{}, errors.New("a stranger")
	}
	return acp.InitializeResponse{ProtocolVersion: acp.ProtocolVersionNumber}, nil
}

func (p *polite) NewSession(_ context.Context, in acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	return acp.NewSessionResponse{SessionId: acp.SessionId("session in " + in.Cwd)}, nil
}

func (p *polite) Cancel(context.Context, acp.CancelNotification) error {
	close(p.cancelled)
	return nil
}

func (p *polite) Prompt(ctx context.Context, in acp.PromptRequest) (acp.PromptResponse, error) {
	text := in.Prompt[0].Text.Text
	send := func(updates ...acp.SessionUpdate) {
		for _, update := range updates {
			_ = p.conn.SessionUpdate(ctx, acp.SessionNotification{SessionId: in.SessionId, Update: update})
		}
	}
	switch stop, ok := strings.CutPrefix(text, "stop "); {
	case p.waits:
		conn := childtest.Report()
		send(acp.UpdateAgentMessageText("begun"))
		<-p.cancelled
		_, _ = conn.Write([]byte("cancelled"))
		return acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
	case ok:
		return acp.PromptResponse{StopReason: acp.StopReason(stop)}, nil
	case text == "folder":
		send(acp.UpdateAgentMessageText(string(in.SessionId)))
		return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
	}
	send(acp.UpdateAgentThoughtText("Let me "), acp.UpdateAgentThoughtText("see."), acp.UpdateAgentMessageText("You said "), acp.UpdateAgentMessageText(text+"."))
	send(acp.StartToolCall("c1", "Write\na file", acp.WithStartKind(acp.ToolKindEdit)))
	answer, err := p.conn.RequestPermission(ctx, acp.RequestPermissionRequest{
		SessionId: in.SessionId, ToolCall: acp.ToolCallUpdate{ToolCallId: "c1", Title: acp.Ptr("Write\na file")},
		Options: []acp.PermissionOption{
			{OptionId: "allow", Kind: acp.PermissionOptionKindRejectAlways, Name: "Never"}, // ids mislead
			{OptionId: "always", Kind: acp.PermissionOptionKindAllowAlways, Name: "Always"},
			{OptionId: "no", Kind: acp.PermissionOptionKindRejectOnce, Name: "No"},
			{OptionId: "yes", Kind: acp.PermissionOptionKindAllowOnce, Name: "Yes"},
		},
	})
	if err != nil || answer.Outcome.Selected == nil {
		return acp.PromptResponse{}, errors.New("no decision")
	}
	send(acp.UpdateToolCall("c1", acp.WithUpdateStatus(acp.ToolCallStatusCompleted)), acp.UpdateAgentMessageText("It was: "+string(answer.Outcome.Selected.OptionId)))
	return acp.PromptResponse{StopReason: acp.StopReasonEndTurn, Usage: &acp.Usage{InputTokens: 1_000_000}}, nil
}
