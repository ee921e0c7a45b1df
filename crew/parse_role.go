package crew

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/continuo-log/continuo/crew/view"
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
	maxNewest       = 10_000   // messages
	leastChars      = 1000     // fewer would not hold a reminder and a message
	leastTokens     = 500      // likewise
	maxSize         = 1 << 30  // characters or tokens
	leastTimeout    = time.Second
	maxTimeout      = 24 * time.Hour
)

// rolePositions are the positions of a role's names in the file.
type rolePositions struct{ name, display yamltree.Place }

var roleKeys = []string{
	"role_name", "display_name", "agent_type", "connector", "model", "system_prompt", "is_moderator", "view", "tools", "timeout", "bot_token",
}

func (r *reader) readRole(v *yamltree.Node) (role Role, at rolePositions, ok bool) {
	keys := r.Mapping(v, "a role", roleKeys...)
	if keys == nil {
		return role, at, false
	}
	role.Line = v.At.Line
	role.Name, at.name = r.readRoleName(v, keys["role_name"])
	role.DisplayName, at.display = role.Name, at.name
	if display := keys["display_name"]; display != nil {
		role.DisplayName, at.display = r.readLabel(display, "display_name"), display.At
	}
	r.readConnector(&role, keys)
	if role.AgentType = role.Connector; keys["agent_type"] != nil {
		role.AgentType = r.readLabel(keys["agent_type"], "agent_type")
	}
	role.SystemPrompt = r.readSystemPrompt(v, keys["system_prompt"])
	role.IsModerator = r.Bool(keys["is_moderator"], "is_moderator")
	role.View = r.readView(keys["view"])
	role.Timeout = r.readTimeout(keys["timeout"])
	role.BotToken = r.readBotToken(keys["bot_token"])
	return role, at, true
}

func (r *reader) readRoleName(role, v *yamltree.Node) (string, yamltree.Place) {
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
func (r *reader) readConnector(role *Role, keys map[string]*yamltree.Node) {
	role.Connector, role.Tools = ConnectorModel, tool.Policy{Otherwise: tool.Allow}
	if connector := keys["connector"]; connector != nil {
		role.Connector = r.Known(connector, "connector", append([]string{ConnectorModel}, r.known.Connectors...))
	}
	if role.Connector != "" && role.Connector != ConnectorModel {
		for _, key := range []string{"model", "tools"} {
			if v := keys[key]; v != nil {
				r.Complain(v.At, "%s is for roles with connector: model, and this one has %s, which has its own; remove %s", key, yamlform.Quoted(role.Connector), key)
			}
		}
		return
	}
	role.Model = r.Known(keys["model"], "model", r.known.Models)
	tools := r.Tools(keys["tools"], "the role", r.checkTool)
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
	return fmt.Errorf("unknown tool %s%s; MCP servers stand in the settings", yamlform.Quoted(pattern), yamlform.DidYouMean(pattern, r.known.Tools))
}

func (r *reader) readSystemPrompt(role, v *yamltree.Node) string {
	if v == nil {
		if !role.Has("system_prompt") {
			r.Complain(role.At, "a role needs a system_prompt, which says what it is to do")
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
	keys := r.Mapping(v, "view", "kind", "newest", "chars", "tokens")
	defaults := View{
		Kind:   view.Kind(r.OneOf(keys["kind"], "kind", viewKinds...)),
		Newest: r.Count(keys["newest"], "newest", maxNewest),
		Chars:  r.Between(keys["chars"], "chars", leastChars, maxSize),
		Tokens: r.Between(keys["tokens"], "tokens", leastTokens, maxSize),
	}
	if newest := keys["newest"]; newest != nil && defaults.Kind != view.Window && defaults.Kind != view.Summary && (defaults.Kind != "" || keys["kind"] == nil) {
		r.Complain(newest.At, "newest is for views of the kind window or summary; write kind: window, or remove newest")
	}
	return defaults
}

func (r *reader) readTimeout(v *yamltree.Node) time.Duration {
	if v == nil {
		return 0
	}
	length, err := time.ParseDuration(v.Text)
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
		r.Complain(v.At, "bot_token must be ${NAME}, where NAME is a variable of the environment: a token never stands in the file, which is kept with the conversations")
		return ""
	}
	return found[1]
}
