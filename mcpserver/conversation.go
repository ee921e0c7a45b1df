package mcpserver

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/continuo-log/continuo/engine/catalog"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/task"
)

// conversation finds the conversation of the project that an id or a key names. An archived one is refused.
func (f *projectServer) conversation(ctx context.Context, id string) (continuo.Conversation, error) {
	return f.engine.Conversations.Get(ctx, f.scope, id)
}

func (f *projectServer) searchConversations(c *call) (answer, error) {
	request := index.Request{
		Query: c.required("query"), Kinds: index.KindsOf(c.choice("kind", "", index.KindNames()...)), Role: continuo.Role(c.choice("role", "", names(continuo.User, continuo.Assistant, continuo.Tool, continuo.System)...)),
		From: c.whole("from", 1, maxExact, 0), To: c.whole("to", 1, maxExact, 0),
		Limit: int(c.whole("limit", 1, index.MaxLimit, index.DefaultLimit)), Cursor: c.text("cursor"),
	}
	request.UserID, request.Labels = c.user(f.scope), c.labels()
	switch {
	case c.has("conversation") && len(request.Labels) > 0:
		c.refuse(task.InvalidValue, "metadata", "metadata chooses among conversations: leave it out where one is named")
	case !c.has("conversation") && (request.From > 0 || request.To > 0):
		c.refuse(task.MissingField, "conversation", "from and to are seqs of one conversation: name it")
	case request.To > 0 && request.To < request.From:
		c.refuse(task.InvalidValue, "to", "from is %d and to is %d: from must not come after to", request.From, request.To)
	}
	if c.err != nil {
		return answer{}, c.err
	}
	if c.has("conversation") {
		conversation, err := f.conversation(c.ctx, c.required("conversation"))
		if err != nil {
			return answer{}, err
		}
		request.Conversation = &conversation
	}
	found, err := f.engine.Conversations.Search(c.ctx, f.scope, request)
	if err != nil {
		return answer{}, err
	}
	return answer{value: struct {
		Matches    []index.Item `json:"matches"`
		NextCursor string       `json:"next_cursor,omitempty"`
		Incomplete bool         `json:"incomplete"`
	}{append([]index.Item{}, found.Items...), found.NextCursor, found.Incomplete}}, nil
}

func (f *projectServer) getContext(c *call) (answer, error) {
	id := c.required("conversation")
	request := f.contextRequest(c)
	if c.err != nil {
		return answer{}, c.err
	}
	conversation, err := f.conversation(c.ctx, id)
	if err != nil {
		return answer{}, err
	}
	shown, err := f.engine.Contexts.Build(c.ctx, conversation, request)
	switch {
	case errors.Is(err, continuo.ErrBadRange):
		return answer{}, refused(task.InvalidValue, "at", err.Error())
	case errors.Is(err, continuo.ErrInvalid) && strings.HasPrefix(request.View, engine.RoleViewPrefix):
		return answer{}, refused(task.InvalidValue, "view", err.Error())
	case err != nil:
		return answer{}, err
	}
	return answer{value: struct {
		ConversationID string `json:"conversation_id"`
		*engine.Context
	}{conversation.ID, shown}}, nil
}

func (f *projectServer) contextRequest(c *call) engine.ContextRequest {
	var agents []string
	for _, agent := range f.engine.Catalog.Agents() {
		agents = append(agents, agent.ID)
	}
	return engine.ContextRequest{
		View: contextView(c), Crew: c.text("crew"), At: c.whole("at", 1, maxExact, 0),
		Format:      engine.Format(c.choice("format", "", names(engine.FormatOpenAI, engine.FormatAnthropic, engine.FormatTranscript, engine.FormatHandoff)...)),
		MaxMessages: c.count("max_messages"), MaxChars: c.count("max_chars"), MaxTokens: c.count("max_tokens"),
		Model: c.choice("model", "", f.engine.Catalog.Models()...), AgentID: c.choice("agent_id", "", agents...), System: c.flag("system"),
	}
}

// contextView reads the view, and refuses arguments that cannot be combined with it: a role needs a crew, and has a
// model of its own.
func contextView(c *call) string {
	view := c.text("view")
	role, ok := strings.CutPrefix(view, engine.RoleViewPrefix)
	if !ok {
		if c.has("crew") {
			c.refuse(task.InvalidValue, "crew", "crew is of the views of roles, such as role:reviewer")
		}
		return c.choice("view", "", append(catalog.ViewNames(), engine.RoleViewPrefix+"NAME")...)
	}
	if role == "" {
		c.refuse(task.InvalidValue, "view", "role: is followed by the name of a role, such as role:reviewer")
	}
	if c.has("crew") && !engine.KeyPattern.MatchString(c.text("crew")) { // all ids of crews match this pattern
		c.refuse(task.InvalidValue, "crew", "crew must be the id of a crew")
	}
	for _, name := range []string{"model", "agent_id"} {
		if c.has(name) {
			c.refuse(task.InvalidValue, name, "%s cannot be combined with the view of a role, which its crew defines", name)
		}
	}
	return view
}

func (f *projectServer) appendMessage(c *call) (answer, error) {
	id := c.required("conversation")
	entry := continuo.Entry{
		Role:    continuo.Role(c.required("role")),
		Content: continuo.Text(c.required("content")), Name: c.text("name"),
	}
	c.choice("role", "", names(continuo.User, continuo.Assistant)...)
	options := continuo.AppendOptions{ExpectSeq: c.whole("expect_seq", 1, maxExact, 0), Key: c.key()}
	if c.err != nil {
		return answer{}, c.err
	}
	conversation, err := f.conversation(c.ctx, id)
	if err != nil {
		return answer{}, err
	}
	stored, err := f.engine.Conversations.Append(c.ctx, conversation, []continuo.Entry{entry}, options)
	if errors.As(err, new(*engine.KindError)) {
		return answer{}, refused(task.InvalidValue, "conversation", err.Error())
	}
	if err != nil {
		return answer{}, err
	}
	kept := stored[0]
	return answer{value: struct {
		ConversationID string        `json:"conversation_id"`
		ID             string        `json:"id"`
		Seq            int64         `json:"seq"`
		Role           continuo.Role `json:"role"`
		CreatedAt      time.Time     `json:"created_at"`
		Chars          int           `json:"chars"`
		Tokens         int           `json:"tokens"`
	}{conversation.ID, kept.ID, kept.Seq, kept.Role, kept.CreatedAt, kept.Chars, kept.Tokens}}, nil
}
