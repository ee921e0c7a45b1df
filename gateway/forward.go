package gateway

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/turn"
)

// forward returns a function that makes the forwarded request of a client's: its body as it came, but for the name of the
// model and for thinking that the model would refuse the request for.
func (g *Gateway) forward(r *http.Request, y *relay, asked *askedRequest, body []byte) (func(context.Context, continuo.Conversation) (*turn.Forward, error), error) {
	info := asked.upstream.Model.Info()
	sent, unsigned, err := withModel(body, info.Name), 0, error(nil)
	if info.Protocol == model.ProtocolAnthropic {
		sent, unsigned, err = g.signed(r.Context(), y.matched.conversation, info.Provider, sent)
	}
	if err != nil {
		return nil, err
	}
	return func(_ context.Context, conversation continuo.Conversation) (*turn.Forward, error) {
		made := func(sent []byte, omitted []string) (*turn.Forward, error) {
			forward := &turn.Forward{
				Body: sent, Messages: len(asked.Messages), Whole: !asked.Stream, Omitted: omitted, From: y.matched.from, Request: y.forwarding(r, info.Name, asked.upstream.ForwardCredentials),
			}
			return forward, g.forwards.Keep(forward, conversation.ID, info.Name)
		}
		forward, err := made(sent, blocksOf(unsigned, "without a signature"))
		if err != nil || info.Protocol != model.ProtocolAnthropic {
			return forward, err
		}
		forward.Retry = func(_ context.Context, failure *continuo.TurnError) (*turn.Forward, error) {
			if !model.RefusesSignature(failure) {
				return nil, nil
			}
			bare, old := withoutOldThinking(sent)
			if old == 0 {
				return nil, nil
			}
			return made(bare, blocksOf(old+unsigned, "after a signature was refused"))
		}
		return forward, nil
	}, nil
}

// signed returns a body without unsigned thinking, and how many blocks that are; the body itself where the provider's own
// has no signatures.
func (g *Gateway) signed(ctx context.Context, conversation continuo.Conversation, provider string, body []byte) ([]byte, int, error) {
	signed, count, refused := withoutUnsigned(body)
	if count == 0 && refused == nil {
		return body, 0, nil
	}
	unsigns, err := g.unsigns(ctx, conversation, provider)
	if err != nil || unsigns {
		return body, 0, err
	}
	return signed, count, refused
}

// blocksOf names thinking that a request lacks.
func blocksOf(count int, what string) []string {
	if count == 0 {
		return nil
	}
	plural := "s"
	if count == 1 {
		plural = ""
	}
	return []string{fmt.Sprintf("%d block%s of thinking %s", count, plural, what)}
}

// withModel returns a body whose model is the upstream's name of it.
func withModel(body []byte, name string) []byte {
	from, to, ok := rawjson.Find(body, "model")
	if !ok {
		return body
	}
	if text, isText := rawjson.String(body[from:to]); isText && text == name {
		return body
	}
	return slices.Concat(body[:from], rawjson.MustMarshal(name), body[to:])
}
