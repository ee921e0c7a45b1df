package mcptool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/render"
)

// listedTool is a tool in the server's list, checked and shortened.
type listedTool struct {
	spec continuo.ToolSpec
	name string // the server's own name of it
	// repeatable says that a call may be made twice: the tool is read-only or idempotent.
	repeatable, readOnly bool
}

// Bounds of a list of tools, so that no server fills the memory or every request to a model.
const (
	maxPages       = 200
	maxTools       = 1000
	maxToolName    = 128      // bytes
	maxDescription = 4 << 10  // bytes
	maxSchema      = 64 << 10 // bytes
	maxListBytes   = 4 << 20  // of all descriptions and schemas together
)

// list reads the server's list of tools, within the start timeout.
func (s *session) list() error {
	ctx, cancel := context.WithTimeout(s.ctx, s.options.StartTimeout)
	defer cancel()
	listed, err := s.pages(ctx)
	switch {
	case err != nil && s.ctx.Err() != nil:
		return fmt.Errorf("list its tools: %w", context.Cause(s.ctx))
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("list its tools: it did not answer within %v", s.options.StartTimeout)
	case err != nil && s.toolless(err):
		listed = nil
	case err != nil:
		return fmt.Errorf("list its tools: %w", s.why(err))
	}
	s.tools = s.choose(listed)
	return nil
}

// toolless reports whether a server that refuses to list tools never declared to have any.
func (s *session) toolless(err error) bool {
	about := s.client.InitializeResult()
	return refusalOf(err) != nil && (about == nil || about.Capabilities == nil || about.Capabilities.Tools == nil)
}

// pages reads the list page by page.
func (s *session) pages(ctx context.Context) ([]*mcp.Tool, error) {
	var listed []*mcp.Tool
	cursor := ""
	for range maxPages {
		page, err := s.client.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, err
		}
		listed = append(listed, page.Tools...)
		if page.NextCursor == "" || page.NextCursor == cursor {
			return listed, nil
		}
		if len(listed) > maxTools {
			break
		}
		cursor = page.NextCursor
	}
	s.options.Logger.Warn("the MCP server's list of tools has too many pages; the rest is left out", "read", len(listed))
	return listed, nil
}

// choose makes the tools that are offered, sorted by name so that requests do not depend on the server's
// order.
func (s *session) choose(listed []*mcp.Tool) []listedTool {
	slices.SortStableFunc(listed, func(a, b *mcp.Tool) int { return cmp.Compare(a.Name, b.Name) })
	var tools []listedTool
	taken := map[string]bool{}
	size := 0
	for _, one := range listed {
		made, err := s.listed(one)
		size += len(made.spec.Description) + len(made.spec.Parameters)
		rendered := render.ToolName(made.spec.Name)
		switch {
		case err != nil:
		case taken[rendered]:
			err = errors.New("another tool has the same name for models")
		case len(tools) == maxTools:
			err = fmt.Errorf("there are more than %d tools", maxTools)
		case size > maxListBytes:
			err = fmt.Errorf("descriptions and schemas have more than %d bytes together", maxListBytes)
		}
		if err != nil {
			s.options.Logger.Warn("a tool of the MCP server is left out", "tool", cut(one.Name, maxToolName), "reason", err)
			continue
		}
		taken[rendered] = true
		tools = append(tools, made)
	}
	return tools
}

// listed checks and shortens one tool.
func (s *session) listed(one *mcp.Tool) (listedTool, error) {
	if err := checkName(one.Name); err != nil {
		return listedTool{}, err
	}
	schema, err := schemaOf(one.InputSchema)
	if err != nil {
		return listedTool{}, err
	}
	made := listedTool{name: one.Name, spec: continuo.ToolSpec{
		Name: s.options.Name + "." + one.Name, Description: cut(cmp.Or(one.Description, one.Title), maxDescription), Parameters: schema,
	}}
	if hints := one.Annotations; hints != nil {
		made.repeatable, made.readOnly = hints.ReadOnlyHint || hints.IdempotentHint, hints.ReadOnlyHint
	}
	return made, nil
}

func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("it has no name")
	case len(name) > maxToolName:
		return fmt.Errorf("its name has %d bytes, more than %d", len(name), maxToolName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("its name has characters that cannot be seen")
	}
	return nil
}

// schemaOf writes an input schema with sorted keys. Models need an object; without a schema, any arguments
// are allowed.
func schemaOf(given any) (json.RawMessage, error) {
	if given == nil {
		return json.RawMessage(`{"type":"object","properties":{}}`), nil
	}
	schema, ok := given.(map[string]any)
	if !ok {
		return nil, errors.New("its input schema is no object")
	}
	switch kind := schema["type"]; kind {
	case "object":
	case nil:
		schema["type"] = "object"
	default:
		return nil, fmt.Errorf("its input schema describes something else than an object: %.40v", kind)
	}
	text, err := marshal(schema, "")
	if err != nil {
		return nil, fmt.Errorf("its input schema: %w", err)
	}
	if len(text) > maxSchema {
		return nil, fmt.Errorf("its input schema has %d bytes, more than %d", len(text), maxSchema)
	}
	return text, nil
}

// marshal writes JSON without escapes for HTML, which models would have to read.
func marshal(value any, indent string) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// cut returns valid UTF-8 of at most limit bytes; a longer text is cut and ends with a mark.
func cut(text string, limit int) string {
	const mark = " … (cut)"
	long := len(text) > limit
	if long {
		text = text[:limit-len(mark)]
		for len(text) > 0 {
			if last, size := utf8.DecodeLastRuneInString(text); last != utf8.RuneError || size != 1 {
				break
			}
			text = text[:len(text)-1]
		}
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	if long {
		text = cutInvalid(text, limit-len(mark)) + mark
	}
	return text
}

// cutInvalid cuts a text again that the replacement of invalid bytes has lengthened.
func cutInvalid(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}
