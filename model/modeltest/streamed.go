package modeltest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/model"
)

// streamed is everything that a stream yielded.
type streamed struct {
	deltas []model.Delta
	err    error
	answer *model.Answer
}

// listen reads a whole answer and checks that its parts are in order.
func listen(ctx context.Context, m model.Model, body []byte) (*streamed, error) {
	got := &streamed{answer: &model.Answer{Provider: m.Info().Provider}}
	for delta, err := range m.Stream(ctx, body) {
		if got.err != nil {
			return got, fmt.Errorf("something comes after the error %v", got.err)
		}
		if err != nil {
			got.err = err
			continue
		}
		got.deltas = append(got.deltas, delta)
		got.answer.Add(delta)
	}
	return got, got.check()
}

// check returns how the deltas violate the contract of model.Model.
func (g *streamed) check() error {
	var failure *model.Error
	if g.err != nil && !errors.As(g.err, &failure) {
		return fmt.Errorf("the error %v is no *model.Error", g.err)
	}
	if g.err == nil && g.answer.Finish() == "" {
		return errors.New("the stream ended well without a finish reason")
	}
	if failure != nil && (failure.Reason == "" || failure.Message == "") {
		return fmt.Errorf("the error %#v has no reason or no message", failure)
	}
	finished, vendor, begun := false, false, map[int]bool{}
	for i, delta := range g.deltas {
		hasContent := delta.Text != "" || delta.Reasoning != "" || delta.Signature != "" || delta.ToolCall != nil
		switch {
		case hasContent && (finished || vendor):
			return fmt.Errorf("delta %d: content after the end", i)
		case delta.Finish != "" && finished:
			return fmt.Errorf("delta %d: a second finish", i)
		case delta.Vendor != nil && (vendor || !json.Valid(delta.Vendor)):
			return fmt.Errorf("delta %d: vendor data twice, or no JSON: %s", i, delta.Vendor)
		}
		finished, vendor = finished || delta.Finish != "", vendor || delta.Vendor != nil
		if call := delta.ToolCall; call != nil {
			if !begun[call.Index] && (call.ID == "" || call.Type == "" || call.Name == "" && g.err == nil || call.Index != len(begun)) {
				return fmt.Errorf("delta %d: a call begins without its id, type or name, or out of order: %+v", i, *call)
			}
			begun[call.Index] = true
		}
	}
	return g.acceptable()
}

// acceptable returns the reason for which the log would refuse the resulting entry, nil if it accepts the
// entry.
func (g *streamed) acceptable() error {
	entry := g.answer.Entry(g.err)
	if err := new(continuo.Group).Accept(&entry); err != nil {
		return fmt.Errorf("the log would refuse the entry: %w", err)
	}
	if _, err := rawjson.Marshal(entry); err != nil {
		return fmt.Errorf("the entry cannot be written: %w", err)
	}
	return nil
}

// deltaJSON is a delta in a transcript.
type deltaJSON struct {
	Model     string          `json:"model,omitempty"`
	Reasoning string          `json:"reasoning,omitempty"`
	Signature string          `json:"signature,omitempty"`
	Text      string          `json:"text,omitempty"`
	ToolCall  *callJSON       `json:"tool_call,omitempty"`
	Finish    string          `json:"finish,omitempty"`
	Usage     *continuo.Usage `json:"usage,omitempty"`
	Item      json.RawMessage `json:"item,omitempty"`
	Vendor    json.RawMessage `json:"vendor,omitempty"`
}

type callJSON struct {
	Index     int             `json:"index"`
	ID        string          `json:"id,omitempty"`
	Type      string          `json:"type,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments string          `json:"arguments,omitempty"`
	Extra     json.RawMessage `json:"extra,omitempty"`
	Done      bool            `json:"done,omitempty"`
}

// deltasText writes the section deltas.
func (g *streamed) deltasText() []byte {
	var out bytes.Buffer
	for _, delta := range g.deltas {
		line := deltaJSON{
			Model: delta.Model, Reasoning: delta.Reasoning, Signature: delta.Signature, Text: delta.Text,
			Finish: delta.Finish, Usage: delta.Usage, Vendor: delta.Vendor, Item: delta.Item,
		}
		if delta.ToolCall != nil {
			line.ToolCall = (*callJSON)(delta.ToolCall)
		}
		out.Write(rawjson.MustMarshal(line))
		out.WriteByte('\n')
	}
	return out.Bytes()
}

// answerText writes the section answer; host is written as UPSTREAM.
func (g *streamed) answerText(host string) []byte {
	type failure struct {
		Reason       continuo.FailureReason `json:"reason"`
		Status       int                    `json:"status,omitempty"`
		Retryable    bool                   `json:"retryable"`
		RetryAfterMS int64                  `json:"retry_after_ms,omitempty"`
	}
	answer := struct {
		Finish string          `json:"finish,omitempty"`
		Model  string          `json:"model,omitempty"`
		Usage  *continuo.Usage `json:"usage,omitempty"`
		Error  *failure        `json:"error,omitempty"`
		Entry  continuo.Entry  `json:"entry"`
	}{g.answer.Finish(), g.answer.Model(), g.answer.Usage(), nil, g.answer.Entry(g.err)}
	if g.err != nil {
		err := model.AsError(g.err)
		answer.Error = &failure{err.Reason, err.Status, err.Retryable, err.RetryAfter.Milliseconds()}
	}
	var out bytes.Buffer
	if err := json.Indent(&out, rawjson.MustMarshal(answer), "", "  "); err != nil {
		panic(err) // the input was just written as JSON
	}
	out.WriteByte('\n')
	if host == "" {
		return out.Bytes()
	}
	return []byte(strings.ReplaceAll(out.String(), host, "UPSTREAM"))
}
