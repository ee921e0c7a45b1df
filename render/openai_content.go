package render

import (
	"encoding/json"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/anthropic"
	"github.com/continuo-log/continuo/internal/wire/openaichat"
	"github.com/continuo-log/continuo/window"
)

// appendOpenAIContent writes content in the form that a message of its role allows: a string as a string,
// supported parts unchanged, others as text that names them, null as null. Images of a tool result are added to
// media, which is nil for the other roles.
func appendOpenAIContent(dst []byte, m *window.Message, media *[]json.RawMessage) ([]byte, error) {
	switch {
	case m.Content.IsNull():
		return append(dst, "null"...), nil
	case m.Content.IsText():
		return rawjson.AppendString(dst, m.Content.String()), nil
	}
	var parts []json.RawMessage
	for _, part := range m.Content.Parts() {
		raw, ok := openAIPart(m, part, media)
		switch {
		case !ok:
			parts = append(parts, openAIText(unsupported(part)))
		case raw != nil:
			parts = append(parts, raw)
		}
	}
	if len(parts) == 0 {
		return append(dst, "null"...), nil
	}
	return appendList(dst, parts)
}

// appendList writes a list of values that are kept as received.
func appendList(dst []byte, values []json.RawMessage) (_ []byte, err error) {
	dst = append(dst, '[')
	for i, value := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = rawjson.AppendCompact(dst, value); err != nil {
			return dst, err
		}
	}
	return append(dst, ']'), nil
}

// openAIPart writes one part, nil for thinking, which is left out. It returns not ok for a part that the
// message cannot hold.
func openAIPart(m *window.Message, part continuo.Part, media *[]json.RawMessage) (raw json.RawMessage, ok bool) {
	switch {
	case part.Type == "text":
		return part.Raw, true
	case part.Type == "refusal" && m.Role == continuo.Assistant && len(m.Content.Parts()) == 1:
		return part.Raw, true
	case part.Type == "refusal":
		return openAIText(part.Text), true
	case m.Role == continuo.Assistant && isThinking(part.Type):
		return nil, true
	}
	if text, ok := documentText(part); ok {
		return openAIText(text), true
	}
	found := openAIMedia(part)
	switch {
	case found == nil:
		return nil, false
	case m.Role == continuo.User:
		return found, true
	case media != nil:
		return openAIText(addMedia(media, part.Type, found)), true
	}
	return nil, false
}

// addMedia adds what a tool returned to the user message that follows the results. It returns the text that
// replaces it.
func addMedia(media *[]json.RawMessage, partType string, raw json.RawMessage) string {
	if len(*media) == 0 {
		*media = append(*media, openAIText("Images and files that the tools returned, in order:"))
	}
	*media = append(*media, raw)
	return fmt.Sprintf("[%s: number %d of the message after the tool results]", partType, len(*media)-1)
}

// openAIMedia writes an image or a file of either protocol as a part of a user message; nil for any other
// part.
func openAIMedia(part continuo.Part) json.RawMessage {
	if isOpenAIUserPart(part.Type) {
		return part.Raw
	}
	if image := openAIImage(part); image != nil {
		return image
	}
	return openAIFile(part)
}

func openAIText(text string) json.RawMessage {
	return rawjson.MustMarshal(openaichat.TextPart{Type: "text", Text: text})
}

// isOpenAIUserPart reports whether chat completions accepts a type of part in a user message. The two video
// and audio URL types are those of vLLM and OpenRouter; the first three are OpenAI's own.
func isOpenAIUserPart(partType string) bool {
	switch partType {
	case "image_url", "input_audio", "file", "video_url", "audio_url":
		return true
	}
	return false
}

// isThinking reports whether a part is a model's thinking, which is sent back only as vendor data.
func isThinking(partType string) bool {
	switch partType {
	case "thinking", "redacted_thinking", "reasoning":
		return true
	}
	return false
}

// openAIImage writes an Anthropic image block in OpenAI's form; nil for any other part.
func openAIImage(part continuo.Part) json.RawMessage {
	var block anthropic.MediaBlock
	if part.Type != "image" || json.Unmarshal(part.Raw, &block) != nil {
		return nil
	}
	url := block.Source.URL
	if block.Source.Type == "base64" {
		url = "data:" + block.Source.MediaType + ";base64," + block.Source.Data
	}
	if url == "" {
		return nil
	}
	return rawjson.MustMarshal(openaichat.ImagePart{Type: "image_url", ImageURL: openaichat.ImageURL{URL: url}})
}
