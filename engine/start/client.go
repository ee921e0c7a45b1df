package start

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/engine/conversations"
	"github.com/continuo-log/continuo/engine/internal/lifecycle"
	"github.com/continuo-log/continuo/token"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// ClientRequest is a model request of a client that keeps its history itself, runs tools itself, or both.
type ClientRequest struct {
	// Conversation is the one that the request belongs to, as it was read; one without an id is created.
	Conversation continuo.Conversation
	// Snapshot has the newest entries of Conversation, of a request that is forwarded. Default: they are read.
	Snapshot *continuo.Snapshot
	// Entries are what the request adds to the log; empty for one whose messages are all there. They are appended only if the log still ends where Conversation says.
	Entries []continuo.Entry
	// Title is what a conversation that is created is named by; its first line.
	Title continuo.Content
	// Prefixes makes the prefixes of the entries and of the answer; see turn.Input.
	Prefixes func(entries []continuo.Entry, answer bool) func(stored []continuo.Entry) []continuo.Prefix
	Mode     continuo.Mode
	// Model is the name of the model, and Upstream where it is. Default: the catalog's model of that name.
	Model    string
	Upstream *catalog.Upstream
	// View is the name of the view that decides what the model is shown; "": everything. System and Tools are the
	// client's, MaxOutputTokens, Temperature and ReasoningEffort replace the model's own unless they are zero, Answer is the
	// schema of the answer, and Options what else the client asks of it. All of them are of requests that are not forwarded.
	View            string
	Without         []int64 // where the client decides: the seqs of entries that it does not have
	System          []string
	Tools           []continuo.ToolSpec
	MaxOutputTokens int
	Temperature     *float64
	ReasoningEffort string
	Answer          *turn.AnswerSchema
	Options         *turn.ClientOptions
	// Whole refuses the request, with a *continuo.TruncatedError, where the view would leave out or shorten anything.
	Whole bool
	// CompactAt is the number of tokens of messages above which the view's window moves; 0: as the view says.
	CompactAt int
	// Forward returns the request that is sent as it came. Default: it is built from the log.
	Forward func(ctx context.Context, conversation continuo.Conversation) (*turn.Forward, error)
	// Answered is called with the status and the headers of each answer of an upstream. Default none.
	Answered func(status int, header http.Header)
	// Repeat identifies the request where the client may send it again. A request with a key that has begun a turn gets that
	// turn, unless it failed. Default: each request is another one.
	Repeat Repeat
	// NoMemory says that nothing may be remembered of the turn.
	NoMemory bool
	// ServerTools run here, within the turn. Approved are calls of an earlier answer that the client left to this server, by
	// their ids: they run before the model is asked, under the conversation's lease, and their results replace the entries of
	// Entries that answer them. Both are of requests that are not forwarded.
	ServerTools tool.Set
	Approved    map[string]ApprovedCall
	// Resolved is called with the entries and those results, before they are appended. Default none.
	Resolved func(entries []continuo.Entry)
	// Annotate completes an answer before it is appended. Default none.
	Annotate func(answer *continuo.Entry)
	// Detached lets the turn continue when the caller's context ends.
	Detached bool
}

// ApprovedCall is a call that runs because the client approved it.
type ApprovedCall struct {
	Tool      tool.Tool
	Arguments string
}

// withApproved returns a request's entries with the results of the calls that its client approved. Nothing runs unless each
// of them is open.
func (ts *Turns) withApproved(ctx context.Context, conversation continuo.Conversation, request ClientRequest) ([]continuo.Entry, error) {
	if len(request.Approved) == 0 {
		return request.Entries, nil
	}
	open := map[string]bool{}
	results, err := turn.OpenResults(ctx, ts.log, conversation)
	if err != nil {
		return nil, err
	}
	for _, result := range results {
		open[result.ToolCallID] = true
	}
	for _, entry := range request.Entries {
		for _, call := range entry.ToolCalls {
			open[call.ID] = true
		}
	}
	for id := range request.Approved {
		if !open[id] {
			return nil, &continuo.RuleError{Rule: continuo.RuleOrphanTool, Message: fmt.Sprintf("the call %s does not wait for an approval: it has a result already, or is not in this conversation", id)}
		}
	}
	entries := slices.Clone(request.Entries)
	for i, entry := range entries {
		approved, ok := request.Approved[entry.ToolCallID]
		if entry.Role != continuo.Tool || !ok {
			continue
		}
		result := turn.RunTool(ctx, approved.Tool, tool.Call{Conversation: conversation, ID: entry.ToolCallID, Arguments: approved.Arguments}, ts.catalog.Options.Limits)
		result.Vendor = entry.Vendor
		entries[i] = result
	}
	return entries, nil
}

