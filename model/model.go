package model

import (
	"context"
	"encoding/json"
	"iter"
	"strings"

	continuo "github.com/continuo-log/continuo"
)

// The wire formats of requests.
const (
	ProtocolOpenAIChat = "openai-chat"
	ProtocolAnthropic  = "anthropic-messages"
	// ProtocolPrompt is a text without roles or tools, for programs that answer; see internal/wire/prompt.
	ProtocolPrompt = "prompt"
	// TranscriptSuffix stands behind one of the others when the conversation is in the request as a
	// transcript and the answer comes in events: for a model without tool calls. See model/transcript.
	TranscriptSuffix = "+transcript"
)

// Info says what a model is.
type Info struct {
	// Provider is who answers, the key of Entry.Vendor: data that a provider wants back is only given
	// back to the provider of that name.
	Provider string
	// Name is the provider's name for the model.
	Name string
	// Protocol is the format of the body that Stream takes: ProtocolPrompt, or ProtocolOpenAIChat or
	// ProtocolAnthropic, maybe with the TranscriptSuffix.
	Protocol string
	// ContextWindow is in tokens, prompt and answer together; 0 when it is not known.
	ContextWindow int
	// Demo marks the built-in model, which is no real one.
	Demo bool
}

// Transcript reports whether the model is shown transcripts, and the wire format that they are sent in.
func (i Info) Transcript() (wire string, ok bool) {
	return strings.CutSuffix(i.Protocol, TranscriptSuffix)
}

// Model streams answers. It must be safe for concurrent use.
type Model interface {
	Info() Info
	// Stream sends body, a whole request in the protocol of Info, as it is, and yields the answer piece by
	// piece. It ends after the piece with Finish (and those with Usage and Vendor, which may follow), or by
	// yielding one error, always an *Error, with an empty Delta. Nothing is sent before the iteration
	// begins; a consumer that stops early ends the request; each iteration is a request of its own.
	Stream(ctx context.Context, body []byte) iter.Seq2[Delta, error]
}

// Delta is a piece of an answer. Its members are independent; most deltas have one of them.
type Delta struct {
	Text      string
	Reasoning string
	// Signature is the provider's opaque proof of all the Reasoning since the last one, whole.
	Signature string
	ToolCall  *ToolCallDelta
	// Finish says why the answer ended, as OpenAI names it: stop, tool_calls, length, content_filter.
	// Reasons without such a name stay as the provider gave them. It comes once.
	Finish string
	// Usage is the count so far; a later one replaces it.
	Usage *continuo.Usage
	// Model is what the provider calls the model that answers, which may be more exact than Info.Name.
	Model string
	// Vendor is the provider's own data for the whole answer, at most once and after all content, for
	// [Answer] to put under the provider's name. A failed stream may give it for what is whole.
	Vendor json.RawMessage
}

// Visible reports whether a reader could see something of the delta: text, reasoning, or a piece of a call.
func (d Delta) Visible() bool { return d.Text != "" || d.Reasoning != "" || d.ToolCall != nil }

// ToolCallDelta is a piece of one call. Calls are told apart by Index, which counts from 0.
type ToolCallDelta struct {
	Index int
	ID    string // in the call's first delta; never empty there
	Type  string // "function" or "custom", in the first delta
	Name  string // in the first delta
	// Arguments is what this delta adds to the arguments' text, byte for byte.
	Arguments string
	// Extra is the call's other members so far, one JSON object that replaces an earlier one.
	Extra json.RawMessage
	// Done says that the arguments are complete.
	Done bool
}

// Sessions is a model whose agent can remember what it was told: a program that runs on, with a session of its own
// for each talk. It must be safe for concurrent use.
type Sessions interface {
	Model
	// Open begins a session, or goes on with the one of that id where the agent can load it ("" begins one). The program
	// of the session runs until Close. Nobody else uses a session that is open.
	Open(ctx context.Context, id string) (Session, error)
}

// Session is a model that remembers: each body that it is sent adds to what it was sent before. Its requests follow
// one another.
type Session interface {
	Model
	// ID is the agent's own name for the session.
	ID() string
	// Loaded reports whether the session is the one that Open was asked for, with what it remembers.
	Loaded() bool
	// Alive reports whether the program still runs and its pipes are whole.
	Alive() bool
	// Close ends the program with all that it has started. It may be called more than once.
	Close()
}
