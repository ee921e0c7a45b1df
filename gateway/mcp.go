package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/render"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/tool/mcptool"
)

// MCP are the MCP servers whose tools requests can have, as Responses tools of the type mcp. They run here where the model
// does not speak the Responses API itself.
type MCP struct {
	// Servers are those of the settings, which requests name by server_label. Policy decides on their tools: one that is
	// asked about needs the client's approval.
	Servers []*mcptool.Source
	Policy  tool.Policy
	// URLs are the addresses below which requests may name servers by server_url; Pool connects to them.
	URLs []string
	Pool *mcptool.Pool
}

// typeMCP is the type of a tool that is an MCP server.
const typeMCP = "mcp"

// mcpDefinition is such a tool.
type mcpDefinition struct {
	Type              string            `json:"type"`
	ServerLabel       string            `json:"server_label"`
	ServerURL         string            `json:"server_url"`
	ServerDescription string            `json:"server_description"`
	ConnectorID       string            `json:"connector_id"`
	Authorization     string            `json:"authorization"`
	Headers           map[string]string `json:"headers"`
	AllowedTools      json.RawMessage   `json:"allowed_tools"`
	RequireApproval   json.RawMessage   `json:"require_approval"`
}

// secretMembers are the members of such a tool that are neither stored nor shown again.
var secretMembers = []string{"authorization", "headers"}

// withoutSecrets returns tools without the credentials of MCP servers.
func withoutSecrets(tools []json.RawMessage) []json.RawMessage {
	shown := slices.Clone(tools)
	for i, raw := range tools {
		object, err := rawjson.ParseObject(raw)
		if kind, _ := rawjson.String(object.Get("type")); err == nil && kind == typeMCP {
			shown[i] = object.Without(secretMembers...).Raw()
		}
	}
	return shown
}

// mcpTools are the tools of the MCP servers of a request, which run here.
type mcpTools struct {
	definitions map[int]mcpDefinition // by their index among the request's tools
	listings    []mcpListing
	tools       map[string]*mcpServed // by their names in requests to models
	approvals   []mcpApproval
	answered    []continuo.Entry // the request's entries, when its turn has begun
}

// mcpServed is a tool of an MCP server, under the label that the client gives the server.
type mcpServed struct {
	tool.Tool
	label, name string
	asks        bool // the client approves each call
}

func (s *mcpServed) Spec() continuo.ToolSpec {
	spec := s.Tool.Spec()
	spec.Name = s.label + "." + s.name
	return spec
}

// Timeout is part of tool.Timed.
func (s *mcpServed) Timeout() time.Duration {
	if timed, ok := s.Tool.(tool.Timed); ok {
		return timed.Timeout()
	}
	return 0
}

// readMCP finds the MCP servers among a request's tools; nil where there are none, or the model's provider runs them.
func readMCP(tools []json.RawMessage, upstream engine.Upstream) (*mcpTools, error) {
	if upstream.Model == nil || upstream.Model.Info().Protocol == model.ProtocolResponses {
		return nil, nil //nolint:nilnil // none, which is no error
	}
	var found *mcpTools
	for i, raw := range tools {
		var definition mcpDefinition
		if kind, _ := kindOf(raw); kind != typeMCP {
			continue
		}
		if err := json.Unmarshal(raw, &definition); err != nil {
			return nil, api.Refuse(fmt.Sprintf("tools[%d]", i), "%s", err)
		}
		if found == nil {
			found = &mcpTools{definitions: map[int]mcpDefinition{}, tools: map[string]*mcpServed{}}
		}
		found.definitions[i] = definition
	}
	return found, nil
}

// kindOf is the type of a tool or an item.
func kindOf(raw json.RawMessage) (kind string, ok bool) {
	from, to, ok := rawjson.Find(raw, "type")
	if !ok {
		return "", false
	}
	return rawjson.String(raw[from:to])
}

// connect finds the tools of a request's MCP servers. Functions are the client's own.
func (m *mcpTools) connect(ctx context.Context, servers MCP, functions []continuo.ToolSpec) error {
	taken := map[string]bool{}
	for _, function := range functions {
		taken[render.ToolName(function.Name)] = true
	}
	for _, i := range slices.Sorted(maps.Keys(m.definitions)) {
		definition := m.definitions[i]
		served, err := definition.tools(ctx, servers, fmt.Sprintf("tools[%d]", i))
		if err != nil {
			return err
		}
		for _, one := range served {
			name := render.ToolName(one.Spec().Name)
			if taken[name] {
				return api.Refuse(fmt.Sprintf("tools[%d].server_label", i), "the tool %s of %s and another tool have the same name for models: choose another server_label", api.Bounded(one.name), api.Bounded(one.label))
			}
			taken[name], m.tools[name] = true, one
		}
		m.listings = append(m.listings, listingOf(definition.ServerLabel, served))
	}
	return nil
}