// Request begins the turn of a client's request. It fails with a *continuo.ConflictError where the conversation has grown
// since it was read.
func (ts *Turns) Request(ctx context.Context, request ClientRequest) (*Chat, error) {
	upstream, err := request.upstream(ts.catalog)
	if err != nil {
		return nil, err
	}
	if ts.life.IsClosed() {
		return nil, lifecycle.ErrClosing // before a conversation is created for it
	}
	conversation := request.Conversation
	created := conversation.ID == ""
	if created {
		conversation.Title = cmp.Or(conversation.Title, conversations.TitleOf(request.Title))
		if request.Repeat.Key != "" && conversation.Key == "" {
			conversation.Key = request.Repeat.ClientKey(conversation.Scope())
		}
		if conversation, err = ts.log.NewConversation(conversation); err != nil {
			return nil, err
		}
	}
	wanted := continuo.Turn{ID: ts.log.NewID("turn"), ConversationID: conversation.ID}
	wanted.Fingerprint = request.Repeat.Fingerprint
	if request.Repeat.Key != "" {
		begun, err := ts.nextTry(ctx, &wanted, request.Repeat.Key, created)
		if err != nil || begun.ID != "" {
			return ts.followBegun(ctx, conversation, begun, err)
		}
	}
	wanted.Mode, wanted.View, wanted.Model = request.Mode, cmp.Or(request.View, turn.ClientViewName), request.Model
	runner, err := ts.clientRunner(ctx, request, conversation, upstream)
	if err != nil {
		return nil, err
	}
	if err := ts.checkWhole(ctx, request, conversation, runner); err != nil {
		return nil, err
	}
	chat, err := ts.Start(ctx, Request{
		Project: conversation.ProjectID, Conversation: conversation, Create: created, Policy: Wait, Detached: request.Detached,
		Turn: wanted, LeaseFirst: len(request.Approved) > 0,
		Prepare: func(ctx context.Context, now continuo.Conversation) (*turn.Runner, turn.Input, error) {
			if now.LastSeq != conversation.LastSeq {
				return nil, turn.Input{}, fmt.Errorf("begin a turn: %w", &continuo.ConflictError{Want: conversation.LastSeq + 1, Have: now.LastSeq + 1})
			}
			entries, err := ts.withApproved(ctx, now, request)
			if err == nil && request.Resolved != nil {
				request.Resolved(entries)
			}
			return runner, turn.Input{
				Snapshot: request.Snapshot, Entries: entries, Prefixes: request.Prefixes, Resume: len(request.Entries) == 0, Again: request.View == "", Fits: true, Mode: request.Mode, NoMemory: request.NoMemory,
			}, err
		},
	})
	if errors.Is(err, continuo.ErrExists) && request.Repeat.Key != "" && !created { // begun meanwhile
		begun, err := ts.repeatedIn(ctx, conversation, request.Repeat)
		return ts.followBegun(ctx, conversation, begun, err)
	}
	return chat, err
}

