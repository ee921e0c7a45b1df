package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/engine/conversations"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// entryPlace is a cursor of the list of entries: its position and its direction.
type entryPlace struct {
	Order string `json:"order"`
	From  int64  `json:"from"`
}

func (s *server) listEntries(w http.ResponseWriter, r *http.Request) error {
	q, err := parseQuery(r, "from", "limit", "order", "cursor")
	if err != nil {
		return err
	}
	limit, err := q.whole("limit", 1, 1000, 100)
	if err != nil {
		return err
	}
	place, err := entriesFrom(q)
	if err != nil {
		return err
	}
	conversation, err := s.conversation(r)
	if err != nil {
		return err
	}
	reading := place.page(conversation.LastSeq, limit)
	page := &entryPage{out: w}
	for entry, err := range s.engine.Log.Read(r.Context(), conversation, reading) {
		if err == nil {
			err = page.add(entry)
		}
		switch {
		case err != nil && page.count == 0:
			return err
		case err != nil:
			panic(http.ErrAbortHandler) // a truncated list must not look complete
		}
	}
	switch {
	case page.count == 0:
	case reading.Backward && reading.From > 1:
		page.next = writeCursor(entryPlace{place.Order, reading.From - 1})
	case !reading.Backward && reading.To < conversation.LastSeq:
		page.next = writeCursor(entryPlace{place.Order, reading.To + 1})
	}
	return page.end()
}