// tools are the tools of a server that a request has.
func (d *mcpDefinition) tools(ctx context.Context, servers MCP, at string) ([]*mcpServed, error) {
	set, policy, err := d.source(ctx, servers, at)
	if err != nil {
		return nil, err
	}
	allowed, err := readToolFilter(d.AllowedTools)
	if err != nil {
		return nil, api.Refuse(at+".allowed_tools", "allowed_tools must be a list of names, or an object with tool_names or read_only")
	}
	asks, err := readApproval(d.RequireApproval)
	if err != nil {
		return nil, api.Refuse(at+".require_approval", "require_approval must be always, never, or an object with always and never, each with tool_names or read_only")
	}
	var served []*mcpServed
	for _, found := range set {
		_, name, _ := strings.Cut(found.Spec().Name, ".")
		decision := policy.Decide(found.Spec().Name)
		if decision == tool.Deny || allowed != nil && !allowed.has(name, found) {
			continue
		}
		served = append(served, &mcpServed{Tool: found, label: d.ServerLabel, name: name, asks: decision == tool.Ask || asks(name, found)})
	}
	return served, nil
}

// source finds the server: one of the settings by its name, or the one at an address that the settings allow.
func (d *mcpDefinition) source(ctx context.Context, servers MCP, at string) (tool.Set, tool.Policy, error) {
	var none tool.Policy
	switch {
	case d.ServerLabel == "" || len(d.ServerLabel) > maxLabel || render.ToolName(d.ServerLabel) != d.ServerLabel:
		return nil, none, api.Refuse(at+".server_label", "server_label must have 1 to %d letters, digits, _ or -", maxLabel)
	case d.ConnectorID != "":
		return nil, none, api.Refuse(at+".connector_id", "connectors are OpenAI's own, and this model is not: name a server by server_url, or one of the settings by server_label")
	case d.ServerURL == "":
		known := slices.IndexFunc(servers.Servers, func(source *mcptool.Source) bool { return source.Name() == d.ServerLabel })
		if known < 0 {
			return nil, none, api.Refuse(at+".server_label", "there is no MCP server %s in the settings (mcp.servers), and no server_url", api.Bounded(d.ServerLabel))
		}
		source := servers.Servers[known]
		if err := source.Err(); err != nil {
			return nil, none, d.notReached(at, err)
		}
		return source.Tools(ctx), servers.Policy, nil
	case servers.Pool == nil || !isBelow(d.ServerURL, servers.URLs):
		return nil, none, api.Refuse(at+".server_url", "MCP servers at this address are not allowed here: the setting gateway.mcp_urls lists the addresses below which they are")
	}
	headers := maps.Clone(d.Headers)
	if d.Authorization != "" {
		if headers == nil {
			headers = map[string]string{}
		}
		headers["Authorization"] = "Bearer " + strings.TrimPrefix(d.Authorization, "Bearer ")
	}
	source, err := servers.Pool.Source(ctx, d.ServerURL, headers)
	if err != nil {
		return nil, none, d.notReached(at, err)
	}
	return source.Tools(ctx), tool.Policy{Otherwise: tool.Allow}, nil
}

// maxLabel bounds the label of a server: the names of its tools begin with it.
const maxLabel = 32

// notReached is the problem of a request whose server did not start, in OpenAI's form.
func (d *mcpDefinition) notReached(at string, err error) error {
	if errors.Is(err, mcptool.ErrPoolFull) {
		return &api.Problem{Status: http.StatusTooManyRequests, Type: api.RateLimit, Code: "too_many_mcp_servers", Param: at, Message: err.Error()}
	}
	return &api.Problem{
		Status: http.StatusFailedDependency, Type: "external_connector_error", Code: "http_error", Param: at,
		Message: fmt.Sprintf("the tools of the MCP server %s could not be listed: %s", api.Bounded(d.ServerLabel), api.Bounded(err.Error())),
	}
}

// isBelow reports whether an address is one of some others, or below one.
func isBelow(address string, others []string) bool {
	asked, err := url.Parse(address)
	if err != nil || asked.User != nil || asked.Fragment != "" || asked.Opaque != "" || asked.RawPath != "" {
		return false
	}
	within := strings.TrimSuffix(asked.Path, "/")
	if within != strings.TrimSuffix(path.Clean("/"+asked.Path), "/") { // with .. or //
		return false
	}
	return slices.ContainsFunc(others, func(other string) bool {
		allowed, err := url.Parse(other)
		if err != nil || allowed.Scheme != asked.Scheme || !strings.EqualFold(allowed.Host, asked.Host) {
			return false
		}
		base := strings.TrimSuffix(allowed.Path, "/")
		return within == base || strings.HasPrefix(within, base+"/")
	})
}

