package match

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/gateway/request"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// client is how a program names its sessions, and how its calls beside a conversation show. A new client is one row of
// clients; measured with the versions that the test's recordings name.
type client struct {
	name string
	// agent is the beginning of its User-Agent, header one that only it sends; one of them identifies the client.
	agent, header string
	// session returns the client's name for its session, "" when it has none; parent that of the session which a
	// sub-agent belongs to, "" when it names none.
	session, parent func(*call) string
	// sharesSession says that calls beside a session name it as theirs; otherwise some have a session of their own.
	sharesSession bool
	sides         []side
}

// side is how a call beside a conversation shows: all conditions that are set hold. The texts are beginnings, or a few
// words, never whole prompts.
type side struct {
	name string
	// header is "Name" or "Name: part of the value".
	header string
	// system is the beginning of a system text or of a system message before all others, last of the last message; inLast and inUser are in the last one or in
	// any user message.
	system, last, inLast, inUser string
	tool                         string // that it offers
	noTools, schema              bool   // it offers none; it requires an answer by a JSON Schema
}

var clients = []client{
	{
		name: "codex", header: "X-Codex-Turn-Metadata",
		session: header("Thread-Id", "Session-Id"), parent: header("X-Codex-Parent-Thread-Id"),
		sides: []side{
			{name: "guardian", header: "X-Openai-Subagent: guardian"},
			{name: "subagent", header: "X-Openai-Subagent"},
			{name: "compaction", header: `X-Codex-Turn-Metadata: "request_kind":"compaction"`},
			{name: "compaction", last: "You are performing a CONTEXT CHECKPOINT COMPACTION"},
			{name: SideTitle, last: "Your task is to generate a very short title", schema: true},
		},
	},
	{
		name: "claude-code", agent: "claude-cli/", header: "X-Claude-Code-Session-Id",
		session: claudeSession, parent: claudeParent, sharesSession: true,
		sides: []side{
			{name: "subagent", header: "X-Claude-Code-Agent-Id"},
			{name: SideTitle, noTools: true, schema: true},
			{name: "suggestion", last: suggestionMode},
			{name: "compaction", inLast: "CRITICAL: Respond with TEXT ONLY"},
		},
	},
	{
		name: "opencode", agent: "opencode/",
		session: header("X-Session-Id", "X-Session-Affinity"), parent: header("X-Parent-Session-Id"), sharesSession: true,
		sides: []side{
			{name: "subagent", header: "X-Parent-Session-Id"},
			{name: SideTitle, noTools: true, system: "You are a title generator"},
			{name: "compaction", noTools: true, last: "Here is the conversation so far"},
		},
	},
	{
		name: "gemini", agent: "GeminiCLI",
		sides: []side{
			{name: "compaction", noTools: true, system: "You are a specialized system component"},
			{name: "subagent", tool: "complete_task"},
		},
	},
	{
		name: "qwen", agent: "QwenCode",
		sides: []side{
			{name: "memory", system: "You are now acting as the managed memory"},
			{name: "suggestion", last: suggestionMode},
			{name: "classifier", tool: "respond_in_schema"},
			{name: "fork-agent", inUser: "<fork-boilerplate>"},
			{name: "subagent", system: "You are a general-purpose subagent"},
			{name: "compaction", last: "You are the component that summarizes"},
			{name: "compaction", system: "You are the component that summarizes"}, // of /compress
		},
	},
	{sides: []side{{name: "suggestion", last: suggestionMode}}}, // any other client
}

const suggestionMode = "[SUGGESTION MODE:"

// SideTitle is the side call whose answer names the session.
const SideTitle = "title"

// sideCompaction is the side call whose answer begins the session's next history.
const sideCompaction = "compaction"

// call is a request with what the table looks at.
type call struct {
	header  http.Header
	request *request.Request
	client  client
}

func newCall(header http.Header, r *request.Request) *call {
	c := &call{header: header, request: r}
	agent := header.Get("User-Agent")
	for _, c.client = range clients {
		if c.client.agent != "" && strings.HasPrefix(agent, c.client.agent) || c.client.header != "" && header.Get(c.client.header) != "" {
			break
		}
	}
	return c
}

// session returns the client's session, with the client's name before it, so that two clients' do not collide.
func (c *call) session() string { return c.named(c.client.session) }

