package crew

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/continuo-log/continuo/crew/view"
	"github.com/continuo-log/continuo/internal/duration"
	"github.com/continuo-log/continuo/internal/yamlform"
	"github.com/continuo-log/continuo/internal/yamltree"
	"github.com/continuo-log/continuo/tool"
)

// ConnectorModel is the connector of roles for which one of the settings' models answers; it is the default
// connector.
const ConnectorModel = "model"

const (
	maxDisplayName  = 64       // characters
	maxSystemPrompt = 64 << 10 // bytes
	leastTimeout    = time.Second
	maxTimeout      = 24 * time.Hour
)

// rolePositions are the positions of a role's names in the file.
type rolePositions struct{ name, display yamltree.Position }

// roleFile is a role in a crew's file.
type roleFile struct {
	Name         *yamltree.Node       `key:"role_name" form:"name" required:"true" help:"By which name the log, programs and the command line know the role. One that is renamed is a new one."`
	DisplayName  *yamltree.Node       `key:"display_name" form:"label" help:"What people and the other roles call it: one line of at most 64 characters, without brackets and colons. Default: the role_name."`
	AgentType    *yamltree.Node       `key:"agent_type" form:"label" help:"What kind of agent it is, for people. Default: the connector's name."`
	Connector    *yamltree.Node       `key:"connector" help:"Who speaks for it: a connector of the settings, or model for one of the settings' models. Default: model."`
	Model        *yamltree.Node       `key:"model" help:"Which model speaks for it, with connector: model. Default: the settings' default model."`
	SystemPrompt *yamltree.Node       `key:"system_prompt" required:"true" help:"What the role is to do, at most 64 KiB."`
	IsModerator  yamlform.Value[bool] `key:"is_moderator" help:"Whether a cycle ends when this role has nothing to add. There may be several. Default: false."`
	View         *yamltree.Node       `key:"view" form:"kind|view" help:"How much of the conversation it is shown: a kind, or a mapping. Default: delta for an agent that remembers, full for others."`
	Tools        *yamltree.Node       `key:"tools" form:"patterns|policy" help:"Which tools it may use, with connector: model: a list of the only ones, or a policy. It narrows what the project allows."`
	Timeout      *yamltree.Node       `key:"timeout" form:"duration" help:"How long one of its turns may take, from 1s to 24h, such as 90s or 10m. Default: the setting crew.agent_timeout."`
	BotToken     *yamltree.Node       `key:"bot_token" form:"variable" help:"${NAME} for the variable of the environment with the token of the role's own Telegram bot. Default: the listener speaks for it."`
}

// viewFile is a role's view in a crew's file. Fewer characters or tokens would not hold a reminder and a message.
type viewFile struct {
	Kind   *yamltree.Node      `key:"kind" form:"kind" help:"delta: what is new. full: everything. window: the newest messages. summary: a summary of the old and the newest messages. memory: its own notes and what is new."`
	Newest yamlform.Value[int] `key:"newest" min:"1" max:"10000" help:"How many messages a window shows, or are shown whole after a summary. Default: the setting crew.max_conversation_length, or 20 after a summary."`
	Chars  yamlform.Value[int] `key:"chars" min:"1000" max:"1073741824" help:"How many characters one turn is shown at most. Default: the setting context.max_chars."`
	Tokens yamlform.Value[int] `key:"tokens" min:"500" max:"1073741824" help:"How many tokens one turn is shown at most. Default: as the settings and the model say."`
}

func (r *reader) readRole(v *yamltree.Node) (role Role, at rolePositions, ok bool) {
	var file roleFile
	if !r.Object(v, "a role", &file) {
		return role, at, false
	}
	role.Line = v.At.Line
	role.Name, at.name = r.readRoleName(v, file.Name)
	role.DisplayName, at.display = role.Name, at.name
	if display := file.DisplayName; display != nil {
		role.DisplayName, at.display = r.readLabel(display, "display_name"), display.At
	}
	r.readConnector(&role, file)
	if role.AgentType = role.Connector; file.AgentType != nil {
		role.AgentType = r.readLabel(file.AgentType, "agent_type")
	}
	role.SystemPrompt = r.readSystemPrompt(v, file.SystemPrompt)
	role.IsModerator = file.IsModerator.Is
	role.View = r.readView(file.View)
	role.Timeout = r.readTimeout(file.Timeout)
	role.BotToken = r.readBotToken(file.BotToken)
	return role, at, true
}

func (r *reader) readRoleName(role, v *yamltree.Node) (string, yamltree.Position) {
	if v == nil {
		if !role.Has("role_name") {
			r.Complain(role.At, "a role needs a role_name, by which the log knows it")
		}
		return "", role.At
	}
	if r.Text(v, "role_name") == "" || !r.Name(v, "a role") {
		return "", v.At
	}
	return v.Text, v.At
}

