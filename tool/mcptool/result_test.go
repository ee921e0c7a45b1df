package mcptool

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestResults(t *testing.T) {
	size := int64(12)
	for _, c := range []struct {
		name    string
		given   mcp.CallToolResult
		want    string
		failing bool
	}{
		{"texts", *texts("one", "two"), "one\n\ntwo", false},
		{"nothing", mcp.CallToolResult{}, "(no output)", false},
		{"a failure without words", mcp.CallToolResult{IsError: true}, "error: the tool failed without saying why", true},
		{"structure", mcp.CallToolResult{StructuredContent: map[string]any{"b": "<&>", "a": []any{1.5}}}, "{\n  \"a\": [\n    1.5\n  ],\n  \"b\": \"<&>\"\n}", false},
		{"structure beside text", mcp.CallToolResult{Content: texts("said").Content, StructuredContent: map[string]any{"a": 1}}, "said", false},
		{"structure beside an image", mcp.CallToolResult{Content: []mcp.Content{&mcp.ImageContent{Data: []byte("abc")}}, StructuredContent: true}, "[image, 3 bytes, not shown]\n\ntrue", false},
		{"invalid", *texts("a\xffb"), "a\uFFFDb", false},
		{"media", mcp.CallToolResult{Content: []mcp.Content{
			&mcp.ImageContent{MIMEType: "image/png\n\nforged", Data: []byte("1234")}, &mcp.AudioContent{MIMEType: "audio/wav", Data: []byte("12")},
		}}, "[image, image/png forged, 4 bytes, not shown]\n\n[audio, audio/wav, 2 bytes, not shown]", false},
		{"resources", mcp.CallToolResult{Content: []mcp.Content{
			&mcp.ResourceLink{URI: "file:///a b", Name: "n", MIMEType: "text/plain", Size: &size, Description: "two\nlines"},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "x:1", Text: "inside"}},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "x:2", MIMEType: "application/pdf", Blob: []byte("12345")}},
			&mcp.EmbeddedResource{},
		}}, "[resource file:///a b \"n\" text/plain 12 bytes] two lines\n\ninside\n\n[resource x:2, application/pdf, 5 bytes, not shown]", false},
	} {
		result := resultOf(&c.given, "srv.t")
		if result.Content != c.want || result.Failed != c.failing {
			t.Errorf("%s: failed %v\n got %q\nwant %q", c.name, result.Failed, result.Content, c.want)
		}
	}
}

func TestCut(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("é", 50), strings.Repeat("\xff", 100), strings.Repeat("a", 63) + "日本", strings.Repeat("a", 64)} {
		got := cut(text, 64)
		if len(text) <= 64 && utf8.ValidString(text) && got != text {
			t.Errorf("%q became %q", text, got)
		}
		if len(text) > 64 && (len(got) > 64 || !utf8.ValidString(got) || !strings.HasSuffix(got, " … (cut)")) {
			t.Errorf("%q became %q of %d bytes", text, got, len(got))
		}
	}
}
