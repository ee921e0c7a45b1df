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
	ProtocolResponses  = "openai-responses"
	ProtocolGemini     = "gemini"
	// ProtocolPrompt is a text without roles or tools, for external programs; see internal/wire/prompt.
	ProtocolPrompt = "prompt"
	// TranscriptSuffix is appended to one of the others when the request contains the conversation as a
	// transcript and the answer consists of events: for a model without tool calls. See model/transcript.
	TranscriptSuffix = "+transcript"
)

// Info describes a model.
type Info struct {
	// Provider names the provider; it is the key of Entry.Vendor: vendor data are sent back only to the
	// provider of that name.
	Provider string
	// Name is the provider's name of the model.
	Name string
	// Protocol is the format of the body that Stream takes: one of the constants, those of providers possibly with
	// TranscriptSuffix.
	Protocol string
	// ContextWindow is the limit of prompt and answer together, in tokens; 0 when unknown.
	ContextWindow int
	// Demo marks the built-in model, which is not a real one.
	Demo bool
	// Forwards says that the model sends a client's request on as it came, and yields the bytes of the answer
	// ([WithForwarding]).
	Forwards bool
}

// Transcript reports whether the model is shown transcripts, and the wire format in which they are sent.
func (i Info) Transcript() (wire string, ok bool) {
	return strings.CutSuffix(i.Protocol, TranscriptSuffix)
}

// TakesPrompt reports whether requests are one text without roles or tools, for an external program.
func (i Info) TakesPrompt() bool { return i.Protocol == ProtocolPrompt }

// TakesMessages reports whether requests are lists of messages: neither one text nor a transcript.
func (i Info) TakesMessages() bool {
	_, transcript := i.Transcript()
	return !transcript && !i.TakesPrompt()
}

// Model streams answers. It must be safe for concurrent use.
type Model interface {
	Info() Info
	// Stream sends body, a whole request in the protocol of Info, unchanged, and yields the answer piece by
	// piece. It ends after the piece with Finish (and those with Usage and Vendor, which may follow), or by
	// yielding one error, always an *Error, with an empty Delta. Nothing is sent before the iteration begins;
	// a consumer that stops early ends the request; each iteration is a request of its own.
	Stream(ctx context.Context, body []byte) iter.Seq2[Delta, error]
}

// Delta is a piece of an answer. Its members are independent; most deltas set one of them.
type Delta struct {
	Text      string
	Reasoning string
	// Signature is the provider's complete opaque signature of all Reasoning since the previous signature.
	Signature string
	ToolCall  *ToolCallDelta
	// Finish is the finish reason under OpenAI's name: stop, tool_calls, length, content_filter. Other
	// reasons keep the provider's name. It is set in one delta only.
	Finish string
	// Usage is the count so far; a later one replaces it.
	Usage *continuo.Usage
	// Model is the provider's name of the model that answers, which may be more specific than Info.Name.
	Model string
	// Vendor is the provider's own data for the whole answer, at most once and after all content, for
	// [Answer] to store under the provider's name. A failed stream may set it for its complete parts.
	Vendor json.RawMessage
	// Item is a whole item of the answer that is neither text nor readable reasoning nor a call, such as a tool that the
	// provider ran, in its place among the others. Vendor has it too.
	Item json.RawMessage
	// Wire is the part of the answer's bytes that ended with this delta, where the request forwards a client's
	// ([WithForwarding]): one or more whole events of the stream, or the whole body of an answer that is not streamed.
	Wire string
	// More says that what follows in the answer has arrived already: the next delta, or the end, comes at once.
	More bool
}

// Visible reports whether the delta has visible content: text, reasoning, or a piece of a call.
func (d Delta) Visible() bool { return d.Text != "" || d.Reasoning != "" || d.ToolCall != nil }

// ToolCallDelta is a piece of one call. Index, from 0, identifies the call.
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

// Sessions is a model whose agent keeps context between requests: its program keeps running, with one session
// for each conversation. It must be safe for concurrent use.
type Sessions interface {
	Model
	// Open begins a session, or resumes the one with that id if the agent can load it ("" begins one). The
	// program of the session runs until Close. An open session must not be opened again.
	Open(ctx context.Context, id string) (Session, error)
}

// Session is a model that keeps context: each body adds to the bodies sent before. Its requests are
// sequential.
type Session interface {
	Model
	// ID is the agent's id of the session.
	ID() string
	// Loaded reports whether the session is the requested one, with its context.
	Loaded() bool
	// Alive reports whether the program still runs and its pipes are open.
	Alive() bool
	// Close ends the program and all processes that it started. It may be called more than once.
	Close()
}
