package messages

import (
	"encoding/json"
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// readContent reads a message's content. An element of a list that is no part is converted to one, with a
// repair.
func readContent(raw json.RawMessage, m *Message) error {
	if raw == nil {
		return nil
	}
	var content continuo.Content
	if content.UnmarshalJSON(raw) == nil {
		m.Entry.Content = content
		return nil
	}
	var elements []json.RawMessage
	if json.Unmarshal(raw, &elements) != nil {
		return fmt.Errorf("field content must be a string, null or a list of parts, not %s", Kind(raw))
	}
	parts, changed := make([]continuo.Part, len(elements)), 0
	for i, element := range elements {
		part, ok, err := readPart(element)
		if err != nil {
			return fmt.Errorf("field content, part %d, %w", i, err)
		}
		if !ok {
			changed++
		}
		parts[i] = part
	}
	m.Entry.Content = continuo.Parts(parts...)
	m.repair(RuleBadContent, "%d of the content's parts had no type or no text and got one.", changed)
	return nil
}

// readPart reads one part; ok is false when it had to be changed.
func readPart(raw json.RawMessage) (part continuo.Part, ok bool, err error) {
	if part, ok := onePart(raw); ok {
		return part, true, nil
	}
	if text, ok := rawjson.String(raw); ok {
		return continuo.TextPart(text), false, nil
	}
	object, err := rawjson.ParseObject(raw)
	if err != nil {
		return part, false, fmt.Errorf("must be an object or a string, not %s", Kind(raw))
	}
	if text, ok := partText(object.Get("text")); ok {
		return continuo.TextPart(text), false, nil
	}
	if part, ok := onePart(rawjson.Object{{Key: "type", Value: json.RawMessage(`"unknown"`)}, {Key: "value", Value: raw}}.Raw()); ok {
		return part, false, nil
	}
	return part, false, fmt.Errorf("cannot be read")
}

// onePart reads a part in the form in which the log reads it from its store.
func onePart(raw json.RawMessage) (continuo.Part, bool) {
	var content continuo.Content
	list := append(append([]byte{'['}, raw...), ']')
	if content.UnmarshalJSON(list) != nil || len(content.Parts()) != 1 {
		return continuo.Part{}, false
	}
	return content.Parts()[0], true
}

// partText reads the text of a part: a string, or an object that holds it as its value.
func partText(raw json.RawMessage) (string, bool) {
	if object, err := rawjson.ParseObject(raw); err == nil {
		raw = object.Get("value")
	}
	return rawjson.String(raw)
}

// complete adds the content that the entry's role requires.
func complete(m *Message, message rawjson.Object) {
	e := &m.Entry
	switch {
	case e.Role == continuo.Assistant:
		completeAssistant(m, message)
	case e.Content.IsNull(), e.Content.IsParts() && len(e.Content.Parts()) == 0:
		e.Content = continuo.Text("")
		m.repair(continuo.RuleNullContent, "The content was null, missing or an empty list and became an empty text.")
	}
}

// completeAssistant finds the text of an assistant message without content: a refusal or a transcript of
// speech.
func completeAssistant(m *Message, message rawjson.Object) {
	e := &m.Entry
	if refusal, _ := rawjson.String(message.Get("refusal")); refusal != "" && e.Content.IsEmpty() {
		raw := rawjson.MustMarshal(map[string]string{"type": "refusal", "refusal": refusal})
		e.Content = continuo.Parts(continuo.Part{Type: "refusal", Text: refusal, Raw: raw})
		return
	}
	if !e.Content.IsNull() {
		return
	}
	if audio, err := rawjson.ParseObject(message.Get("audio")); err == nil {
		transcript, _ := rawjson.String(audio.Get("transcript"))
		e.Content = continuo.Text(transcript)
		return
	}
	if len(e.ToolCalls) == 0 && e.Reasoning == nil {
		m.repair(continuo.RuleEmptyAssistant, "The assistant's message is empty: it was kept, but hidden.")
		e.Hidden, m.Hidden = true, true
	}
}