func (c *call) parent() string { return c.named(c.client.parent) }

func (c *call) named(by func(*call) string) string {
	if by == nil {
		return ""
	}
	if id := by(c); id != "" {
		return c.client.name + ":" + id
	}
	return ""
}

// side returns the name of the side call that the request is, "" when it is none.
func (c *call) side() string {
	i := slices.IndexFunc(c.client.sides, c.is)
	if i < 0 {
		return ""
	}
	return c.client.sides[i].name
}

func (c *call) is(s side) bool {
	r := c.request
	tools := len(r.Tools) + len(r.OtherTools)
	switch {
	case s.header != "" && !c.hasHeader(s.header):
	case s.noTools && tools > 0:
	case s.schema && !requiresSchema(r):
	case s.tool != "" && !slices.ContainsFunc(r.Tools, func(t continuo.ToolSpec) bool { return t.Name == s.tool }):
	case s.system != "" && !slices.ContainsFunc(systemTexts(r), func(text string) bool { return begins(text, s.system) }):
	case s.last != "" && !slices.ContainsFunc(lastTexts(r), func(text string) bool { return begins(text, s.last) }):
	case s.inLast != "" && !slices.ContainsFunc(lastTexts(r), func(text string) bool { return strings.Contains(text, s.inLast) }):
	case s.inUser != "" && !inUser(r, s.inUser):
	default:
		return true
	}
	return false
}

func begins(text, beginning string) bool {
	return strings.HasPrefix(strings.TrimSpace(text), beginning)
}

func (c *call) hasHeader(condition string) bool {
	name, part, valued := strings.Cut(condition, ": ")
	value := c.header.Get(name)
	return value != "" && (!valued || strings.Contains(value, part))
}

func requiresSchema(r *request.Request) bool {
	return strings.Contains(string(r.ResponseFormat), "json_schema") || strings.Contains(string(r.Fields.Get("text")), `"json_schema"`)
}

// lastTexts returns the texts of the last message that is the user's.
func lastTexts(r *request.Request) []string {
	for _, e := range slices.Backward(r.Entries) {
		if e.Role == continuo.User {
			return texts(&e)
		}
		if e.Role == continuo.Assistant || e.Role == continuo.Tool {
			break
		}
	}
	return nil
}

func texts(e *continuo.Entry) []string {
	if !e.Content.IsParts() {
		return []string{e.Content.String()}
	}
	var all []string
	for _, part := range e.Content.Parts() {
		if part.IsText() {
			all = append(all, part.Text)
		}
	}
	return all
}

// systemTexts returns the system prompt, and what the messages begin with where a client has it there, as opencode does
// through the Responses API.
func systemTexts(r *request.Request) []string {
	all := slices.Clone(r.System)
	for i := range r.Entries {
		if r.Entries[i].Role != continuo.System {
			break
		}
		all = append(all, r.Entries[i].Content.String())
	}
	return all
}

func inUser(r *request.Request, text string) bool {
	return slices.ContainsFunc(r.Entries, func(e continuo.Entry) bool {
		return e.Role == continuo.User && strings.Contains(e.Content.String(), text)
	})
}

// header returns the first of some headers that the request has.
func header(names ...string) func(*call) string {
	return func(c *call) string {
		for _, name := range names {
			if value := c.header.Get(name); value != "" {
				return value
			}
		}
		return ""
	}
}

// claudeParent is the session in the header, or else in metadata.user_id, which is JSON in a string, and in older
// versions a text that ends with _session_ and the id.
func claudeParent(c *call) string {
	if id := c.header.Get("X-Claude-Code-Session-Id"); id != "" {
		return id
	}
	metadata, err := rawjson.ParseObject(c.request.Fields.Get("metadata"))
	if err != nil {
		return ""
	}
	user, _ := rawjson.String(metadata.Get("user_id"))
	var named struct {
		SessionID string `json:"session_id"`
	}
	if json.Unmarshal([]byte(user), &named) == nil {
		return named.SessionID
	}
	_, id, _ := strings.Cut(user, "_session_")
	return id
}

// claudeSession distinguishes the sub-agents of a session.
func claudeSession(c *call) string {
	id := claudeParent(c)
	if agent := c.header.Get("X-Claude-Code-Agent-Id"); agent != "" && id != "" {
		return id + "/" + agent
	}
	return id
}
