package demo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/backoff"
	"github.com/continuo-log/continuo/model"
)

// Stream answers the body; see [model.Model]. A body that is not a chat completions request fails with status
// 400, as with an upstream.
func (m *Model) Stream(ctx context.Context, body []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		if err := model.ContextError(ctx); err != nil {
			yield(model.Delta{}, err)
			return
		}
		request, err := parseRequest(body)
		if err != nil {
			yield(model.Delta{}, &model.Error{
				Reason: continuo.ReasonUpstream, Status: 400, Message: "the demo model cannot read the request: " + err.Error(),
			})
			return
		}
		for _, delta := range m.deltas(request, body) {
			if err := m.wait(ctx, delta); err != nil {
				yield(model.Delta{}, err)
				return
			}
			if !yield(delta, nil) {
				return
			}
		}
	}
}

// wait waits for the delay of a word.
func (m *Model) wait(ctx context.Context, delta model.Delta) error {
	if m.options.WordDelay > 0 && (delta.Text != "" || delta.ToolCall != nil) {
		_ = backoff.Wait(ctx, m.options.WordDelay) // the code after it reports why it ended
	}
	if err := model.ContextError(ctx); err != nil {
		return err
	}
	return nil
}

// deltas splits the whole answer into pieces.
func (m *Model) deltas(request *request, body []byte) []model.Delta {
	text, calls := request.reply()
	deltas := []model.Delta{{Model: m.options.Name}}
	for _, word := range strings.SplitAfter(text, " ") {
		deltas = append(deltas, model.Delta{Text: word})
	}
	written := utf8.RuneCountInString(text)
	for i, call := range calls {
		deltas = append(deltas, call.deltas(i, body)...)
		written += utf8.RuneCountInString(call.name + call.arguments)
	}
	finish := "stop"
	if len(calls) > 0 {
		finish = "tool_calls"
	}
	usage := &continuo.Usage{InputTokens: tokens(request.size), OutputTokens: tokens(written)}
	return append(deltas, model.Delta{Finish: finish}, model.Delta{Usage: usage})
}

// tokens estimates a token count.
func tokens(chars int) int { return (chars + 3) / 4 }

// call is a call that the model makes.
type call struct{ name, arguments string }

// pieceBytes is how many bytes of a call's arguments one delta carries.
const pieceBytes = 24

// deltas splits the call into pieces. Its id is derived from the request, so that it is new in each round.
func (c call) deltas(index int, body []byte) []model.Delta {
	sum := sha256.Sum256(body)
	id := fmt.Sprintf("call_%s_%d", hex.EncodeToString(sum[:8]), index)
	pieces := []model.ToolCallDelta{{Index: index, ID: id, Type: "function", Name: c.name}}
	for rest := c.arguments; rest != ""; {
		n := min(pieceBytes, len(rest))
		for n < len(rest) && !utf8.RuneStart(rest[n]) {
			n++
		}
		pieces = append(pieces, model.ToolCallDelta{Index: index, Arguments: rest[:n]})
		rest = rest[n:]
	}
	pieces = append(pieces, model.ToolCallDelta{Index: index, Done: true})
	deltas := make([]model.Delta, len(pieces))
	for i := range pieces {
		deltas[i].ToolCall = &pieces[i]
	}
	return deltas
}
