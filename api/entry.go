package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

func (s *Service) entryOperations() []Operation {
	const one = "/api/conversations/{id}"
	const tag = "conversations"
	return []Operation{
		define[ExportRequest, None](Operation{
			ID: "exportConversation", Method: "GET", Path: one + "/export", Tag: tag, Summary: "write it out",
			Answers: answers(ok("The conversation as a file.").as(Media{Type: JSON, Schema: reflect.TypeFor[any]()}, Media{Type: JSONLines})),
		}, nil),
		define(Operation{
			ID: "listEntries", Method: "GET", Path: one + "/entries", Tag: tag, Summary: "list its entries",
			Answers: answers(ok("A page of entries.")),
		}, s.ListEntries),
		define(Operation{
			ID: "appendEntries", Method: "POST", Path: one + "/entries", Tag: tag, Summary: "append entries",
			Body: []Media{{Type: JSON, AnyOf: []reflect.Type{reflect.TypeFor[AppendRequest](), reflect.TypeFor[NewEntry]()}}},
			Answers: answers(created("The entries as they are stored."),
				failing(http.StatusConflict, "Another entry came first (`conflict`, with `expect_seq` and `next_seq`), or the `Idempotency-Key` "+
					"was used for other entries (`idempotency_conflict`)."),
				failing(http.StatusUnprocessableEntity, "An entry breaks a rule of the log; the code names the rule.")),
		}, s.AppendEntries),
		define(Operation{
			ID: "showPart", Method: "GET", Path: one + "/entries/{seq}/parts/{n}", Tag: tag, Summary: "show a part of an entry's content, whole",
			Answers: answers(ok("The part."),
				failing(http.StatusNotFound, "There is no such entry, or its content is no list, or has fewer parts."),
				failing(http.StatusInternalServerError, "The entry is there and its attachment is lost (code `object_gone`). No other request will "+
					"help; the operator may put the object back from a backup.")),
		}, s.ShowPart),
	}
}

// JSONLines is the media type of Continuo's own format.
const JSONLines = "application/jsonl"

// ExportRequest selects the form of an export.
type ExportRequest struct {
	ConversationPath
	// `continuo` loses nothing and is what the program's `import` reads back; `openai` is a list of OpenAI chat messages
	// that an API accepts, `openai-jsonl` the same as one line `{id, messages}`; `source` is the form in which an imported
	// conversation came, message for message.
	Format string `query:"format" enum:"continuo,openai,openai-jsonl,source" default:"continuo"`
}

// Open finds the conversation of an export.
func (s *Service) Open(ctx context.Context, scope continuo.Scope, in ConversationPath) (continuo.Conversation, error) {
	return s.open(ctx, scope, in.Conversation)
}

// EntryQuery selects entries.
type EntryQuery struct {
	ConversationPath
	// The `seq` to begin with; the default is the oldest entry, or the newest when the order is descending. Beyond the
	// newest entry an ascending list is empty, so that a reader who comes back can always ask for the entry after the last
	// one that it has seen.
	From *int64 `query:"from" minimum:"1"`
	// How many to give at most.
	Limit int64 `query:"limit" minimum:"1" maximum:"1000" default:"100"`
	// By `seq`.
	Order *string `query:"order" enum:"asc,desc" doc:"default=asc"`
	Cursor
}

// entryCursor is a cursor of the list of entries: its position and its direction.
type entryCursor struct {
	Order string `json:"order"`
	From  int64  `json:"from"`
}

// page is the range of a page of the given size: entries after it need not be read.
func (p entryCursor) page(last, limit int64) continuo.Range {
	if p.Order == "desc" {
		to := last
		if p.From > 0 {
			to = min(to, p.From)
		}
		return continuo.Range{From: max(to-limit+1, 1), To: to, Backward: true}
	}
	from := max(p.From, 1)
	return continuo.Range{From: from, To: min(from+limit-1, last)}
}

// start says where a list of entries begins: at a cursor, or at from in the given order. From 0 is the oldest entry, or
// the newest in descending order.
func (in *EntryQuery) start() (start entryCursor, err error) {
	start = entryCursor{Order: "asc", From: valueOf(in.From)}
	if in.Order != nil {
		start.Order = *in.Order
	}
	var at entryCursor
	switch given, err := in.Cursor.decode(&at); {
	case in.Cursor.Cursor != nil && in.From != nil:
		return start, Refuse("from", "give from or cursor, not both")
	case err != nil:
		return start, err
	case !given:
		return start, nil
	case at.From < 1 || at.Order != "asc" && at.Order != "desc":
		return start, Refuse("cursor", "the cursor is none that this list gave out")
	case in.Order != nil && at.Order != start.Order:
		return start, Refuse("order", "the cursor is one of order %s", at.Order)
	}
	return at, nil
}