// toolFilter selects tools of a server.
type toolFilter struct {
	ToolNames []string `json:"tool_names"`
	ReadOnly  *bool    `json:"read_only"`
}

func (f *toolFilter) has(name string, found tool.Tool) bool {
	if f.ReadOnly != nil && *f.ReadOnly != tool.IsReadOnly(found) {
		return false
	}
	return f.ToolNames == nil || slices.Contains(f.ToolNames, name)
}

// readToolFilter reads a list of names or a filter; nil for all tools.
func readToolFilter(raw json.RawMessage) (*toolFilter, error) {
	if rawjson.IsNull(raw) {
		return nil, nil //nolint:nilnil // all
	}
	filter := &toolFilter{}
	if json.Unmarshal(raw, &filter.ToolNames) == nil {
		return filter, nil
	}
	return filter, json.Unmarshal(raw, filter)
}

// readApproval reads which calls the client approves: all unless it says otherwise, as at OpenAI.
func readApproval(raw json.RawMessage) (func(name string, found tool.Tool) bool, error) {
	text, isText := rawjson.String(raw)
	switch {
	case rawjson.IsNull(raw) || text == "always":
		return func(string, tool.Tool) bool { return true }, nil
	case text == "never":
		return func(string, tool.Tool) bool { return false }, nil
	case isText:
		return nil, errors.New("unknown")
	}
	var filters struct{ Always, Never *toolFilter }
	if err := json.Unmarshal(raw, &filters); err != nil {
		return nil, err
	}
	return func(name string, found tool.Tool) bool {
		return filters.Always != nil && filters.Always.has(name, found) || filters.Never == nil || !filters.Never.has(name, found)
	}, nil
}

// set are the tools that run without an approval, and specs those whose calls the client approves.
func (m *mcpTools) set() (set tool.Set, specs []continuo.ToolSpec) {
	if m == nil {
		return nil, nil
	}
	for _, name := range slices.Sorted(maps.Keys(m.tools)) {
		if one := m.tools[name]; one.asks {
			specs = append(specs, one.Spec())
		} else {
			set = append(set, one)
		}
	}
	return set, specs
}

// choose replaces the servers in a request's choice of tools by their tools.
func (m *mcpTools) choose(wanted *engine.ClientRequest) error {
	if wanted.Options.Sampling == nil || wanted.Options.Sampling.ToolChoice == nil {
		return nil
	}
	choice := wanted.Options.Sampling.ToolChoice
	var tools []string
	for _, chosen := range choice.Tools {
		label, name, ofServer := strings.Cut(chosen, ".")
		if !ofServer || slices.ContainsFunc(wanted.Tools, func(function continuo.ToolSpec) bool { return function.Name == chosen }) {
			tools = append(tools, chosen)
			continue
		}
		known := len(tools)
		if m != nil {
			for _, id := range slices.Sorted(maps.Keys(m.tools)) {
				if one := m.tools[id]; one.label == label && (name == "" || one.name == name) {
					tools = append(tools, one.Spec().Name)
				}
			}
		}
		if len(tools) == known {
			return api.Refuse("tool_choice", "tool_choice names %s, and the request has no such tool of the type mcp", api.Bounded(chosen))
		}
	}
	choice.Tools = tools
	return nil
}

// serveMCP gives the turn of a request the tools of its MCP servers, and the calls that its client approved.
func (a *responsesAPI) serveMCP(ctx context.Context, q *responseRequest, conversation continuo.Conversation, wanted *engine.ClientRequest) (err error) {
	if q.echo.MCP, err = a.newListings(ctx, conversation, q.mcp); err != nil {
		return err
	}
	wanted.Entries = withEcho(wanted.Entries, q.echo)
	served, asked := q.mcp.set()
	wanted.ServerTools, wanted.Tools = served, slices.Concat(wanted.Tools, asked)
	wanted.Annotate = q.echo.mcpNames().annotate
	wanted.Resolved = func(entries []continuo.Entry) { q.mcp.answered = entries }
	return q.mcp.approve(wanted)
}

// showMCP gives the stream of a response what it needs to show calls of MCP servers: from the log, where an earlier try of
// the request has begun its turn.
func (a *responsesAPI) showMCP(ctx context.Context, q *responseRequest, ref responseRef, stream *responseStream) error {
	echo, entries := q.echo, q.mcp.answered
	if entries == nil {
		found, err := a.find(ctx, ref, true)
		if err != nil {
			return err
		}
		echo, entries = found.echo, found.entries
	}
	stream.mcp, stream.first = echo.mcpNames(), firstMCPItems(ref.conversation, ref.first, echo.MCP, entries)
	return nil
}
