package upstream

import (
	"bytes"
	"cmp"
	"encoding/json"
	"html"
	"regexp"
	"strings"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// message is the content of an error's body.
type message struct {
	text   string
	codes  []string // types and codes
	status int      // a code that is an HTTP status, 0 for none
}

// parseMessage reads the bodies that upstreams send with an error:
//
//	{"error": {"message", "type", "code", …}}   OpenAI, Anthropic, Gemini, OpenRouter
//	{"error": "text"}                           Ollama and others
//	{"message", "type", "code"}                 vLLM, Mistral, gateways
//	{"detail": "text" or [{"msg", …}]}          FastAPI
//	{"errors": [{"message"}, …]}                Cloudflare
//	[{"error": …}]                              Gemini's streams
//
// The text is empty when the body is none of them.
func parseMessage(body []byte) message {
	body = bytes.TrimSpace(body)
	var list []json.RawMessage
	if bytes.HasPrefix(body, []byte("[")) && json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	object, err := rawjson.ParseObject(body)
	if err != nil {
		return message{}
	}
	if inner := object.Get("error"); !rawjson.IsNull(inner) {
		return parseInner(inner, object)
	}
	if text := firstOf(object.Get("errors")); text != "" {
		return message{text: text}
	}
	if detail := object.Get("detail"); detail != nil {
		if text, ok := rawjson.String(detail); ok {
			return message{text: text}
		}
		return message{text: firstOf(detail)}
	}
	if text, ok := rawjson.String(object.Get("message")); ok {
		parsed := message{text: text}
		parsed.addCodes(object)
		return parsed
	}
	return message{}
}

func parseInner(inner json.RawMessage, outer rawjson.Object) message {
	if text, ok := rawjson.String(inner); ok {
		parsed := message{text: text}
		parsed.addCodes(outer)
		return parsed
	}
	object, err := rawjson.ParseObject(inner)
	if err != nil {
		return message{text: string(inner)}
	}
	var parsed message
	parsed.text, _ = rawjson.String(object.Get("message"))
	parsed.addCodes(object)
	if nested, err := rawjson.ParseObject(object.Get("innererror")); err == nil {
		parsed.addCodes(nested) // Azure's content filter
	}
	if metadata, err := rawjson.ParseObject(object.Get("metadata")); err == nil {
		parsed.addMetadata(metadata)
	}
	return parsed
}

// Parts of a page that are not shown, its title, and what is between its texts.
var (
	pageHead  = regexp.MustCompile(`(?is)<head\b.*?</head>|<style\b.*?</style>|<script\b.*?</script>|<!--.*?-->`)
	pageTitle = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)
	pageTag   = regexp.MustCompile(`(?s)<[^>]*>`)
)

// pageText is what a page says to people, as proxies send one with an error. Any other text stays as it is.
func pageText(body string) string {
	if !strings.HasPrefix(strings.TrimSpace(body), "<") {
		return body
	}
	text := strings.TrimSpace(html.UnescapeString(pageTag.ReplaceAllString(pageHead.ReplaceAllString(body, " "), " ")))
	if title := pageTitle.FindStringSubmatch(body); text == "" && title != nil {
		text = strings.TrimSpace(html.UnescapeString(title[1]))
	}
	return cmp.Or(text, body)
}

// addCodes adds types and codes. A numeric code of an HTTP error is the status.
func (m *message) addCodes(object rawjson.Object) {
	for _, key := range []string{"type", "code", "status", "error_type"} {
		value := object.Get(key)
		var number int
		if code, ok := rawjson.String(value); ok {
			m.codes = append(m.codes, code)
		} else if json.Unmarshal(value, &number) == nil && number >= 400 && number <= 599 {
			m.status = number
		}
	}
}

// addMetadata adds OpenRouter's information about the provider behind it.
func (m *message) addMetadata(metadata rawjson.Object) {
	if raw, ok := rawjson.String(metadata.Get("raw")); ok && !strings.Contains(m.text, raw) {
		m.text += ": " + raw
	}
	if metadata.Get("flagged_input") != nil {
		m.codes = append(m.codes, "moderation")
	}
}

// firstOf returns the message of a list's first element.
func firstOf(list json.RawMessage) string {
	var elements []struct {
		Message string `json:"message"`
		Msg     string `json:"msg"`
	}
	if json.Unmarshal(list, &elements) != nil || len(elements) == 0 {
		return ""
	}
	return elements[0].Message + elements[0].Msg
}