// ListEntries lists entries.
func (s *Service) ListEntries(ctx context.Context, scope continuo.Scope, in EntryQuery) (Stream[continuo.Entry], error) {
	var page Stream[continuo.Entry]
	start, err := in.start()
	if err != nil {
		return page, err
	}
	conversation, err := s.open(ctx, scope, in.Conversation)
	if err != nil {
		return page, err
	}
	pageRange := start.page(conversation.LastSeq, in.Limit)
	page.Items = s.Engine.Conversations.Read(ctx, conversation, pageRange)
	switch {
	case pageRange.Backward && pageRange.From > 1:
		page.Next = WriteCursor(entryCursor{start.Order, pageRange.From - 1})
	case !pageRange.Backward && pageRange.To < conversation.LastSeq:
		page.Next = WriteCursor(entryCursor{start.Order, pageRange.To + 1})
	}
	return page, nil
}

// The members of an entry: those that a client may set, and those that the log sets. A test compares them with the members
// of continuo.Entry, so that a new one is not accepted from clients by accident.
var (
	GivenMembers = []string{
		"role", "content", "tool_calls", "tool_call_id", "name", "reasoning", "error",
		"mode", "run_id", "workflow_id", "node_id", "agent_id", "turn_id", "author", "include_in_context",
		"part_type", "tool_name", "outcome", "duration_ms", "is_collapsed", "widget", "round", "vendor", "extra",
	}
	FilledMembers = []string{
		"id", "conversation_id", "seq", "created_at", "chars", "tokens", "tokenizer", "output_ref", "output", "attachments",
		"repairs", "redacted", "run_event", "task_event", "summary", "recall", "fact", "profile", "no_memory",
	}
)

// NewEntry is an entry to append. What is not listed is filled in by the log, and refused here.
type NewEntry continuo.Entry

// AppendRequest is a list of entries to append.
type AppendRequest struct {
	Entries []NewEntry `json:"entries" doc:"minItems=1,maxItems=1000"`
	// The seq that the first entry must get; the append is refused if another entry has it.
	ExpectSeq *int64 `json:"expect_seq,omitempty" minimum:"1"`
}

// AppendInput is the input of an append: the body is one entry, or an object with a list of them.
type AppendInput struct {
	ConversationPath
	Once
	Body []byte `body:"raw"`

	entries   []continuo.Entry
	one       bool // the body is an entry
	expectSeq int64
}

// Appended are the entries as they are stored.
type Appended struct {
	Entries []continuo.Entry `json:"entries"`
}

// MaxAppend bounds how many entries one call appends.
const MaxAppend = 1000

// AppendEntries appends entries.
//
// All or none. The log takes only what can be shown to a model later: a tool result must answer an open call, once, and
// while calls are open nothing but their results may follow. The error for an entry that breaks a rule has the rule as its
// `code` and the entry as its `param`.
func (s *Service) AppendEntries(ctx context.Context, scope continuo.Scope, in AppendInput) (Appended, error) {
	conversation, err := s.open(ctx, scope, in.Conversation)
	if err != nil {
		return Appended{}, err
	}
	stored, err := s.Engine.Conversations.Append(ctx, conversation, in.entries, continuo.AppendOptions{Key: string(in.Key), ExpectSeq: in.expectSeq})
	return Appended{stored}, At(ruleParam(err, in.one), err)
}

// ruleParam names the entry that caused the refusal of an append.
func ruleParam(err error, one bool) string {
	var rule *continuo.RuleError
	var lost *continuo.ConflictError
	switch {
	case errors.As(err, &lost):
		return "expect_seq"
	case !errors.As(err, &rule) || one:
		return ""
	default:
		return fmt.Sprintf("entries[%d]", rule.Index)
	}
}

// Check reads the body.
func (in *AppendInput) Check() error {
	object, err := objectOf(in.Body)
	if err != nil {
		return err
	}
	if object.Get("entries") == nil {
		entry, err := readEntry("", object, in.Body)
		in.entries, in.one = []continuo.Entry{entry}, true
		return err
	}
	var request struct {
		Entries   []json.RawMessage `json:"entries"`
		ExpectSeq *int64            `json:"expect_seq"`
	}
	if err := decodeObject(in.Body, &request); err != nil {
		return err
	}
	if request.ExpectSeq != nil {
		if in.expectSeq = *request.ExpectSeq; in.expectSeq < 1 {
			return Refuse("expect_seq", "expect_seq must be at least 1: it is the seq that the first entry shall get")
		}
	}
	if n := len(request.Entries); n == 0 || n > MaxAppend {
		return Refuse("entries", "entries must be a list of 1 to %d entries, not of %d", MaxAppend, n)
	}
	in.entries = make([]continuo.Entry, len(request.Entries))
	for i, raw := range request.Entries {
		param := fmt.Sprintf("entries[%d]", i)
		object, err := objectOf(raw)
		if err != nil {
			return Refuse(param, "%s must be an object whose fields come once", param)
		}
		if in.entries[i], err = readEntry(param, object, raw); err != nil {
			return err
		}
	}
	return nil
}

// maxMembers bounds the members of an entry.
const maxMembers = 100

