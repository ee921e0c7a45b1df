package match

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/gateway/request"
)

// Options configures a Matcher.
type Options struct {
	Log *continuo.Log
	// Prefixes is the store of the log.
	Prefixes continuo.PrefixStore
}

// Matcher finds the conversations of requests. It is safe for concurrent use.
type Matcher struct {
	log      *continuo.Log
	prefixes continuo.PrefixStore
	trails   trails
}

// New makes a Matcher.
func New(o Options) *Matcher { return &Matcher{log: o.Log, prefixes: o.Prefixes} }

// Query is a request, and what its endpoint knows about it besides.
type Query struct {
	Scope   continuo.Scope
	Request *request.Request
	Header  http.Header
	// Named is the conversation that the request names; nil for none.
	Named *continuo.Conversation
	// IdempotencyKey is the client's key for the request; with one, a repeated request is a retry.
	IdempotencyKey string
	// Repeats reports whether a turn that has its answer is that of an earlier try of the request: the request is then a
	// retry of it. Default: it never is.
	Repeats func(ctx context.Context, conversation continuo.Conversation, turnID string) (bool, error)
}

// By says what decided.
type By string

// What decides which conversation a request belongs to.
const (
	ByHeader  By = "header"  // the request names it
	BySession By = "session" // the client names its session
	ByPrefix  By = "prefix"  // its messages
	ByNew     By = "new"     // nothing: it is a new conversation
)

// Match is the decision about a request. The caller appends Entries to Conversation; with Fork it first forks the
// conversation at the seq At, and without a Conversation it creates one. A fork at 0 is a new conversation too, which
// shares no entry with its parent.
type Match struct {
	By By
	// Conversation is the one that is continued, forked or, for a retry, repeated; zero for a new one.
	Conversation continuo.Conversation
	// Snapshot has the newest entries of Conversation; nil where they were not read.
	Snapshot *continuo.Snapshot
	// Fork says that the request continues in a new conversation, from At on.
	Fork bool
	// Rewritten says that the client changed or dropped what the conversation has: the fork is to be marked so.
	Rewritten bool
	// Common is how many of the request's entries are in the log, At the seq of the last of them; 0 for none.
	Common int
	At     int64
	// Dropped is how many entries after At the client does not repeat, though the conversation continues: turns that
	// failed.
	Dropped int
	// Side is the name of a call beside a conversation, such as "title"; "" for the conversation itself. A new
	// conversation or a fork of it is of the kind side.
	Side string
	// Parent is the id of the conversation that a new one belongs to: of a side call, or of a session whose client
	// replaced the whole history. "" for none.
	Parent string
	// ParentKey is the key of a session that is not known yet: a side call came before the session's first request. The
	// caller creates an empty conversation with that key, which the session's first request then continues, and it is the
	// Parent. "" for none.
	ParentKey string
	// Key is the key of a new conversation or a fork that begins a session; "" for none.
	Key string
	// Retry says that the request repeats the newest one of the conversation; RetryOf is that one's turn, "" where its
	// entries name none.
	Retry   bool
	RetryOf string

	search  *search
	request *request.Request
	callIDs map[string]string // the log's ids of the calls that are open, by the client's
	chain   Chain             // after the common entries
	tracked bool              // the chain is that of all entries of the conversation
}

// Entries returns what is to be appended: the request's entries that the log does not have. Results have the call ids of
// the log, where the client made up its own.
func (m *Match) Entries() []continuo.Entry {
	entries := slices.Clone(m.request.Entries[m.Common:])
	for i := range entries {
		if id, ok := m.callIDs[entries[i].ToolCallID]; ok && entries[i].Role == continuo.Tool {
			entries[i].ToolCallID = id
		}
		if entries[i].HasCalls() {
			break // its results have its ids
		}
	}
	return entries
}

// Chain returns the state of the hash after the common entries. Its Add makes the prefixes of Entries, and of the
// answer after them. A conversation that the request names and of which it repeats nothing has none: then ok is false.
func (m *Match) Chain() (chain Chain, ok bool) { return m.chain, m.tracked }

// Kind is the kind of a new conversation or a fork.
func (m *Match) Kind() continuo.Kind {
	if m.Side != "" {
		return continuo.KindSide
	}
	return continuo.KindUser
}

// Match finds the conversation of a request.
func (m *Matcher) Match(ctx context.Context, q Query) (*Match, error) {
	s := newSearch(m, q)
	if q.Named != nil {
		return s.named(ctx)
	}
	if s.side != "" {
		return s.beside(ctx)
	}
	if s.session != "" {
		return s.inSession(ctx)
	}
	return s.anonymous(ctx)
}

// isRetry reports whether the client says that it repeats a request.
func isRetry(q Query) bool {
	count, err := strconv.Atoi(q.Header.Get("X-Stainless-Retry-Count"))
	return err == nil && count > 0 || q.IdempotencyKey != ""
}

// maxResumed bounds how many entries are read to find the state of the hash of a conversation.
const maxResumed = 1024

// Resume returns the state of the hash after all entries of a conversation, for a request whose client does not send them:
// the server keeps the history. It is not ok for a conversation of more than 1024 entries, whose prefixes end there.
func (m *Matcher) Resume(ctx context.Context, conversation continuo.Conversation, system []string) (chain Chain, ok bool, err error) {
	if conversation.LastSeq > maxResumed {
		return Chain{}, false, nil
	}
	project := conversation.ProjectID
	if project == "" {
		project = continuo.DefaultProject
	}
	chain = newChain(project, strings.Join(system, "\n"), "")
	if conversation.LastSeq == 0 {
		return chain, true, nil
	}
	for entry, err := range m.log.ReadShared(ctx, conversation, continuo.Range{To: conversation.LastSeq}) {
		if err != nil {
			return Chain{}, false, err
		}
		chain = chain.add(entry)
	}
	return chain, true, nil
}