// page is the range of a page of the given size: entries after it need not be read.
func (p entryPlace) page(last, limit int64) continuo.Range {
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

// entryPage writes a list of entries one by one, so that the answer is never held in memory as a whole.
type entryPage struct {
	out   http.ResponseWriter
	count int64
	next  *string
}

// add writes one entry. An error of the first one means that nothing has been written.
func (p *entryPage) add(entry continuo.Entry) error {
	data, err := entry.MarshalJSON()
	if err != nil {
		return err
	}
	before := ","
	if p.count == 0 {
		p.begin()
		before = `{"data":[`
	}
	p.count++
	if _, err := io.WriteString(p.out, before); err != nil {
		return err
	}
	_, err = p.out.Write(data)
	return err
}

func (p *entryPage) begin() {
	p.out.Header().Set("Content-Type", "application/json")
	p.out.WriteHeader(http.StatusOK)
}

// end writes what follows the entries.
func (p *entryPage) end() error {
	if p.count == 0 {
		return writeJSON(p.out, http.StatusOK, list[continuo.Entry]{Data: []continuo.Entry{}})
	}
	rest := rawjson.MustMarshal(struct {
		HasMore    bool    `json:"has_more"`
		NextCursor *string `json:"next_cursor"`
	}{p.next != nil, p.next})
	_, _ = p.out.Write(append(append([]byte(`],`), rest[1:]...), '\n')) // a client that has disconnected is not an error
	return nil
}

// entriesFrom reads where a list of entries begins: at a cursor, or at from in the given order. From 0 is the oldest
// entry, or the newest in descending order.
func entriesFrom(q query) (entryPlace, error) {
	place := entryPlace{Order: "asc"}
	if q.has("order") {
		place.Order = q.text("order")
	}
	if place.Order != "asc" && place.Order != "desc" {
		return place, refuse("order", "order must be asc or desc, not %q", place.Order)
	}
	if !q.has("cursor") {
		from, err := q.whole("from", 1, maxSeq, 0)
		place.From = from
		return place, err
	}
	if q.has("from") {
		return place, refuse("from", "give from or cursor, not both")
	}
	var at entryPlace
	if err := q.cursor(&at); err != nil {
		return place, err
	}
	if at.From < 1 || at.Order != "asc" && at.Order != "desc" {
		return place, refuse("cursor", "the cursor is none that this list gave out")
	}
	if q.has("order") && at.Order != place.Order {
		return place, refuse("order", "the cursor is one of order %s", at.Order)
	}
	return at, nil
}

// The members of an entry: those that a client may set, and those that the log sets. A test compares them with the
// members of continuo.Entry.
var (
	givenFields = []string{
		"role", "content", "tool_calls", "tool_call_id", "name", "reasoning", "error",
		"mode", "run_id", "workflow_id", "node_id", "agent_id", "turn_id", "author", "include_in_context",
		"part_type", "tool_name", "outcome", "duration_ms", "is_collapsed", "widget", "round", "vendor", "extra",
	}
	filledFields = []string{"id", "conversation_id", "seq", "created_at", "chars", "tokens", "tokenizer", "output_ref", "output", "attachments", "repairs", "redacted", "run_event", "task_event", "summary"}
)

// maxAppend bounds how many entries one call appends.
const maxAppend = 1000

func (s *server) appendEntries(w http.ResponseWriter, r *http.Request) error {
	if _, err := parseQuery(r); err != nil {
		return err
	}
	options := continuo.AppendOptions{}
	var err error
	if options.Key, err = idempotencyKey(r); err != nil {
		return err
	}
	body, err := s.readBody(w, r)
	if err != nil {
		return err
	}
	entries, one, err := readEntries(body, &options)
	if err != nil {
		return err
	}
	conversation, err := s.conversation(r)
	if err != nil {
		return err
	}
	if err := conversations.TakesMessages(conversation); err != nil {
		return err
	}
	stored, err := s.engine.Log.Append(r.Context(), conversation.ID, entries, options)
	if err != nil {
		return at(ruleParam(err, one), err)
	}
	return writeJSON(w, http.StatusCreated, struct {
		Entries []continuo.Entry `json:"entries"`
	}{stored})
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

// readEntries reads a body that is one entry, or an object with a list of them.
func readEntries(body []byte, options *continuo.AppendOptions) (entries []continuo.Entry, one bool, err error) {
	object, err := objectOf(body)
	if err != nil {
		return nil, false, err
	}
	if object.Get("entries") == nil {
		entry, err := readEntry("", object, body)
		return []continuo.Entry{entry}, true, err
	}
	var request struct {
		Entries   []json.RawMessage `json:"entries"`
		ExpectSeq *int64            `json:"expect_seq"`
	}
	if err := decode(body, &request); err != nil {
		return nil, false, err
	}
	if request.ExpectSeq != nil {
		if options.ExpectSeq = *request.ExpectSeq; options.ExpectSeq < 1 {
			return nil, false, refuse("expect_seq", "expect_seq must be at least 1: it is the seq that the first entry shall get")
		}
	}
	if n := len(request.Entries); n == 0 || n > maxAppend {
		return nil, false, refuse("entries", "entries must be a list of 1 to %d entries, not of %d", maxAppend, n)
	}
	entries = make([]continuo.Entry, len(request.Entries))
	for i, raw := range request.Entries {
		place := fmt.Sprintf("entries[%d]", i)
		object, err := objectOf(raw)
		if err != nil {
			return nil, false, refuse(place, "%s must be an object whose fields come once", place)
		}
		if entries[i], err = readEntry(place, object, raw); err != nil {
			return nil, false, err
		}
	}
	return entries, false, nil
}

// maxMembers bounds the members of an entry.
const maxMembers = 100

// objectOf splits the JSON object that a body or an entry must be.
func objectOf(data []byte) (rawjson.Object, error) {
	var object rawjson.Object
	err := eachMember(data, func(name string, value json.RawMessage) error {
		if len(object) == maxMembers {
			return refuse(name, "the object has more than %d fields", maxMembers)
		}
		object = append(object, rawjson.Field{Key: name, Value: value})
		return nil
	})
	return object, err
}

// readEntry reads one entry. place is its path in the body, "" for the body itself.
func readEntry(place string, object rawjson.Object, raw []byte) (entry continuo.Entry, err error) {
	for _, field := range object {
		path := pathOf(place, field.Key)
		switch {
		case slices.Contains(filledFields, field.Key):
			return entry, refuse(path, "%s is filled in by the log: leave it out", path)
		case !slices.Contains(givenFields, field.Key):
			return entry, refuse(path, "unknown field %q%s", path, suggestion(field.Key, givenFields))
		}
	}
	if path := pathOf(place, "role"); rawjson.IsNull(object.Get("role")) {
		return entry, refuse(path, "%s is missing: give system, user, assistant or tool", path)
	}
	if json.Unmarshal(raw, &entry) != nil {
		return entry, wrongField(place, object)
	}
	if entry.Round != nil && entry.Round.Envelope != "" {
		path := pathOf(place, "round.envelope")
		return entry, refuse(path, "%s names what a server stored itself: leave it out", path)
	}
	return entry, nil
}

func pathOf(place, name string) string {
	if place == "" {
		return name
	}
	return place + "." + name
}

// wrongField finds the field that makes an entry unreadable.
func wrongField(place string, object rawjson.Object) error {
	for _, field := range object {
		var entry continuo.Entry
		err := json.Unmarshal(rawjson.MustMarshal(rawjson.Object{field}), &entry)
		path := pathOf(place, field.Key)
		var wrong *json.UnmarshalTypeError
		switch {
		case err == nil:
			continue
		case !errors.As(err, &wrong):
			return refuse(path, "%s: %s", path, strings.TrimPrefix(err.Error(), "entry: "))
		case wrong.Field == field.Key:
			return refuse(path, "%s must be %s, not %s", path, expected(wrong.Type), wrong.Value)
		default:
			return refuse(path, "%s: a value in it must be %s, not %s", path, expected(wrong.Type), wrong.Value)
		}
	}
	return refuse(place, "the entry cannot be read")
}

// idempotencyHeader is the header that makes a retried append take effect only once.
const idempotencyHeader = "Idempotency-Key"

// idempotencyKey reads the header Idempotency-Key, "" when there is none.
func idempotencyKey(r *http.Request) (string, error) {
	values := r.Header.Values(idempotencyHeader)
	if len(values) == 0 {
		return "", nil
	}
	key := values[0]
	visible := !slices.ContainsFunc([]byte(key), func(b byte) bool { return b < '!' || b > '~' })
	if len(values) > 1 || key == "" || len(key) > 255 || !visible {
		return "", refuse(idempotencyHeader, "%s must be 1 to 255 visible ASCII characters, once", idempotencyHeader)
	}
	return key, nil
}
