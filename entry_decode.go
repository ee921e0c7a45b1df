package continuo

import (
	"encoding/json"
	"slices"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// Decode reads an entry as UnmarshalJSON does, but does not copy the text: the entry may share its memory.
func (e *Entry) Decode(text string) error {
	before := *e
	if scanner, ok := rawjson.NewScanner(text); ok {
		d := entryDecoder{Scanner: scanner, entry: e}
		if d.decode() {
			return nil
		}
	}
	*e = before
	return e.decodeAny([]byte(text))
}

// entryDecoder reads the form that MarshalJSON writes, which is that of every stored entry. It reports false for any
// other form, and never reads one differently than encoding/json: tests compare the two.
//
// Most entries are messages, results and answers of turns: their fields are read without reflection, those of other
// entries by encoding/json. A field that occurs twice and that encoding/json would merge is left to it.
type entryDecoder struct {
	rawjson.Scanner
	entry *Entry
}

func (d *entryDecoder) decode() bool {
	*d.entry = Entry{}
	return d.Object(d.member) && d.End()
}

func (d *entryDecoder) member(name string) bool {
	e := d.entry
	switch name {
	case "id":
		return d.string(&e.ID)
	case "conversation_id":
		return d.string(&e.ConversationID)
	case "seq":
		return d.int64(&e.Seq)
	case "created_at":
		at, ok := d.Plain()
		return ok && e.CreatedAt.UnmarshalText([]byte(at)) == nil
	case "role":
		return d.role(&e.Role)
	case "content":
		return d.content(&e.Content)
	case "tool_calls":
		e.ToolCalls = nil
		return d.List(d.call) && e.ToolCalls != nil
	case "tool_call_id":
		return d.string(&e.ToolCallID)
	case "name":
		return d.string(&e.Name)
	case "reasoning":
		return d.reasoning()
	case "chars":
		return d.int(&e.Chars)
	case "tokens":
		return d.int(&e.Tokens)
	case "tokenizer":
		return d.string(&e.Tokenizer)
	case "round":
		return d.round()
	}
	return d.originMember(name) || d.rareMember(name)
}

// originMember reads the members that say where an entry comes from, and those for user interfaces. It reports false
// before it has read anything of any other.
func (d *entryDecoder) originMember(name string) bool {
	e := d.entry
	switch name {
	case "mode":
		return d.string((*string)(&e.Mode))
	case "run_id":
		return d.string(&e.RunID)
	case "workflow_id":
		return d.string(&e.WorkflowID)
	case "node_id":
		return d.string(&e.NodeID)
	case "agent_id":
		return d.string(&e.AgentID)
	case "turn_id":
		return d.string(&e.TurnID)
	case "author":
		return d.author()
	case "part_type":
		return d.string(&e.PartType)
	case "tool_name":
		return d.string(&e.ToolName)
	case "outcome":
		return d.string(&e.Outcome)
	case "duration_ms":
		return d.int64(&e.DurationMS)
	case "is_collapsed":
		return d.bool(&e.IsCollapsed)
	case "output_ref":
		return d.string(&e.OutputRef)
	case "include_in_context":
		shown, ok := d.Bool()
		e.Hidden = !shown
		return ok
	}
	return false
}

// rareMember reads the other members, by encoding/json.
func (d *entryDecoder) rareMember(name string) bool {
	e := d.entry
	switch name {
	case "error":
		return e.Error == nil && d.value(&e.Error)
	case "widget":
		return d.value(&e.Widget)
	case "output":
		return e.Output == nil && d.value(&e.Output)
	case "attachments":
		return e.Attachments == nil && d.value(&e.Attachments)
	case "run_event":
		return e.RunEvent == nil && d.value(&e.RunEvent)
	case "task_event":
		return e.TaskEvent == nil && d.value(&e.TaskEvent)
	case "summary":
		return e.Summary == nil && d.value(&e.Summary)
	case "fact":
		return e.Fact == nil && d.value(&e.Fact)
	case "profile":
		return e.Profile == nil && d.value(&e.Profile)
	case "no_memory":
		return d.bool(&e.NoMemory)
	case "recall":
		return e.Recall == nil && d.value(&e.Recall)
	case "vendor":
		return e.Vendor == nil && d.value(&e.Vendor)
	case "repairs":
		return e.Repairs == nil && d.value(&e.Repairs)
	case "redacted":
		return e.Redacted == nil && d.value(&e.Redacted)
	case "extra":
		return d.value(&e.Extra)
	}
	return false
}

func (d *entryDecoder) role(into *Role) bool {
	text, ok := d.Plain()
	*into = Role(text)
	if i := slices.Index([]Role{System, User, Assistant, Tool}, *into); i >= 0 {
		*into = [...]Role{System, User, Assistant, Tool}[i] // shares no memory with the text
	}
	return ok
}

func (d *entryDecoder) content(into *Content) bool {
	switch d.Peek() {
	case '"':
		text, ok := d.String()
		*into = Text(text)
		return ok
	case 'n':
		*into = Null()
		return d.Skip("null")
	case '[':
		var parts []Part
		if !d.List(func() bool { return d.part(&parts) }) {
			return false
		}
		*into = Parts(slices.Clip(parts)...)
		return parts != nil
	}
	return false
}

// part reads a text part as [TextPart] writes it, and any other by parsePart.
func (d *entryDecoder) part(parts *[]Part) bool {
	before := d.Scanner
	if d.Skip(`{"type":"text","text":`) {
		if text, ok := d.String(); ok && d.Skip("}") {
			after := d.Scanner
			d.Scanner = before
			raw, ok := d.Raw()
			d.Scanner = after
			*parts = append(*parts, Part{Type: "text", Text: text, Raw: json.RawMessage(raw)})
			return ok
		}
		d.Scanner = before
	}
	raw, ok := d.Raw()
	if !ok {
		return false
	}
	part, err := parsePart(json.RawMessage(raw))
	*parts = append(*parts, part)
	return err == nil
}

// call reads a call as ToolCall.MarshalJSON writes it without unknown fields, and any other by its UnmarshalJSON.
func (d *entryDecoder) call() bool {
	calls := &d.entry.ToolCalls
	*calls = append(*calls, ToolCall{})
	call := &(*calls)[len(*calls)-1]
	before := d.Scanner
	if d.Skip(`{"id":`) && d.string(&call.ID) && d.Skip(`,"type":"function","function":{"name":`) && d.string(&call.Name) &&
		d.Skip(`,"arguments":`) && d.string(&call.Arguments) && d.Skip(`}}`) {
		call.Type = "function"
		return true
	}
	d.Scanner = before
	raw, ok := d.Raw()
	return ok && call.UnmarshalJSON([]byte(raw)) == nil
}

func (d *entryDecoder) reasoning() bool {
	if d.entry.Reasoning != nil {
		return false
	}
	r := &Reasoning{}
	d.entry.Reasoning = r
	return d.Object(func(name string) bool {
		switch name {
		case "text":
			return d.string(&r.Text)
		case "signature":
			return d.string(&r.Signature)
		}
		return false
	})
}

func (d *entryDecoder) author() bool {
	if d.entry.Author != nil {
		return false
	}
	a := &Author{}
	d.entry.Author = a
	return d.Object(func(name string) bool {
		switch name {
		case "role_name":
			return d.string(&a.RoleName)
		case "display_name":
			return d.string(&a.DisplayName)
		case "agent_name":
			return d.string(&a.AgentName)
		}
		return false
	})
}

func (d *entryDecoder) round() bool {
	if d.entry.Round != nil {
		return false
	}
	r := &Round{}
	d.entry.Round = r
	return d.Object(func(name string) bool {
		switch name {
		case "view":
			return d.string(&r.View)
		case "view_hash":
			return d.string(&r.ViewHash)
		case "at":
			return d.int64(&r.At)
		case "window":
			return d.window(&r.Window)
		case "cursor":
			return d.int64(&r.Cursor)
		case "provider":
			return d.string(&r.Provider)
		case "protocol":
			return d.string(&r.Protocol)
		case "model":
			return d.string(&r.Model)
		case "context_window":
			return d.int(&r.ContextWindow)
		case "envelope":
			return d.string(&r.Envelope)
		case "request_sha256":
			return d.string(&r.RequestSHA256)
		case "request_bytes":
			return d.int(&r.RequestBytes)
		case "missing":
			return r.Missing == nil && d.value(&r.Missing)
		case "omitted":
			return r.Omitted == nil && d.value(&r.Omitted)
		case "estimated_tokens":
			return d.int(&r.EstimatedTokens)
		case "cache_prices":
			return d.cachePrices(&r.CachePrices)
		case "correction":
			return d.correction(&r.Correction)
		case "usage":
			return d.usage(&r.Usage)
		case "finish_reason":
			return d.string(&r.FinishReason)
		case "latency_ms":
			return d.int64(&r.LatencyMS)
		case "first_delta_ms":
			return d.int64(&r.FirstDeltaMS)
		}
		return false
	})
}

func (d *entryDecoder) window(w *Window) bool {
	return d.Object(func(name string) bool {
		switch name {
		case "epoch":
			return d.int64(&w.Epoch)
		case "start":
			return d.int64(&w.Start)
		case "pins":
			return d.seqs(&w.Pins)
		case "given_up":
			return w.GivenUp.IsZero() && d.givenUp(&w.GivenUp)
		case "preview_before":
			return d.int64(&w.PreviewBefore)
		case "line_before":
			return d.int64(&w.LineBefore)
		case "summary":
			return d.int64(&w.Summary)
		case "profile":
			return w.Profile == nil && d.profileRef(&w.Profile)
		case "left":
			return d.int(&w.Left)
		case "limit":
			return d.string(&w.Limit)
		case "cut_limit":
			return d.string(&w.CutLimit)
		case "mark":
			return d.int(&w.Mark)
		case "growth":
			return d.int(&w.Growth)
		case "markers":
			return d.bool(&w.Markers)
		}
		return false
	})
}

func (d *entryDecoder) profileRef(into **ProfileRef) bool {
	ref := &ProfileRef{}
	*into = ref
	return d.Object(func(name string) bool {
		switch name {
		case "conversation_id":
			return d.string(&ref.ConversationID)
		case "seq":
			return d.int64(&ref.Seq)
		}
		return false
	})
}

func (d *entryDecoder) givenUp(g *GivenUp) bool {
	return d.Object(func(name string) bool {
		switch name {
		case "read_again":
			return d.seqs(&g.ReadAgain)
		case "failed":
			return d.seqs(&g.Failed)
		case "described":
			return d.seqs(&g.Described)
		}
		return false
	})
}

func (d *entryDecoder) seqs(into *[]int64) bool {
	*into = nil
	return d.List(func() bool {
		*into = append(*into, 0)
		return d.int64(&(*into)[len(*into)-1])
	}) && *into != nil
}

func (d *entryDecoder) cachePrices(p *CachePrices) bool {
	return *p == (CachePrices{}) && d.Object(func(name string) bool {
		switch name {
		case "read":
			return d.int(&p.Read)
		case "write":
			return d.int(&p.Write)
		}
		return false
	})
}

func (d *entryDecoder) correction(c *Correction) bool {
	return *c == (Correction{}) && d.Object(func(name string) bool {
		switch name {
		case "ratio":
			return d.int(&c.Ratio)
		case "spread":
			return d.int(&c.Spread)
		case "reports":
			return d.int(&c.Reports)
		case "doubted":
			return d.int(&c.Doubted)
		}
		return false
	})
}

func (d *entryDecoder) usage(into **Usage) bool {
	if *into != nil {
		return false
	}
	u := &Usage{}
	*into = u
	return d.Object(func(name string) bool {
		switch name {
		case "input_tokens":
			return d.int(&u.InputTokens)
		case "output_tokens":
			return d.int(&u.OutputTokens)
		case "cached_tokens":
			return d.int(&u.CachedTokens)
		case "cache_write_tokens":
			return d.int(&u.CacheWriteTokens)
		case "reasoning_tokens":
			return d.int(&u.ReasoningTokens)
		case "cost":
			return u.Cost == (Cost{}) && d.cost(&u.Cost)
		}
		return false
	})
}

func (d *entryDecoder) cost(c *Cost) bool {
	return d.Object(func(name string) bool {
		switch name {
		case "nano":
			return d.int64(&c.Nano)
		case "currency":
			return d.string(&c.Currency)
		}
		return false
	}) && *c != (Cost{})
}

// value reads a value other than null by encoding/json.
func (d *entryDecoder) value(into any) bool {
	raw, ok := d.Raw()
	return ok && json.Unmarshal([]byte(raw), into) == nil
}

func (d *entryDecoder) string(into *string) (ok bool) {
	*into, ok = d.String()
	return ok
}

func (d *entryDecoder) int64(into *int64) (ok bool) {
	*into, ok = d.Int()
	return ok
}

func (d *entryDecoder) int(into *int) bool {
	n, ok := d.Int()
	*into = int(n)
	return ok && int64(*into) == n
}

func (d *entryDecoder) bool(into *bool) (ok bool) {
	*into, ok = d.Bool()
	return ok
}
