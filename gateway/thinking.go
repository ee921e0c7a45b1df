package gateway

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// Anthropic's models accept only thinking that they have signed. A request is refused whole for a block that another
// provider has made, or that a proxy rewrote. Such blocks are not needed in a tool loop that is
// finished, but in one that is not, the model must get its own thinking back.

// thinkingBlock is a block of thinking in a request of Anthropic's API.
type thinkingBlock struct {
	message, block int
	signed         bool
	open           bool // the tool loop of its message is not finished
}

// anthropicRequest is a request of Anthropic's API as far as its thinking goes. No part of its body is encoded again.
type anthropicRequest struct {
	body     []byte
	messages []rawjson.Span
	blocks   map[int][]rawjson.Span // of the content of messages that are lists, in the body
	thinking []thinkingBlock
	thinks   bool // the model is asked to think
}

func readThinking(body []byte) *anthropicRequest {
	r := &anthropicRequest{body: body, messages: rawjson.ElementSpans(body, "messages"), blocks: map[int][]rawjson.Span{}}
	if from, to, ok := rawjson.Find(body, "thinking"); ok {
		asked, err := rawjson.ParseObject(body[from:to])
		kind, _ := rawjson.String(asked.Get("type"))
		r.thinks = err == nil && kind != "disabled"
	}
	lastUser := -1 // the newest message of the user that is no result
	for i, span := range r.messages {
		message := body[span.Start:span.End]
		from, to, ok := rawjson.Find(message, "role")
		if !ok {
			continue
		}
		role, _ := rawjson.String(message[from:to])
		results := false
		for n, block := range rawjson.ElementSpans(message, "content") {
			raw := message[block.Start:block.End]
			r.blocks[i] = append(r.blocks[i], rawjson.Span{Start: span.Start + block.Start, End: span.Start + block.End})
			switch kind := memberText(raw, "type"); {
			case kind == "tool_result":
				results = true
			case role == string(continuo.Assistant) && (kind == "thinking" || kind == "redacted_thinking"):
				signed := kind == "redacted_thinking" || memberText(raw, "signature") != ""
				r.thinking = append(r.thinking, thinkingBlock{message: i, block: n, signed: signed})
			}
		}
		if role == string(continuo.User) && !results {
			lastUser = i
		}
	}
	for i := range r.thinking {
		r.thinking[i].open = r.thinking[i].message > lastUser
	}
	return r
}

// memberText is a member of an object that is a string; "" for any other.
func memberText(object []byte, name string) string {
	from, to, ok := rawjson.Find(object, name)
	if !ok {
		return ""
	}
	text, _ := rawjson.String(object[from:to])
	return text
}

// without returns the body without some of its thinking. Messages that have nothing else are left out.
func (r *anthropicRequest) without(dropped func(thinkingBlock) bool) (body []byte, count int) {
	drop := map[int]map[int]bool{}
	for _, block := range r.thinking {
		if !dropped(block) {
			continue
		}
		if drop[block.message] == nil {
			drop[block.message] = map[int]bool{}
		}
		drop[block.message][block.block] = true
		count++
	}
	if count == 0 {
		return r.body, 0
	}
	emptied := func(i int) bool { return len(drop[i]) > 0 && len(drop[i]) == len(r.blocks[i]) }
	cuts := cutElements(r.messages, emptied)
	for i := range r.messages {
		if !emptied(i) {
			cuts = append(cuts, cutElements(r.blocks[i], func(n int) bool { return drop[i][n] })...)
		}
	}
	slices.SortFunc(cuts, func(a, b rawjson.Span) int { return a.Start - b.Start })
	at := 0
	for _, cut := range cuts {
		body = append(body, r.body[at:cut.Start]...)
		at = cut.End
	}
	return append(body, r.body[at:]...), count
}

// cutElements returns what to cut out of a list for some of its elements, with a comma each. At least one is kept.
func cutElements(elements []rawjson.Span, dropped func(int) bool) (cuts []rawjson.Span) {
	kept := false
	for i, element := range elements {
		switch {
		case !dropped(i):
			kept = true
		case kept:
			cuts = append(cuts, rawjson.Span{Start: elements[i-1].End, End: element.End})
		default:
			cuts = append(cuts, rawjson.Span{Start: element.Start, End: elements[i+1].Start})
		}
	}
	return cuts
}

// withoutUnsigned returns a request's body without unsigned thinking, and how many blocks that are. It refuses a request
// whose model is asked to think in a tool loop with such a block.
func withoutUnsigned(body []byte) ([]byte, int, error) {
	if !bytes.Contains(body, []byte(`thinking"`)) {
		return body, 0, nil
	}
	r := readThinking(body)
	for _, block := range r.thinking {
		if !block.signed && block.open && r.thinks {
			return nil, 0, &api.Problem{
				Status: http.StatusBadRequest, Type: api.InvalidRequest, Code: "unsigned_thinking", Param: fmt.Sprintf("messages[%d].content[%d]", block.message, block.block),
				Message: fmt.Sprintf("messages[%d].content[%d] is thinking without a signature in a tool loop that is not finished: the model needs its own thinking there, and this was made by another. "+
					"Let the model that began the loop finish it, or send the request with thinking disabled, or without the loop", block.message, block.block),
			}
		}
	}
	sent, count := r.without(func(block thinkingBlock) bool { return !block.signed })
	return sent, count, nil
}

// withoutOldThinking returns a request's body without the thinking of tool loops that are finished.
func withoutOldThinking(body []byte) ([]byte, int) {
	r := readThinking(body)
	return r.without(func(block thinkingBlock) bool { return !block.open || !r.thinks })
}

// unsigns reports whether a provider's own thinking in a conversation has no signatures, so that it accepts such thinking
// back.
func (g *Gateway) unsigns(ctx context.Context, conversation continuo.Conversation, provider string) (bool, error) {
	if conversation.ID == "" {
		return false, nil
	}
	for entry, err := range g.engine.Conversations.Read(ctx, conversation, continuo.Range{Backward: true}) {
		if err != nil {
			return false, err
		}
		if entry.Round != nil && entry.Round.Provider == provider && entry.Error == nil && entry.Reasoning != nil && entry.Reasoning.Text != "" {
			return entry.Reasoning.Signature == "" && !bytes.Contains(entry.Vendor[provider], []byte(`"signature"`)), nil
		}
	}
	return false, nil
}
