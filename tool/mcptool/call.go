package mcptool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/tool"
)

// defaultCallTimeout bounds a call if neither the options nor the caller's context does.
const defaultCallTimeout = 10 * time.Minute

// remote is one tool of a server.
type remote struct {
	source *Source
	listed listedTool
}

// Spec describes the tool to a model.
func (r remote) Spec() continuo.ToolSpec { return r.listed.spec }

// Timeout is part of tool.Timed.
func (r remote) Timeout() time.Duration { return r.source.options.CallTimeout }

// Repeatable is part of tool.Repeatable.
func (r remote) Repeatable() bool { return r.listed.repeatable }

// ReadOnly is part of tool.ReadOnly.
func (r remote) ReadOnly() bool { return r.listed.readOnly }

// Run calls the tool. When the server is down it waits for the restart.
func (r remote) Run(ctx context.Context, call tool.Call) tool.Result {
	arguments, err := objectOf(call.Arguments)
	if err != nil {
		return tool.Failure("the arguments of %s must be one JSON object: %v; %s", r.listed.spec.Name, err, properties(r.listed.spec.Parameters))
	}
	result, err := r.call(ctx, arguments)
	if err != nil {
		return tool.Failure("%s: %s", r.listed.spec.Name, cut(err.Error(), 4<<10))
	}
	return resultOf(result, r.listed.spec.Name)
}

// objectOf checks the arguments that a model wrote; an empty text means an empty object.
func objectOf(text string) (json.RawMessage, error) {
	text = strings.ToValidUTF8(strings.TrimSpace(text), "\uFFFD")
	if text == "" {
		return json.RawMessage("{}"), nil
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	var object json.RawMessage
	switch err := decoder.Decode(&object); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("the text breaks off")
	case err != nil:
		return nil, err
	case !bytes.HasPrefix(object, []byte("{")):
		return nil, errors.New("this is no object")
	case strings.TrimSpace(text[decoder.InputOffset():]) != "":
		return nil, errors.New("there is more after the object")
	}
	return object, nil
}

