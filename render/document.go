package render

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"strings"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/anthropic"
	"github.com/continuo-log/continuo/internal/wire/openaichat"
)

// documentBlock is an Anthropic document or search result, with the fields that other protocols can
// represent.
type documentBlock struct {
	Title  string          `json:"title"`
	Source json.RawMessage `json:"source"` // an object; a string for a search result
	// Content is the texts of a search result.
	Content json.RawMessage `json:"content"`
}

// documentSource is the source of a document. Content is a string or a list of blocks.
type documentSource struct {
	anthropic.MediaSource
	Content json.RawMessage `json:"content"`
}

// readDocument reads a document block; not ok for any other part.
func readDocument(part continuo.Part) (block documentBlock, source documentSource, ok bool) {
	ok = part.Type == "document" && json.Unmarshal(part.Raw, &block) == nil && json.Unmarshal(block.Source, &source) == nil
	return block, source, ok
}

// documentText returns the text of a text document or a search result; not ok for any other part.
func documentText(part continuo.Part) (string, bool) {
	if part.Type == "search_result" {
		return searchResultText(part)
	}
	block, source, ok := readDocument(part)
	switch {
	case !ok:
		return "", false
	case source.Type == "text":
		return titled(block.Title, source.Data), true
	case source.Type == "content":
		text, ok := blocksText(source.Content)
		return titled(block.Title, text), ok
	}
	return "", false
}

func searchResultText(part continuo.Part) (string, bool) {
	var block documentBlock
	if json.Unmarshal(part.Raw, &block) != nil {
		return "", false
	}
	address, isText := rawjson.String(block.Source)
	text, ok := blocksText(block.Content)
	return titled(block.Title, titled(address, text)), ok && isText
}

func titled(title, text string) string {
	if isBlank(title) {
		return text
	}
	return title + "\n\n" + text
}

// blocksText is the text of a string or of a list of text blocks; not ok when it holds anything else.
func blocksText(content json.RawMessage) (string, bool) {
	if text, ok := rawjson.String(content); ok {
		return text, true
	}
	var blocks []anthropic.TextBlock
	if json.Unmarshal(content, &blocks) != nil || blocks == nil {
		return "", false
	}
	texts := make([]string, len(blocks))
	for i, block := range blocks {
		if block.Type != "text" {
			return "", false
		}
		texts[i] = block.Text
	}
	return strings.Join(texts, "\n\n"), true
}

// openAIFile writes a document whose bytes are in the block as a file part; nil for any other part.
func openAIFile(part continuo.Part) json.RawMessage {
	block, source, ok := readDocument(part)
	if !ok || source.Type != "base64" || source.Data == "" {
		return nil
	}
	mediaType := source.MediaType
	if mediaType == "" {
		mediaType = "application/pdf"
	}
	return rawjson.MustMarshal(openaichat.FilePart{Type: "file", File: openaichat.File{
		Filename: fileName(block.Title, mediaType), FileData: "data:" + mediaType + ";base64," + source.Data,
	}})
}

// fileName returns the name of a document's file: OpenAI derives the file's type from the extension.
func fileName(title, mediaType string) string {
	ending := ".pdf"
	if mediaType != "application/pdf" {
		_, sub, _ := strings.Cut(mediaType, "/")
		ending = "." + sub
	}
	name := strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune(`/\:*?"<>|`, r) {
			return '_'
		}
		return r
	}, strings.TrimSpace(title))
	switch {
	case name == "":
		return "document" + ending
	case strings.HasSuffix(strings.ToLower(name), ending):
		return name
	}
	return name + ending
}

// fileBlock writes a file part as a document; nil when the API does not accept such a file.
func fileBlock(part continuo.Part) json.RawMessage {
	var file openaichat.FilePart
	if json.Unmarshal(part.Raw, &file) != nil {
		return nil
	}
	if text, ok := dataText(file.File.FileData); ok {
		return rawjson.MustMarshal(anthropic.MediaBlock{
			Type: "document", Title: file.File.Filename, Source: anthropic.MediaSource{Type: "text", MediaType: "text/plain", Data: text},
		})
	}
	return sourceBlock("document", file.File.Filename, file.File.FileData)
}

// dataText returns the text of a data URL of a text file; not ok for any other URL, or for an empty text.
func dataText(url string) (string, bool) {
	head, data, found := strings.Cut(strings.TrimPrefix(url, "data:"), ",")
	head, encoded := strings.CutSuffix(head, ";base64")
	kind, _, err := mime.ParseMediaType(head)
	if !found || !encoded || err != nil || !strings.HasPrefix(kind, "text/") {
		return "", false
	}
	text, err := base64.StdEncoding.DecodeString(data)
	if err != nil || !utf8.Valid(text) || isBlank(string(text)) {
		return "", false
	}
	return string(text), true
}

// unsupported is the text that replaces a part which the protocol cannot represent.
func unsupported(part continuo.Part) string {
	address := ""
	if _, source, ok := readDocument(part); ok && source.URL != "" {
		address = "; its address is " + source.URL
	}
	return fmt.Sprintf("[%s: left out, because it cannot be sent here%s]", part.Type, address)
}