// objectOf splits the JSON object that a body or an entry must be.
func objectOf(data []byte) (rawjson.Object, error) {
	var object rawjson.Object
	err := eachMember(data, func(name string, value json.RawMessage) error {
		if len(object) == maxMembers {
			return Refuse(name, "the object has more than %d fields", maxMembers)
		}
		object = append(object, rawjson.Field{Key: name, Value: value})
		return nil
	})
	return object, err
}

// readEntry reads one entry. parent is its path in the body, "" for the body itself.
func readEntry(parent string, object rawjson.Object, raw []byte) (entry continuo.Entry, err error) {
	for _, field := range object {
		path := pathOf(parent, field.Key)
		switch {
		case slices.Contains(FilledMembers, field.Key):
			return entry, Refuse(path, "%s is filled in by the log: leave it out", path)
		case !slices.Contains(GivenMembers, field.Key):
			return entry, Refuse(path, "unknown field %q%s", path, suggestion(field.Key, GivenMembers))
		}
	}
	if path := pathOf(parent, "role"); rawjson.IsNull(object.Get("role")) {
		return entry, Refuse(path, "%s is missing: give system, user, assistant or tool", path)
	}
	if json.Unmarshal(raw, &entry) != nil {
		return entry, wrongField(parent, object)
	}
	if entry.Round != nil && entry.Round.Envelope != "" {
		path := pathOf(parent, "round.envelope")
		return entry, Refuse(path, "%s names what a server stored itself: leave it out", path)
	}
	return entry, nil
}

func pathOf(parent, name string) string {
	if parent == "" {
		return name
	}
	return parent + "." + name
}

// wrongField finds the field that makes an entry unreadable.
func wrongField(parent string, object rawjson.Object) error {
	for _, field := range object {
		var entry continuo.Entry
		err := json.Unmarshal(rawjson.MustMarshal(rawjson.Object{field}), &entry)
		path := pathOf(parent, field.Key)
		wrong, ok := rawjson.AsWrongType(err)
		switch {
		case err == nil:
			continue
		case !ok:
			return Refuse(path, "%s: %s", path, strings.TrimPrefix(rawjson.Explain(err), "entry: "))
		case wrong.Field == field.Key:
			return Refuse(path, "%s must be %s, not %s", path, wrong.Want, wrong.Got)
		default:
			return Refuse(path, "%s: a value in it must be %s, not %s", path, wrong.Want, wrong.Got)
		}
	}
	return Refuse(parent, "the entry cannot be read")
}

// PartPath names a part of an entry's content.
type PartPath struct {
	ConversationPath
	// The entry's `seq`.
	Seq int64 `path:"seq" minimum:"1"`
	// The part's index in `content`, from 0.
	Part int64 `path:"n" minimum:"0"`
}

// ShownPart is a part of an entry's content.
type ShownPart struct {
	Data json.RawMessage `json:"data" type:"object"`
}

// WriteJSON writes the part as it is: the encoder would reformat it, which would change its hash.
func (p ShownPart) WriteJSON() []byte {
	return slices.Concat([]byte(`{"data":`), p.Data, []byte("}\n"))
}

// ShowPart shows one part of an entry's content. If the entry exists but its attachment is lost, the operator has to
// restore it, and can: the call fails with object_gone, as an export does, and not with 410, which clients and caches
// treat as permanent.
//
// Where the entry has only a placeholder of it, the part is read from where it is kept (`attachments`), and has the very
// bytes that were appended.
func (s *Service) ShowPart(ctx context.Context, scope continuo.Scope, in PartPath) (ShownPart, error) {
	conversation, err := s.open(ctx, scope, in.Conversation)
	if err != nil {
		return ShownPart{}, err
	}
	part, err := s.part(ctx, conversation, in.Seq, in.Part)
	return ShownPart{part.Raw}, err
}

// part reads the part at an index of an entry's content, from its object where it is stored as one.
func (s *Service) part(ctx context.Context, conversation continuo.Conversation, seq, index int64) (continuo.Part, error) {
	for entry, err := range s.Engine.Conversations.Read(ctx, conversation, continuo.Range{From: seq, To: seq}) {
		if err != nil {
			return continuo.Part{}, err
		}
		parts := entry.Content.Parts()
		if index >= int64(len(parts)) {
			return continuo.Part{}, fmt.Errorf("part %d of entry %d: %w: its content is %s", index, seq, continuo.ErrNotFound, contentWords(entry.Content))
		}
		at := slices.IndexFunc(entry.Attachments, func(a continuo.Attachment) bool { return int64(a.Part) == index })
		if at < 0 {
			return parts[index], nil
		}
		return s.Engine.Conversations.Attachment(ctx, &entry, entry.Attachments[at])
	}
	return continuo.Part{}, fmt.Errorf("entry %d: %w", seq, continuo.ErrNotFound)
}

// contentWords describes a content that does not have the requested part.
func contentWords(content continuo.Content) string {
	switch {
	case content.IsText():
		return "a text, which is part of the entry"
	case content.IsParts():
		return fmt.Sprintf("a list of %d parts, counted from 0", len(content.Parts()))
	}
	return "null"
}
