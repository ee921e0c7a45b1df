package continuo

import "github.com/continuo-log/continuo/internal/rawjson"

// MarshalJSON writes the snake_case form without defaults.
func (e Entry) MarshalJSON() ([]byte, error) { return e.encode() }

// encode writes what encodeAny writes, without reflection but for fields that few entries have: tests compare the two.
func (e *Entry) encode() ([]byte, error) {
	size := e.storedSize()
	w := rawjson.Encoder{To: make([]byte, 0, size+size/16+512)}
	w.Open()
	w.Text("id", e.ID)
	w.Text("conversation_id", e.ConversationID)
	w.Number("seq", e.Seq)
	if !e.CreatedAt.IsZero() {
		w.Name("created_at")
		at, err := e.CreatedAt.AppendText(append(w.To, '"'))
		if err != nil {
			return e.encodeAny() // for its error
		}
		w.To = append(at, '"')
	}
	w.String("role", string(e.Role))
	if !e.Content.IsZero() {
		w.Name("content")
		e.Content.encode(&w)
	}
	e.encodeCalls(&w)
	w.Text("tool_call_id", e.ToolCallID)
	w.Text("name", e.Name)
	if e.Reasoning != nil {
		w.Name("reasoning")
		w.Open()
		w.String("text", e.Reasoning.Text)
		w.Text("signature", e.Reasoning.Signature)
		w.Close()
	}
	if e.Error != nil {
		w.Any("error", e.Error)
	}
	e.encodeOrigin(&w)
	e.encodeRare(&w)
	if e.Hidden {
		w.Name("include_in_context")
		w.To = append(w.To, "false"...)
	}
	w.Close()
	if w.Err != nil {
		return e.encodeAny() // for its error
	}
	return w.To, nil
}

// encodeAny writes an entry by reflection.
func (e *Entry) encodeAny() ([]byte, error) {
	if !e.Hidden {
		return rawjson.Marshal((*plainEntry)(e))
	}
	return rawjson.Marshal(struct {
		*plainEntry
		IncludeInContext bool `json:"include_in_context"`
	}{plainEntry: (*plainEntry)(e)})
}

func (c *Content) encode(w *rawjson.Encoder) {
	if c.kind == contentText {
		w.To = rawjson.AppendString(w.To, c.text)
		return
	}
	w.Value(c)
}

func (e *Entry) encodeCalls(w *rawjson.Encoder) {
	if len(e.ToolCalls) == 0 {
		return
	}
	w.Name("tool_calls")
	for i := range e.ToolCalls {
		w.To = append(w.To, "[,"[min(i, 1)])
		e.ToolCalls[i].encode(w)
	}
	w.To = append(w.To, ']')
}

func (c *ToolCall) encode(w *rawjson.Encoder) {
	if len(c.Extra) > 0 {
		w.Value(c)
		return
	}
	inner, arguments := "function", "arguments"
	if c.Type == "custom" {
		inner, arguments = "custom", "input"
	}
	w.Open()
	w.String("id", c.ID)
	w.String("type", inner)
	w.Name(inner)
	w.Open()
	w.String("name", c.Name)
	w.String(arguments, c.Arguments)
	w.Close()
	w.Close()
}

// encodeOrigin writes the fields that say where an entry comes from, and those for user interfaces.
func (e *Entry) encodeOrigin(w *rawjson.Encoder) {
	w.Text("mode", string(e.Mode))
	w.Text("run_id", e.RunID)
	w.Text("workflow_id", e.WorkflowID)
	w.Text("node_id", e.NodeID)
	w.Text("agent_id", e.AgentID)
	w.Text("turn_id", e.TurnID)
	if e.Author != nil {
		w.Name("author")
		w.Open()
		w.Text("role_name", e.Author.RoleName)
		w.Text("display_name", e.Author.DisplayName)
		w.Text("agent_name", e.Author.AgentName)
		w.Close()
	}
	w.Text("part_type", e.PartType)
	w.Text("tool_name", e.ToolName)
	w.Text("outcome", e.Outcome)
	w.Number("duration_ms", e.DurationMS)
	w.Bool("is_collapsed", e.IsCollapsed)
	if len(e.Widget) > 0 {
		w.Any("widget", e.Widget)
	}
	w.Text("output_ref", e.OutputRef)
	if e.Output != nil {
		w.Any("output", e.Output)
	}
	if len(e.Attachments) > 0 {
		w.Any("attachments", e.Attachments)
	}
	w.Number("chars", int64(e.Chars))
	w.Number("tokens", int64(e.Tokens))
	w.Text("tokenizer", e.Tokenizer)
}

