package interchange

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/messages"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// recordKey is the key of the record in Entry.Vendor.
const recordKey = "interchange"

// record has the data of an imported entry that its own fields cannot represent: enough to reproduce the
// source's message exactly. It is stored in Entry.Vendor["interchange"].
type record struct {
	Index int `json:"index"` // of the message in the source, from 0
	// Added marks an entry that the source does not have: a substitute for a missing result.
	Added bool `json:"added,omitempty"`
	// Blocks are the positions of the content blocks that became this entry, when a message was split into
	// several entries.
	Blocks []int `json:"blocks,omitempty"`
	// String says that an assistant's Anthropic content was a string.
	String bool `json:"string,omitempty"`
	// Legacy says that the call was a function_call, or the result a message of the role function.
	Legacy bool `json:"legacy,omitempty"`
	// Reasoning names the field that held the reasoning, when it was not reasoning_content.
	Reasoning string `json:"reasoning,omitempty"`
	// Repairs are those of an entry that is hidden by its source. They are not on the entry, because the log
	// excludes a hidden entry with repairs from groups.
	Repairs []string `json:"repairs,omitempty"`
	// Raw has the original Anthropic blocks, when a repair changed their ids.
	Raw []json.RawMessage `json:"raw,omitempty"`
	// Fields are the original fields of the message that the entry would write differently; Absent are fields
	// that it would write and the message does not have. Both are on a message's first entry.
	Fields json.RawMessage `json:"fields,omitempty"`
	Absent []string        `json:"absent,omitempty"`
}

// recordOf reads the record of an entry; ok is false when it was not imported.
func recordOf(e *continuo.Entry) (r record, ok bool) {
	raw := e.Vendor[recordKey]
	return r, raw != nil && json.Unmarshal(raw, &r) == nil
}

// restore restores the parts of a message that the entry cannot represent.
func (r record) restore(message rawjson.Object) rawjson.Object {
	message = message.Without(r.Absent...)
	fields, err := rawjson.ParseObject(r.Fields)
	if err != nil {
		return message
	}
	for _, field := range fields {
		message.Set(field.Key, field.Value)
	}
	return message
}

// compare fills Fields and Absent with the difference between a message and the entry's rendering.
func (r *record) compare(source, written rawjson.Object) {
	var fields rawjson.Object
	for _, field := range source {
		if !messages.SameJSON(field.Value, written.Get(field.Key)) {
			fields = append(fields, field)
		}
	}
	r.Fields = fields.Raw()
	for _, field := range written {
		if source.Get(field.Key) == nil {
			r.Absent = append(r.Absent, field.Key)
		}
	}
}

// draft is an entry during an import or export.
type draft struct {
	entry  continuo.Entry
	record record
	// sourceIDs are the original ids of the entry's calls, which its results name.
	sourceIDs []string
	// blocks are the original Anthropic blocks that the entry's own fields cannot reproduce.
	blocks []json.RawMessage
	// imported says that the entry came from a source and has a record.
	imported bool
	taken    bool // a result that is already placed after its call
	hidden   bool // by a repair, not by the source
}

// newDraft makes a draft of what was read, and reports its repairs.
func newDraft(m *messages.Message, report *repairs) *draft {
	d := &draft{entry: m.Entry, blocks: m.Blocks, hidden: m.Hidden}
	d.record.Blocks, d.record.String, d.record.Legacy, d.record.Reasoning = m.Positions, m.String, m.Legacy, m.ReasoningField
	for _, repair := range m.Repairs {
		report.decoding(d, repair.Rule, "%s", repair.Text)
	}
	return d
}

// mark records on the entry that a rule made the import change it.
func (d *draft) mark(rule continuo.Rule) {
	if !slices.Contains(d.entry.Repairs, string(rule)) {
		d.entry.Repairs = append(d.entry.Repairs, string(rule))
	}
}

func (d *draft) isTool() bool { return d.entry.Role == continuo.Tool }