// nextTry sets the id of a turn with a key. It returns the turn that the key has begun, where that did not fail.
func (ts *Turns) nextTry(ctx context.Context, wanted *continuo.Turn, key string, created bool) (continuo.Turn, error) {
	wanted.ID = keyedTurn(wanted.ConversationID, key)
	if created {
		return continuo.Turn{}, nil
	}
	begun, tries, err := ts.newestTry(ctx, wanted.ConversationID, wanted.ID)
	switch {
	case errors.Is(err, continuo.ErrNotFound):
		return continuo.Turn{}, nil
	case err != nil:
		return continuo.Turn{}, err
	case begun.Fingerprint != wanted.Fingerprint:
		return continuo.Turn{}, fmt.Errorf("%w: it began turn %s with something else", continuo.ErrKeyReused, begun.ID)
	case begun.State != continuo.TurnFailed:
		return begun, nil
	}
	wanted.ID = tryID(wanted.ID, tries+1)
	return continuo.Turn{}, nil
}

// followBegun follows the turn that an earlier try of a request has begun.
func (ts *Turns) followBegun(ctx context.Context, conversation continuo.Conversation, begun continuo.Turn, err error) (*Chat, error) {
	if err == nil && begun.ID == "" {
		err = fmt.Errorf("begin a turn: %w", continuo.ErrExists)
	}
	if err != nil {
		return nil, err
	}
	return ts.followFrom(ctx, conversation, begun)
}

// upstream is where the request goes.
func (r ClientRequest) upstream(models *catalog.Catalog) (catalog.Upstream, error) {
	if r.Upstream != nil {
		return *r.Upstream, nil
	}
	return models.Upstream(r.Model)
}

// wholeLog is the view of a client's request that is not forwarded and names no view.
var wholeLog = window.View{Name: turn.ClientViewName, LowWater: 1, ShowCollapsed: true}

// clientRunner returns the runner of a client's request.
func (ts *Turns) clientRunner(ctx context.Context, request ClientRequest, conversation continuo.Conversation, upstream catalog.Upstream) (*turn.Runner, error) {
	runner := &turn.Runner{
		Log: ts.log, Model: upstream.Model, Limits: ts.catalog.Options.Limits, Answered: request.Answered, Annotate: request.Annotate,
	}
	if request.Forward != nil {
		forward, err := request.Forward(ctx, conversation)
		runner.View, runner.Forward = turn.ClientView{}, forward
		return runner, err
	}
	view := wholeLog
	view.Without = request.Without
	if request.View != "" {
		var err error
		if view, err = ts.catalog.View(request.View); err != nil {
			return nil, err
		}
		if view.Profile == window.ProfileShown { // the client says itself what the model is told
			view.Profile = window.ProfileHidden
		}
		view = withThreshold(view, request.CompactAt, upstream.Model.Info().ContextWindow)
	}
	if len(request.ServerTools) > 0 {
		runner.Tools, runner.Policy, runner.AllTools = request.ServerTools, tool.Policy{Otherwise: tool.Allow}, true
	}
	runner.View, runner.System, runner.ClientTools, runner.Answer = view, request.System, append([]continuo.ToolSpec{}, request.Tools...), request.Answer
	runner.Speaker, runner.Temperature, runner.ReasoningEffort = upstream.Speaker, upstream.Temperature, upstream.ReasoningEffort
	runner.MaxOutputTokens = cmp.Or(request.MaxOutputTokens, upstream.MaxOutputTokens)
	if request.Temperature != nil {
		runner.Temperature = request.Temperature
	}
	runner.ReasoningEffort, runner.Options = cmp.Or(request.ReasoningEffort, runner.ReasoningEffort), request.Options
	return runner, nil
}

// CountTokens estimates the tokens of the request that a client's request would make, without making it.
func (ts *Turns) CountTokens(ctx context.Context, request ClientRequest) (int, error) {
	upstream, err := request.upstream(ts.catalog)
	if err != nil {
		return 0, err
	}
	runner, err := ts.clientRunner(ctx, request, request.Conversation, upstream)
	if err != nil {
		return 0, err
	}
	counter, _ := token.ForModel(upstream.Model.Info().Name)
	var size continuo.Size
	for i := range request.Entries {
		entry := &request.Entries[i]
		size = size.Add(continuo.Measure(entry.Content, entry.ToolCalls, counter))
	}
	planned, err := runner.Size(ctx, request.Conversation)
	return size.Tokens + planned.Tokens, err
}
