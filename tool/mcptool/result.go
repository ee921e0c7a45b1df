package mcptool

import (
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/continuo-log/continuo/tool"
)

// resultOf writes a server's result as text: texts unchanged, other content as a line that names it.
func resultOf(given *mcp.CallToolResult, name string) tool.Result {
	var parts []string
	texts := 0
	for _, content := range given.Content {
		text, readable := contentText(content)
		if text == "" {
			continue
		}
		if readable {
			texts++
		}
		parts = append(parts, text)
	}
	if texts == 0 && given.StructuredContent != nil {
		if text, err := marshal(given.StructuredContent, "  "); err == nil {
			parts = append(parts, string(text))
		}
	}
	result := tool.Result{Content: strings.ToValidUTF8(strings.Join(parts, "\n\n"), "\uFFFD"), Failed: given.IsError}
	switch {
	case result.Failed && result.Content == "":
		result.Content = "error: the tool failed without saying why"
	case result.Content == "":
		result.Content = "(no output)"
	}
	if !result.Failed {
		result.Outcome = "Called " + name
	}
	return result
}

// contentText writes one piece of content, and reports whether it is text rather than the name of something.
func contentText(content mcp.Content) (text string, readable bool) {
	switch c := content.(type) {
	case *mcp.TextContent:
		return c.Text, true
	case *mcp.ImageContent:
		return notShown("image", c.MIMEType, len(c.Data)), false
	case *mcp.AudioContent:
		return notShown("audio", c.MIMEType, len(c.Data)), false
	case *mcp.ResourceLink:
		return linkLine(c), false
	case *mcp.EmbeddedResource:
		return resourceText(c.Resource)
	}
	return "[content of a kind that cannot be shown]", false
}

func notShown(kind, mime string, size int) string {
	if mime != "" {
		mime = line(mime) + ", "
	}
	return fmt.Sprintf("[%s, %s%d bytes, not shown]", kind, mime, size)
}

func resourceText(resource *mcp.ResourceContents) (text string, readable bool) {
	switch {
	case resource == nil:
		return "", false
	case resource.Text != "":
		return resource.Text, true
	}
	return notShown("resource "+line(resource.URI), resource.MIMEType, len(resource.Blob)), false
}

func linkLine(link *mcp.ResourceLink) string {
	about := []string{"[resource", line(link.URI)}
	for _, more := range []string{link.Title, link.Name} {
		if more != "" {
			about = append(about, fmt.Sprintf("%q", line(more)))
			break
		}
	}
	if link.MIMEType != "" {
		about = append(about, line(link.MIMEType))
	}
	if link.Size != nil {
		about = append(about, fmt.Sprintf("%d bytes", *link.Size))
	}
	text := strings.Join(about, " ") + "]"
	if link.Description != "" {
		text += " " + line(link.Description)
	}
	return text
}

// line replaces line ends in foreign text, so that it stays on one line.
func line(text string) string {
	return cut(strings.Join(strings.Fields(text), " "), 1<<10)
}