// hide hides an entry that cannot be shown at its position.
func (r *repairs) hide(d *draft, rule continuo.Rule, why string) {
	d.entry.Hidden, d.hidden = true, true
	r.add(d, rule, "The message was kept, but hidden: %s.", why)
}

// settle writes each draft's record and returns the entries.
func settle(speech dialect, messages []rawjson.Object, drafts []*draft) []continuo.Entry {
	parts := make([][]*draft, len(messages))
	for _, d := range drafts {
		if d.entry.Hidden && !d.hidden {
			d.record.Repairs, d.entry.Repairs = d.entry.Repairs, nil
		}
		if !d.record.Added {
			parts[d.record.Index] = append(parts[d.record.Index], d)
		}
	}
	for i, message := range messages {
		written := speech.encode(sorted(parts[i]))
		parts[i][0].record.compare(message, written)
	}
	entries := make([]continuo.Entry, len(drafts))
	for i, d := range drafts {
		if d.entry.Vendor == nil {
			d.entry.Vendor = map[string]json.RawMessage{}
		}
		d.entry.Vendor[recordKey] = rawjson.MustMarshal(d.record)
		entries[i] = d.entry
	}
	return entries
}

// sorted sorts the entries of one message in the order of their blocks.
func sorted(parts []*draft) []*draft {
	slices.SortStableFunc(parts, func(a, b *draft) int { return slices.Compare(a.record.Blocks, b.record.Blocks) })
	return parts
}

// byIndex sorts imported entries in the order of the source; those without a record come last.
func byIndex(drafts []*draft) {
	position := func(d *draft) int {
		if !d.imported {
			return math.MaxInt
		}
		return d.record.Index
	}
	slices.SortStableFunc(drafts, func(a, b *draft) int { return cmp.Compare(position(a), position(b)) })
}

// timeFields are the fields that may have the time of a message, and timeLayouts its formats: RFC 3339 and
// similar forms of ISO 8601. A time without a zone is UTC.
var (
	timeFields  = []string{"ts", "timestamp", "createdAt", "created_at"}
	timeLayouts = []string{
		time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00",
		"2006-01-02 15:04:05.999999999", "2006-01-02T15:04Z07:00", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02",
	}
)

// createdAt reads the time of a message, zero when it has none in a known format.
func createdAt(message rawjson.Object) time.Time { return timeIn(message, timeFields...) }

// fillTimes gives messages without a time that of the one before, or the first known one; without any, none.
func fillTimes(drafts []*draft) {
	var last time.Time
	for _, d := range drafts {
		if last = d.entry.CreatedAt; !last.IsZero() {
			break
		}
	}
	for _, d := range drafts {
		if d.entry.CreatedAt.IsZero() {
			d.entry.CreatedAt = last
		}
		last = d.entry.CreatedAt
	}
}

// The smallest numbers that count as milliseconds and as seconds since 1970: both are in 1973.
const (
	leastMillis  = 1e11
	leastSeconds = 1e8
)

// timeOf reads a number of seconds or milliseconds.
func timeOf(value json.RawMessage) (time.Time, bool) {
	var number float64
	if json.Unmarshal(value, &number) != nil || number < leastSeconds || number > leastMillis*1e3 {
		return time.Time{}, false
	}
	if number < leastMillis {
		number *= 1000
	}
	return time.UnixMilli(int64(math.Round(number))).UTC(), true
}

// timeIn reads the first of some fields that contains a time.
func timeIn(message rawjson.Object, fields ...string) time.Time {
	for _, field := range fields {
		text, ok := rawjson.String(message.Get(field))
		if !ok {
			if t, ok := timeOf(message.Get(field)); ok {
				return t
			}
			continue
		}
		for _, layout := range timeLayouts {
			if t, err := time.Parse(layout, text); err == nil && storable(t) {
				return t.UTC()
			}
		}
	}
	return time.Time{}
}

// storable reports whether a time can be written as RFC 3339 in UTC.
func storable(t time.Time) bool { return t.UTC().Year() >= 0 && t.UTC().Year() <= 9999 }
