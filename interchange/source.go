package interchange

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/messages"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// source is one conversation in its original form.
type source struct {
	position string
	file     string         // name of the file; "" for none
	name     string         // of the conversation, if its fields have none; "" for none
	list     string         // the field that held the messages; empty for a bare list
	fields   rawjson.Object // the conversation's other fields
	messages []json.RawMessage
}

// listNames are the fields that may hold a conversation's messages.
var listNames = []string{"messages", "conversation"}

// parseSource parses a conversation.
func parseSource(raw []byte) (*source, error) {
	if trimmed := bytes.TrimSpace(raw); len(trimmed) > 0 && trimmed[0] == '[' {
		return parseList(trimmed)
	}
	object, err := parseObject(raw)
	if err != nil {
		return nil, err
	}
	for _, name := range listNames {
		list := object.Get(name)
		if rawjson.IsNull(list) {
			continue
		}
		s := &source{list: name, fields: object.Without(name)}
		if err := json.Unmarshal(list, &s.messages); err != nil {
			return nil, s.named(invalid("field %s must be a list of messages, not %s", name, messages.Kind(list)))
		}
		return s, nil
	}
	hint := ""
	if object.Get("role") != nil {
		hint = ": it looks like one message; put the messages of a conversation into one list"
	}
	return nil, invalid("the conversation has no messages field%s", hint)
}

func parseList(raw []byte) (*source, error) {
	s := &source{}
	if err := json.Unmarshal(raw, &s.messages); err != nil {
		if wrong, ok := rawjson.AsWrongType(err); ok {
			return nil, invalid("messages must be a JSON list, not %s", wrong.Got)
		}
		return nil, invalid("messages must be a JSON list: %s", rawjson.Explain(err))
	}
	return s, nil
}

// named adds the conversation's id to an error, if it has one.
func (s *source) named(err error) error {
	if id := s.text("id"); id != "" {
		return fmt.Errorf("conversation %q: %w", id, err)
	}
	return err
}

// text returns a string field of the conversation, empty if there is none.
func (s *source) text(field string) string {
	text, _ := rawjson.String(s.fields.Get(field))
	return text
}

// document reads the conversation into entries that a log accepts.
func (s *source) document(o Options) (Document, error) {
	document := Document{Source: s.position, File: s.file}
	report := &repairs{}
	messages, err := s.objects(report)
	if err != nil {
		return document, s.named(err)
	}
	document.Format = cmp.Or(o.Format, detect(s, messages))
	if document.Format == FormatContinuo {
		return document, s.named(invalid("this is not an export of the format continuo: such a file begins with a line that has the field %q", ownKey))
	}
	speech := dialectOf(document.Format)
	drafts, err := decode(speech, messages, report)
	if err != nil {
		return document, s.named(err)
	}
	drafts = pair(drafts, report)
	fillTimes(drafts)
	document.Entries, document.raw = settle(speech, messages, drafts), s.messages
	if document.Conversation, err = s.conversation(document.Format); err != nil {
		return document, s.named(err)
	}
	document.Conversation.Key = s.identify(document.Format)
	if id := s.id(); id != document.Conversation.Key {
		document.SourceID = id
	}
	document.Repairs = report.sorted()
	return document, nil
}

// objects parses the messages, with invalid text replaced.
func (s *source) objects(report *repairs) ([]rawjson.Object, error) {
	for i := range s.fields {
		s.fields[i].Value = report.clean(-1, s.fields[i].Value)
		s.fields[i].Key = string(validUTF8([]byte(s.fields[i].Key)))
	}
	messages := make([]rawjson.Object, len(s.messages))
	for i, raw := range s.messages {
		object, err := rawjson.ParseObject(report.clean(i, raw))
		if errors.Is(err, rawjson.ErrNotObject) {
			err = notObject(raw)
		}
		if err != nil {
			return nil, invalid("message %d: %v", i, err)
		}
		messages[i] = object
	}
	return messages, nil
}

// decode reads each message into drafts.
func decode(speech dialect, messages []rawjson.Object, report *repairs) ([]*draft, error) {
	var drafts []*draft
	for i, message := range messages {
		report.index = i
		made, err := speech.decode(message, report)
		if err != nil {
			return nil, invalid("message %d: %v", i, err)
		}
		created := createdAt(message)
		for _, d := range made {
			d.record.Index, d.imported = i, true
			d.entry.CreatedAt = created
			for _, rule := range report.rules(i) {
				d.mark(rule)
			}
			drafts = append(drafts, d)
		}
	}
	return drafts, nil
}

// origin is a conversation's source as recorded in its metadata.
type origin struct {
	Format string          `json:"format"`
	List   string          `json:"list,omitempty"`
	Fields json.RawMessage `json:"fields,omitempty"`
}

// conversation returns the conversation's own fields.
func (s *source) conversation(format string) (continuo.Conversation, error) {
	metadata, err := rawjson.Marshal(map[string]origin{"source": {Format: format, List: s.list, Fields: s.fields.Raw()}})
	if err != nil {
		return continuo.Conversation{}, fmt.Errorf("write the conversation's fields: %w", err)
	}
	title := s.text("title")
	if title == "" {
		title = s.text("id")
	}
	conversation := continuo.Conversation{Title: title, Metadata: metadata, CreatedAt: timeIn(s.fields, "createdAt", "created_at"), UpdatedAt: timeIn(s.fields, "updatedAt", "updated_at")}
	conversation.UserID = s.text("user_id")
	if err := continuo.CheckUserID(conversation.UserID); err != nil {
		return continuo.Conversation{}, fmt.Errorf("%w: correct it in the source, or take it out there", err)
	}
	for _, field := range []string{"activeType", "activeMode", "active_mode"} {
		if mode := continuo.Mode(s.text(field)); knownMode(mode) {
			conversation.ActiveMode = mode
		}
	}
	return conversation, nil
}

func knownMode(mode continuo.Mode) bool {
	return slices.Contains([]continuo.Mode{continuo.ModeChat, continuo.ModeAgent, continuo.ModeRun}, mode)
}

func notObject(raw json.RawMessage) error {
	return fmt.Errorf("must be an object, not %s", messages.Kind(raw))
}