// readLabel reads a name for people. Names are shown in brackets before messages, so that they must not contain
// brackets or invisible characters.
func (r *reader) readLabel(v *yamltree.Node, key string) string {
	label := r.Text(v, key)
	switch {
	case utf8.RuneCountInString(label) > maxDisplayName:
		r.Complain(v.At, "%s has %d characters, more than the limit of %d", key, utf8.RuneCountInString(label), maxDisplayName)
	case strings.ContainsAny(label, labelSigns):
		r.Complain(v.At, "%s cannot be %s: brackets and colons would be taken for the end of a label; write it without them", key, yamlform.Quoted(label))
	case strings.ContainsFunc(label, func(r rune) bool { return r != ' ' && !unicode.IsPrint(r) }):
		r.Complain(v.At, "%s cannot be %s: it must be one line of characters that can be seen", key, yamlform.Quoted(label))
	default:
		return label
	}
	return ""
}

// labelSigns end a label, or look as if they did.
const labelSigns = "()[]:（）［］：﹙﹚﹕︰"

// readConnector reads a role's connector. Only the connector "model" takes a model and tools: other agents have their
// own.
func (r *reader) readConnector(role *Role, file roleFile) {
	role.Connector, role.Tools = ConnectorModel, tool.Policy{Otherwise: tool.Allow}
	if file.Connector != nil {
		role.Connector = r.Known(file.Connector, "connector", append([]string{ConnectorModel}, r.known.Connectors...))
	}
	if role.Connector != "" && role.Connector != ConnectorModel {
		for key, v := range map[string]*yamltree.Node{"model": file.Model, "tools": file.Tools} {
			if v != nil {
				r.Complain(v.At, "%s is for roles with connector: model, and this one has %s, which has its own; remove %s", key, yamlform.Quoted(role.Connector), key)
			}
		}
		return
	}
	role.Model = r.Known(file.Model, "model", r.known.Models)
	tools := r.Tools(file.Tools, "the role", r.checkTool)
	role.Tools = tool.Policy{Allow: tools.Allow, Ask: tools.Ask, Deny: tools.Deny, Otherwise: tool.Decision(tools.Otherwise)}
}

// checkTool checks the name of a tool, or a pattern, which may match tools that a server does not have yet.
func (r *reader) checkTool(pattern string) error {
	if err := (tool.Policy{Allow: []string{pattern}}).Check(); err != nil {
		return err
	}
	known := tool.Policy{Allow: r.known.Tools}
	if r.Any || r.known.Tools == nil || strings.Contains(pattern, "*") || known.Decide(pattern) == tool.Allow {
		return nil
	}
	return fmt.Errorf("unknown tool %s%s; MCP servers are defined in the settings", yamlform.Quoted(pattern), yamlform.DidYouMean(pattern, r.known.Tools))
}

func (r *reader) readSystemPrompt(role, v *yamltree.Node) string {
	if v == nil {
		if !role.Has("system_prompt") {
			r.Complain(role.At, "a role needs a system_prompt")
		}
		return ""
	}
	prompt := r.Text(v, "system_prompt")
	if len(prompt) > maxSystemPrompt {
		r.Complain(v.At, "system_prompt has %d bytes, more than the limit of %d; shorten it", len(prompt), maxSystemPrompt)
	}
	return prompt
}

var viewKinds = []string{
	string(view.Delta), string(view.Full), string(view.Window), string(view.Summary), string(view.Memory),
}

// readView reads a kind of view, or a mapping with options.
func (r *reader) readView(v *yamltree.Node) View {
	switch {
	case v == nil:
		return View{}
	case v.Kind != yamltree.Mapping:
		return View{Kind: view.Kind(r.OneOf(v, "view", viewKinds...))}
	}
	var file viewFile
	r.Object(v, "view", &file)
	defaults := View{Newest: file.Newest.Is, Chars: file.Chars.Is, Tokens: file.Tokens.Is}
	if file.Kind != nil {
		defaults.Kind = view.Kind(r.OneOf(file.Kind, "kind", viewKinds...))
	}
	if newest := file.Newest.Node; newest != nil && defaults.Kind != view.Window && defaults.Kind != view.Summary && (defaults.Kind != "" || file.Kind == nil) {
		r.Complain(newest.At, "newest is for views of the kind window or summary; write kind: window, or remove newest")
	}
	return defaults
}

func (r *reader) readTimeout(v *yamltree.Node) time.Duration {
	if v == nil {
		return 0
	}
	length, err := duration.Parse(v.Text)
	if v.Kind != yamltree.Text || err != nil || length < leastTimeout || length > maxTimeout {
		r.Complain(v.At, "timeout must be a time with its unit, such as 90s or 10m, from 1s to 24h")
		return 0
	}
	return length
}

var variable = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]{0,99})\}$`)

// readBotToken reads the name of a variable. An invalid value may be a token by mistake and is not repeated in the
// error: the file's text is stored, and a secret could not be removed from the store.
func (r *reader) readBotToken(v *yamltree.Node) string {
	if v == nil {
		return ""
	}
	found := variable.FindStringSubmatch(v.Text)
	if v.Kind != yamltree.Text || found == nil {
		r.Complain(v.At, "bot_token must be ${NAME}, where NAME is a variable of the environment: a token must not be in the file, which is stored with the conversations")
		return ""
	}
	return found[1]
}