// properties lists the properties of a schema, for the correction of a model's error.
func properties(schema json.RawMessage) string {
	var object struct {
		Properties map[string]struct {
			Type any `json:"type"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if json.Unmarshal(schema, &object) != nil || len(object.Properties) == 0 {
		return "its keys are free"
	}
	var keys []string
	for _, name := range slices.Sorted(maps.Keys(object.Properties)) {
		about := ""
		if kind, ok := object.Properties[name].Type.(string); ok {
			about = kind
		}
		if slices.Contains(object.Required, name) {
			about = strings.TrimPrefix(about+", required", ", ")
		}
		if about != "" {
			about = " (" + about + ")"
		}
		keys = append(keys, name+about)
	}
	return cut("its keys are "+strings.Join(keys, ", "), 2<<10)
}

// errNoAnswer is the cause of a call that exceeded this package's own timeout.
var errNoAnswer = errors.New("no answer in time")

// maxTries bounds how often a call is made that did not reach the server.
const maxTries = 3

// call makes a call, and retries it if that is safe: the call was not executed, or the tool is idempotent.
func (r remote) call(ctx context.Context, arguments json.RawMessage) (*mcp.CallToolResult, error) {
	options := r.source.options
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(options.CallTimeout, defaultCallTimeout), errNoAnswer)
	defer cancel()
	repeats := 0
	for try := 1; ; try++ {
		life, err := r.source.session(ctx)
		if err != nil {
			return nil, fmt.Errorf("the MCP server %s is not available, so that nothing was done: %w", options.Name, err)
		}
		result, outcome, err := life.call(ctx, r.listed.name, arguments)
		switch {
		case err == nil, outcome == final:
			return result, err
		case outcome == untouched && try < maxTries:
		case outcome == untouched:
			return nil, fmt.Errorf("the MCP server %s could not be reached, so that nothing was done: %w", options.Name, err)
		case r.listed.repeatable && repeats == 0:
			repeats++
		default:
			return nil, fmt.Errorf("the MCP server %s failed during the call, which may or may not have been carried out: %w; look before you call again", options.Name, err)
		}
	}
}

// outcome is what is known about a failed call.
type outcome int

const (
	final     outcome = iota // a retry is useless
	untouched                // it was not executed
	uncertain                // it may have been executed
)

// call makes a call once, in this session of the server.
func (s *session) call(parent context.Context, name string, arguments json.RawMessage) (*mcp.CallToolResult, outcome, error) {
	var seen trace
	ctx, cancel := context.WithCancel(context.WithValue(parent, traceKey{}, &seen))
	defer cancel()
	stop := context.AfterFunc(s.ctx, cancel)
	defer stop()
	result, err := s.client.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: arguments})
	refusal := refusalOf(err)
	switch {
	case err == nil && len(result.InputRequests) > 0:
		return nil, final, errors.New("the MCP server asks for more input, which this client cannot give")
	case err == nil:
		return result, final, nil
	case parent.Err() != nil:
		return nil, final, s.brokenOff(parent)
	case seen.sent.Load() == 0:
		s.lost(err)
		return nil, untouched, context.Cause(s.ctx)
	case refusal != nil:
		return nil, final, fmt.Errorf("the MCP server %s refused the call: %s (code %d)", s.options.Name, refusal.Message, refusal.Code)
	case seen.status.Load() != 0:
		return nil, ofStatus(int(seen.status.Load())), fmt.Errorf("it answered HTTP %d %s", seen.status.Load(), http.StatusText(int(seen.status.Load())))
	}
	s.awaitCause(err)
	if cause := context.Cause(s.ctx); cause != nil {
		return nil, uncertain, cause
	}
	return nil, uncertain, s.wire.explain(err)
}

// refusalOf finds the error with which a server answered. The SDK uses the same type for requests that failed
// in HTTP.
func refusalOf(err error) *jsonrpc.Error {
	const rejected = -32005
	var refusal *jsonrpc.Error
	if !errors.As(err, &refusal) || refusal.Code == rejected {
		return nil
	}
	return refusal
}

// brokenOff returns the reason for which the caller's context ended. The SDK has notified the server.
func (s *session) brokenOff(ctx context.Context) error {
	after := "; the server was asked to stop, but may have carried it out"
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errNoAnswer):
		return fmt.Errorf("no answer within %v%s", cmp.Or(s.options.CallTimeout, defaultCallTimeout), after)
	case errors.Is(cause, context.DeadlineExceeded):
		return errors.New("no answer within the time for a tool call" + after)
	default:
		return errors.New("the call was cancelled" + after)
	}
}

// lost ends the session when a call could not be sent.
func (s *session) lost(err error) {
	if s.ctx.Err() == nil {
		s.awaitCause(err)
		s.fail(s.wire.explain(err))
	}
}

// awaitCause waits a moment for the cause of a session that is ending. Errors of HTTP need not end it.
func (s *session) awaitCause(error) {
	if _, ok := s.wire.(*program); !ok {
		return
	}
	moment := time.NewTimer(2 * time.Second)
	defer moment.Stop()
	select {
	case <-s.ctx.Done():
	case <-moment.C:
	}
}

// ofStatus derives the fate of a call from an HTTP status: after a refusal, nothing was executed.
func ofStatus(status int) outcome {
	switch {
	case status < 500 || status == http.StatusServiceUnavailable:
		return final
	default:
		return uncertain
	}
}

// trace records what the transport observed of one call; it is passed in the call's context, as with
// net/http/httptrace, because the SDK offers no other way.
type trace struct {
	sent   atomic.Int32 // requests of the call of which bytes may have arrived
	status atomic.Int32 // HTTP status of a refusal, 0 for none
}

type traceKey struct{}

func traceOf(ctx context.Context) *trace {
	if seen, ok := ctx.Value(traceKey{}).(*trace); ok {
		return seen
	}
	return &trace{}
}

func noteSent(ctx context.Context)               { traceOf(ctx).sent.Add(1) }
func noteUnsent(ctx context.Context)             { traceOf(ctx).sent.Add(-1) }
func noteStatus(ctx context.Context, status int) { traceOf(ctx).status.Store(int32(status)) }
