package render

import (
	"encoding/json"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/anthropic"
	"github.com/continuo-log/continuo/internal/wire/openaichat"
)

// openAIContent writes content as a message of its role can have it: a string as a string, parts that the
// role knows as they came, others as text that names them, null as null. Images of a tool result go to
// media, which is nil for the other roles.
func openAIContent(m *continuo.Message, media *[]json.RawMessage) (json.RawMessage, error) {
	switch {
	case m.Content.IsNull():
		return json.RawMessage("null"), nil
	case m.Content.IsText():
		return rawjson.Marshal(m.Content.String())
	}
	var parts []json.RawMessage
	for _, part := range m.Content.Parts() {
		if raw := openAIPart(m, part, media); raw != nil {
			parts = append(parts, raw)
		}
	}
	if len(parts) == 0 {
		return json.RawMessage("null"), nil
	}
	return rawjson.Marshal(parts)
}

// openAIPart writes one part, nil for one that is left out.
func openAIPart(m *continuo.Message, part continuo.Part, media *[]json.RawMessage) json.RawMessage {
	switch {
	case part.Type == "text":
		return part.Raw
	case part.Type == "refusal" && m.Role == continuo.Assistant && len(m.Content.Parts()) == 1:
		return part.Raw
	case part.Type == "refusal":
		return openAIText(part.Text)
	case m.Role == continuo.Assistant && isThinking(part.Type):
		return nil
	case m.Role == continuo.User && isOpenAIUserPart(part.Type):
		return part.Raw
	}
	image := openAIImage(part)
	switch {
	case image != nil && m.Role == continuo.User:
		return image
	case image != nil && media != nil:
		if len(*media) == 0 {
			*media = append(*media, openAIText("Images that the tools returned, in order:"))
		}
		*media = append(*media, image)
		return openAIText(fmt.Sprintf("[%s: image %d of the message after the tool results]", part.Type, len(*media)-1))
	default:
		return openAIText(unsupported(part.Type))
	}
}

// unsupported is the text that stands for a part which the protocol has no place for.
func unsupported(partType string) string {
	return fmt.Sprintf("[%s: left out, because it cannot be sent here]", partType)
}

func openAIText(text string) json.RawMessage {
	return rawjson.MustMarshal(openaichat.TextPart{Type: "text", Text: text})
}

// isOpenAIUserPart reports whether chat completions knows a part of a user message. The two video and
// audio address kinds are vLLM's and OpenRouter's; OpenAI's own are the first three.
func isOpenAIUserPart(partType string) bool {
	switch partType {
	case "image_url", "input_audio", "file", "video_url", "audio_url":
		return true
	}
	return false
}

// isThinking reports whether a part is a model's thinking, which goes back through vendor data only.
func isThinking(partType string) bool {
	switch partType {
	case "thinking", "redacted_thinking", "reasoning":
		return true
	}
	return false
}

// openAIImage writes an image part of either protocol as OpenAI has it; nil when the part is no image.
func openAIImage(part continuo.Part) json.RawMessage {
	if part.Type == "image_url" {
		return part.Raw
	}
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