func (e *Entry) encodeRare(w *rawjson.Encoder) {
	if e.Round != nil {
		w.Name("round")
		e.Round.encode(w)
	}
	if e.RunEvent != nil {
		w.Any("run_event", e.RunEvent)
	}
	if e.TaskEvent != nil {
		w.Any("task_event", e.TaskEvent)
	}
	if e.Summary != nil {
		w.Any("summary", e.Summary)
	}
	if e.Fact != nil {
		w.Any("fact", e.Fact)
	}
	if e.Profile != nil {
		w.Any("profile", e.Profile)
	}
	w.Bool("no_memory", e.NoMemory)
	if e.Recall != nil {
		w.Any("recall", e.Recall)
	}
	if len(e.Vendor) > 0 {
		w.Any("vendor", e.Vendor)
	}
	if len(e.Repairs) > 0 {
		w.Any("repairs", e.Repairs)
	}
	if e.Redacted != nil {
		w.Any("redacted", e.Redacted)
	}
	if len(e.Extra) > 0 {
		w.Any("extra", e.Extra)
	}
}

func (r *Round) encode(w *rawjson.Encoder) {
	w.Open()
	w.String("view", r.View)
	w.String("view_hash", r.ViewHash)
	w.Int("at", r.At)
	w.Name("window")
	r.Window.encode(w)
	w.Number("cursor", r.Cursor)
	w.Text("provider", r.Provider)
	w.Text("protocol", r.Protocol)
	w.Text("model", r.Model)
	w.Number("context_window", int64(r.ContextWindow))
	w.Text("envelope", r.Envelope)
	w.Text("request_sha256", r.RequestSHA256)
	w.Number("request_bytes", int64(r.RequestBytes))
	if p := r.CachePrices; p != (CachePrices{}) {
		w.Name("cache_prices")
		w.Open()
		w.Int("read", int64(p.Read))
		w.Int("write", int64(p.Write))
		w.Close()
	}
	if len(r.Missing) > 0 {
		w.Any("missing", r.Missing)
	}
	if len(r.Omitted) > 0 {
		w.Any("omitted", r.Omitted)
	}
	w.Number("estimated_tokens", int64(r.EstimatedTokens))
	if c := r.Correction; c != (Correction{}) {
		w.Name("correction")
		w.Open()
		w.Int("ratio", int64(c.Ratio))
		w.Number("spread", int64(c.Spread))
		w.Int("reports", int64(c.Reports))
		w.Number("doubted", int64(c.Doubted))
		w.Close()
	}
	if u := r.Usage; u != nil {
		w.Name("usage")
		w.Open()
		w.Int("input_tokens", int64(u.InputTokens))
		w.Int("output_tokens", int64(u.OutputTokens))
		w.Number("cached_tokens", int64(u.CachedTokens))
		w.Number("cache_write_tokens", int64(u.CacheWriteTokens))
		w.Number("reasoning_tokens", int64(u.ReasoningTokens))
		if u.Cost != (Cost{}) {
			w.Name("cost")
			w.Open()
			w.Int("nano", u.Cost.Nano)
			w.String("currency", u.Cost.Currency)
			w.Close()
		}
		w.Close()
	}
	w.Text("finish_reason", r.FinishReason)
	w.Number("latency_ms", r.LatencyMS)
	w.Number("first_delta_ms", r.FirstDeltaMS)
	w.Close()
}

func (g *GivenUp) encode(to *rawjson.Encoder) {
	if g.IsZero() {
		return
	}
	to.Name("given_up")
	to.Open()
	for _, list := range []struct {
		name string
		seqs []int64
	}{{"read_again", g.ReadAgain}, {"failed", g.Failed}, {"described", g.Described}} {
		if len(list.seqs) > 0 {
			to.Any(list.name, list.seqs)
		}
	}
	to.Close()
}

func (w *Window) encode(to *rawjson.Encoder) {
	to.Open()
	to.Int("epoch", w.Epoch)
	to.Int("start", w.Start)
	if len(w.Pins) > 0 {
		to.Any("pins", w.Pins)
	}
	to.Number("preview_before", w.PreviewBefore)
	to.Number("line_before", w.LineBefore)
	w.GivenUp.encode(to)
	to.Number("summary", w.Summary)
	if p := w.Profile; p != nil {
		to.Name("profile")
		to.Open()
		to.String("conversation_id", p.ConversationID)
		to.Int("seq", p.Seq)
		to.Close()
	}
	to.Number("left", int64(w.Left))
	to.Text("limit", w.Limit)
	to.Text("cut_limit", w.CutLimit)
	to.Number("mark", int64(w.Mark))
	to.Number("growth", int64(w.Growth))
	to.Bool("markers", w.Markers)
	to.Close()
}
