package render

import (
	"encoding/json"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/openaichat"
)

// noAnswer is the assistant message that strict templates require between tool results and a user message.
const noAnswer = "(No answer followed.)"

// Arrange puts rendered chat completions messages, the envelope's system messages among them, in an order of
// roles that a model accepts. For [continuo.RolesStrict] (rule C12) one system message comes first and holds
// those that the list begins with; later ones become user messages, in <system> tags; adjacent messages of
// one role are merged; the first message is the user's, and an assistant message separates tool results
// from a user message. [continuo.RolesNoSystem] is the same, but the system message is prepended to the first
// user message. For any other value the messages are unchanged.
//
// Further messages only append bytes, except if the first of them is merged into the last message.
func Arrange(messages []json.RawMessage, roles continuo.Roles) ([]json.RawMessage, error) {
	if roles != continuo.RolesStrict && roles != continuo.RolesNoSystem {
		return messages, nil
	}
	var a arranger
	for _, raw := range messages {
		message, err := rawjson.ParseObject(raw)
		if err != nil {
			return nil, err
		}
		a.add(message)
	}
	return a.finish(roles == continuo.RolesNoSystem)
}

// arranger collects messages in a strict order of roles.
type arranger struct {
	system []json.RawMessage // contents of the leading system messages
	out    []rawjson.Object
}

// role is the role of the newest message, "" when there is none.
func (a *arranger) role() string {
	if len(a.out) == 0 {
		return ""
	}
	return stringOf(a.out[len(a.out)-1].Get("role"))
}

func (a *arranger) add(message rawjson.Object) {
	role := stringOf(message.Get("role"))
	if role == "system" || role == "developer" {
		if len(a.out) == 0 {
			a.system = append(a.system, message.Get("content"))
			return
		}
		role = "user"
		message = messageOf(role, inSystemTags(textOfContents([]json.RawMessage{message.Get("content")})))
	}
	before := a.role()
	switch {
	case role == "assistant" && before == "":
		a.out = append(a.out, messageOf("user", LeadIn))
	case role == "user" && before == "tool":
		a.out = append(a.out, messageOf("assistant", noAnswer))
	case role == before && role != "tool":
		join(&a.out[len(a.out)-1], message)
		return
	}
	a.out = append(a.out, message)
}

// finish returns the messages, the system message first.
func (a *arranger) finish(inUser bool) (arranged []json.RawMessage, err error) {
	if len(a.out) == 0 {
		a.out = append(a.out, messageOf("user", LeadIn))
	}
	if len(a.system) > 0 {
		system := rawjson.MustMarshal(textOfContents(a.system))
		if inUser {
			a.out[0].Set("content", joinContents(system, a.out[0].Get("content")))
		} else {
			message := messageOf("system", "")
			message.Set("content", system)
			a.out = append([]rawjson.Object{message}, a.out...)
		}
	}
	for _, message := range a.out {
		raw, err := rawjson.Marshal(message)
		if err != nil {
			return nil, err
		}
		arranged = append(arranged, raw)
	}
	return arranged, nil
}

// messageOf is a message with a text.
func messageOf(role, text string) rawjson.Object {
	message, _ := rawjson.ParseObject(rawjson.MustMarshal(openaichat.InputMessage{Role: role, Content: rawjson.MustMarshal(text)}))
	return message
}

// join merges a message into the one of the same role before it. A name stays only if both have the same.
func join(into *rawjson.Object, message rawjson.Object) {
	content := joinContents(into.Get("content"), message.Get("content"))
	if stringOf(into.Get("name")) != stringOf(message.Get("name")) {
		*into, message = into.Without("name"), message.Without("name")
	}
	for _, member := range message {
		into.Set(member.Key, member.Value)
	}
	into.Set("content", content)
}

// joinContents joins two contents: texts separated by a blank line, anything else as lists of parts.
func joinContents(a, b json.RawMessage) json.RawMessage {
	if isNothing(a) {
		return b
	}
	if isNothing(b) {
		return a
	}
	first, isText := rawjson.String(a)
	second, areTexts := rawjson.String(b)
	if isText && areTexts {
		return rawjson.MustMarshal(first + "\n\n" + second)
	}
	parts := append(partsOf(a), partsOf(b)...)
	for i, raw := range parts {
		if part, _ := rawjson.ParseObject(raw); stringOf(part.Get("type")) == "refusal" { // it may only be alone
			parts[i] = openAIText(stringOf(part.Get("refusal")))
		}
	}
	return rawjson.MustMarshal(parts)
}

// isNothing reports whether content is null or an empty text.
func isNothing(content json.RawMessage) bool {
	text, isText := rawjson.String(content)
	return rawjson.IsNull(content) || isText && text == ""
}

// partsOf returns content as a list of parts.
func partsOf(content json.RawMessage) (parts []json.RawMessage) {
	if text, ok := rawjson.String(content); ok {
		return []json.RawMessage{openAIText(text)}
	}
	if json.Unmarshal(content, &parts) != nil {
		return []json.RawMessage{openAIText(string(content))}
	}
	return parts
}

// textOfContents returns the texts of several contents, separated by blank lines. System messages have only
// texts.
func textOfContents(contents []json.RawMessage) string {
	var texts []string
	for _, content := range contents {
		for _, part := range partsOf(content) {
			object, _ := rawjson.ParseObject(part)
			if text := stringOf(object.Get("text")); text != "" {
				texts = append(texts, text)
			}
		}
	}
	return strings.Join(texts, "\n\n")
}
