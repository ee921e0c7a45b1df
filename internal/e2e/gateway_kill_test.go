package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/sse"
)

// gatewayKind is an endpoint through which a client streams.
type gatewayKind struct {
	path string
	// body asks with the messages of the client's history, each of them JSON, or with the newest one alone where the server
	// keeps the history.
	body     func(conversation string, history []json.RawMessage) any
	stateful bool
	// text is what an event adds to the answer; ended says that nothing follows.
	text func(event sse.Event) (text string, ended bool)
}

var gatewayKinds = []gatewayKind{
	{
		path: "/v1/chat/completions",
		body: func(_ string, history []json.RawMessage) any {
			return map[string]any{"model": "main", "stream": true, "messages": history}
		},
		text: func(event sse.Event) (string, bool) {
			var chunk struct {
				Choices []struct{ Delta struct{ Content string } }
			}
			_ = json.Unmarshal(event.Data, &chunk) // [DONE] has none
			if len(chunk.Choices) == 0 {
				return "", string(event.Data) == "[DONE]"
			}
			return chunk.Choices[0].Delta.Content, false
		},
	},
	{
		path: "/v1/messages",
		body: func(_ string, history []json.RawMessage) any {
			return map[string]any{"model": "main", "max_tokens": 4000, "stream": true, "messages": history}
		},
		text: func(event sse.Event) (string, bool) {
			var delta struct{ Delta struct{ Text string } }
			_ = json.Unmarshal(event.Data, &delta)
			return delta.Delta.Text, event.Type == "message_stop"
		},
	},
	{
		path: "/v1/responses", stateful: true,
		body: func(conversation string, history []json.RawMessage) any {
			body := map[string]any{"model": "main", "stream": true, "input": history[len(history)-1:]}
			if conversation != "" {
				body["conversation"] = conversation
			}
			return body
		},
		text: func(event sse.Event) (string, bool) {
			var delta struct{ Delta string }
			if event.Type == "response.output_text.delta" {
				_ = json.Unmarshal(event.Data, &delta)
			}
			return delta.Delta, event.Type == "response.completed"
		},
	},
}

// gatewayClient streams through an endpoint, in one conversation after another, and keeps what it received.
type gatewayClient struct {
	t        *testing.T
	upstream *scripted
	random   *rand.Rand
	kind     *gatewayKind
	name     string

	key          string // of the conversation
	begun        int    // conversations
	history      []json.RawMessage
	said         []string // the client's messages in this conversation that the server has answered, or that are sent again
	lost         []string // messages whose request broke off before any answer: the server may have them
	answers      []string // the texts of whole answers
	conversation string   // its id; "" until it is known
	mayFork      bool     // its newest request was answered, which it does not know
	open         *gatewayAttempt
	kept         []keptStream
}

// keptStream is the whole stream of a response, which is replayed again and again.
type keptStream struct {
	id    string
	bytes []byte
}

// gatewayAttempt is a request, and what the client received of its answer.
type gatewayAttempt struct {
	want         string // the text of the answer
	conversation string // "" where the header did not arrive
	matched      string // what decided on it
	raw          []byte // the bytes of whole events
	text         string
	ended        bool
}

func gatewayMessage(role, text string) json.RawMessage {
	raw, _ := json.Marshal(map[string]string{"role": role, "content": text})
	return raw
}

// ask sends the newest message, or again the one whose answer broke off.
func (c *gatewayClient) ask(ctx context.Context, k *killable) {
	if len(c.said) >= 6 && c.open == nil || c.key == "" {
		c.begun++
		c.key, c.history, c.said, c.lost, c.answers, c.conversation = fmt.Sprintf("%s-%d", c.name, c.begun), nil, nil, nil, nil, ""
	}
	var header []string
	if c.open != nil {
		header = []string{"X-Stainless-Retry-Count", "1"} // as the vendors' own clients say it
	} else {
		text := fmt.Sprintf("tell me %d %s", len(c.said)+len(c.lost), markOf(c.key))
		c.said, c.history = append(c.said, text), append(c.history, gatewayMessage("user", text))
	}
	what := script{piece: 8 + c.random.IntN(60), pace: time.Duration(1+c.random.IntN(4)) * time.Millisecond}
	want := prose(fmt.Sprintf("%s-a%d", c.key, len(c.said)), what.piece*(10+c.random.IntN(80)))
	if c.open != nil {
		want = c.open.want // an answer that was whole before the kill is repeated
	}
	what.rounds = []scriptedAnswer{{text: want}}
	c.upstream.play(k.apiKey, c.key, what)
	c.open = &gatewayAttempt{want: want}
	conversation := ""
	if c.kind.stateful {
		conversation = c.conversation
	}
	response, err := k.do(ctx, http.MethodPost, c.kind.path, c.kind.body(conversation, c.history), header...)
	if err != nil {
		return // killed before it answered
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		said, err := io.ReadAll(response.Body)
		if err == nil {
			c.errorf("%d %s", response.StatusCode, said)
		}
		return
	}
	c.open.conversation = response.Header.Get("X-Conversation-Id")
	c.open.matched = response.Header.Get("X-Continuo-Matched")
	c.open.read(response.Body, c.kind)
}

// read reads events until the stream ends or breaks.
func (a *gatewayAttempt) read(body io.Reader, kind *gatewayKind) {
	events := sse.NewReader(body, 0)
	events.KeepRaw()
	for {
		event, err := events.Next()
		if err != nil || event.Cut {
			return
		}
		a.raw = append(a.raw, events.TakeRaw()...)
		text, ended := kind.text(event)
		a.text += text
		a.ended = a.ended || ended
	}
}

func (c *gatewayClient) errorf(format string, args ...any) {
	c.t.Helper()
	c.t.Errorf("%s through %s: %s", c.key, c.kind.path, fmt.Sprintf(format, args...))
}

// finish takes an answer that is whole.
func (c *gatewayClient) finish() {
	a := c.open
	c.conversation, c.mayFork = a.conversation, false
	if a.text != a.want {
		c.errorf("the client got %q of %q", a.text, a.want)
	}
	if c.kind.stateful {
		c.kept = append(c.kept, keptStream{a.responseID(), a.raw})
	}
	c.history, c.answers, c.open = append(c.history, gatewayMessage("assistant", a.text)), append(c.answers, a.text), nil
}

// responseID is the id of the response that the client received.
func (a *gatewayAttempt) responseID() string {
	_, rest, _ := strings.Cut(string(a.raw), `"response":{"id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	return id
}

// check checks what became of the client's conversation, and of the request that was under way: nothing that the client
// received is lost, and the log has each of its messages once.
func (c *gatewayClient) check(ctx context.Context, k *killable) {
	a := c.open
	if a != nil {
		if a.conversation != "" {
			if c.conversation != "" && c.conversation != a.conversation && !c.mayFork {
				c.errorf("the conversation is %s, matched by %s, was %s with\n%s\nThe client sent\n%s", a.conversation, a.matched, c.conversation, c.shownLog(ctx, k), c.history)
			}
			c.conversation = a.conversation
		}
		if !strings.HasPrefix(a.want, a.text) {
			c.errorf("the client got %q of %q", a.text, a.want)
		}
		if c.kind.stateful {
			c.open = nil // the server has the message, or may have it: the client sends another one
			if a.conversation == "" {
				c.lost, c.said = append(c.lost, c.said[len(c.said)-1]), c.said[:len(c.said)-1]
			}
		}
		if c.kind.stateful && len(a.raw) > 0 {
			c.checkBroken(ctx, k, a)
		}
	}
	if c.conversation != "" {
		c.checkLog(ctx, k, a)
	}
	if len(c.kept) > 0 {
		c.checkReplay(ctx, k)
	}
}

// checkLog checks the log of the conversation, at whose end is the answer of an attempt that broke off; nil for none.
func (c *gatewayClient) checkLog(ctx context.Context, k *killable, a *gatewayAttempt) {
	var page struct{ Data []continuo.Entry }
	status, err := k.get(ctx, "/api/conversations/"+c.conversation+"/entries?limit=1000", &page)
	if err != nil || status != http.StatusOK {
		c.errorf("entries: %d, %v", status, err)
		return
	}
	var users, answers []string
	for _, entry := range page.Data {
		text := entry.Content.String()
		switch {
		case entry.Role == continuo.User && slices.Contains(c.lost, text) && !slices.Contains(users, text):
		case entry.Role == continuo.User:
			users = append(users, text)
		case entry.Role == continuo.Assistant && entry.Error == nil:
			answers = append(answers, text)
		case entry.Role == continuo.Assistant && entry.Error.Reason != continuo.ReasonInterrupted:
			c.errorf("an answer broke off with %+v", entry.Error)
		}
	}
	said := c.said
	if a != nil && a.conversation == "" && !c.kind.stateful && len(users) == len(said)-1 {
		said = said[:len(said)-1] // its request may not have arrived
	}
	if !slices.Equal(users, said) {
		c.errorf("the log has the messages %q, the client sent %q", users, said)
	}
	last := page.Data[len(page.Data)-1]
	whole := last.Role == continuo.Assistant && last.Error == nil && len(answers) == len(c.answers)+1 // the client did not get its end
	if whole && (a == nil || answers[len(answers)-1] != a.want) || !whole && len(answers) != len(c.answers) || !slices.Equal(answers[:len(c.answers)], c.answers) {
		c.errorf("the log has the answers %q, the client got %q", answers, c.answers)
	}
	switch {
	case whole && c.kind.stateful: // it is not asked again
		c.answers = answers
	case whole: // the client repeats a request that was answered, which may be answered again in a fork
		c.mayFork = true
	}
	if text := last.Content.String(); a != nil && a.text != "" && (!strings.HasPrefix(text, a.text) || !strings.HasPrefix(a.want, text)) {
		c.errorf("the log ends with %s %q, the client got %q", last.Role, text, a.text)
	}
}

// shownLog is the log of the client's conversation, for a message.
func (c *gatewayClient) shownLog(ctx context.Context, k *killable) string {
	var page struct{ Data []continuo.Entry }
	if _, err := k.get(ctx, "/api/conversations/"+c.conversation+"/entries?limit=1000", &page); err != nil {
		return err.Error()
	}
	text := ""
	for _, entry := range page.Data {
		text += fmt.Sprintf("%d %s %q, turn %s, error %+v\n", entry.Seq, entry.Role, entry.Content.String(), entry.TurnID, entry.Error)
	}
	return text
}

// checkBroken checks that a response that broke off is replayed with the bytes that the client received before the kill.
func (c *gatewayClient) checkBroken(ctx context.Context, k *killable, a *gatewayAttempt) {
	whole := c.replay(ctx, k, a.responseID(), -1)
	if !bytes.HasPrefix(whole, a.raw) {
		c.errorf("%s is replayed as\n%s\nthe client got\n%s", a.responseID(), whole, a.raw)
	}
	if !bytes.HasSuffix(whole, []byte("data: [DONE]\n\n")) {
		c.errorf("the replay of %s ends with %q", a.responseID(), whole[max(0, len(whole)-80):])
	}
	c.kept = append(c.kept, keptStream{a.responseID(), whole})
}

// checkReplay checks that an earlier response has the bytes that it had, from any event on.
func (c *gatewayClient) checkReplay(ctx context.Context, k *killable) {
	older := c.kept[c.random.IntN(len(c.kept))]
	blocks := bytes.SplitAfter(older.bytes, []byte("\n\n"))
	after := c.random.IntN(max(1, len(blocks)-2))
	for after, want := range map[int][]byte{-1: older.bytes, after: bytes.Join(blocks[after+1:], nil)} {
		if got := c.replay(ctx, k, older.id, after); !bytes.Equal(got, want) {
			c.errorf("%s is replayed after %d as\n%s\nits bytes were\n%s", older.id, after, got, want)
		}
	}
}

// replay reads the stream of a response after an event; -1 for all of it.
func (c *gatewayClient) replay(ctx context.Context, k *killable, id string, after int) []byte {
	path := "/v1/responses/" + id + "?stream=true"
	if after >= 0 {
		path += fmt.Sprintf("&starting_after=%d", after)
	}
	response, err := k.do(ctx, http.MethodGet, path, nil)
	if err == nil {
		defer response.Body.Close()
		var read []byte
		if read, err = io.ReadAll(response.Body); err == nil && response.StatusCode == http.StatusOK {
			return read
		}
		err = errors.Join(err, fmt.Errorf("%d %s", response.StatusCode, read))
	}
	c.errorf("replay of %s: %v", id, err)
	return nil
}

// TestKilledProgramsBehindTheGateway kills the program again and again while clients stream through /v1: chat completions
// that are forwarded, messages to a model of another protocol, and responses whose history the server keeps. Nothing
// that they received is lost, a repeated request adds no message twice, and a response gives the same bytes afterwards.
func TestKilledProgramsBehindTheGateway(t *testing.T) {
	t.Parallel()
	random := killTest(t)
	upstream := startScripted(t)
	h := newHome(t, upstream)
	var clients []*gatewayClient
	for i := range 6 {
		clients = append(clients, &gatewayClient{
			t: t, upstream: upstream, kind: &gatewayKinds[i%len(gatewayKinds)], name: fmt.Sprintf("g%d", i),
			random: rand.New(rand.NewPCG(random.Uint64(), random.Uint64())),
		})
	}
	broken, kills := 0, rounds(10, 100)
	for kill := 0; kill < kills || broken == 0; kill++ { // until the test shows something
		k := h.launch(t)
		k.ready(t)
		var checked, ended sync.WaitGroup
		for _, c := range clients {
			checked.Go(func() { c.check(t.Context(), k) })
		}
		checked.Wait()
		for _, c := range clients {
			ended.Go(func() {
				for range 3 { // then the client waits for the kill
					c.ask(t.Context(), k)
					if !c.open.ended {
						return
					}
					c.finish()
				}
			})
		}
		letRun(t, k, time.Duration(100+random.IntN(700))*time.Millisecond)
		k.kill(t)
		ended.Wait()
		for _, c := range clients {
			if c.open != nil {
				broken++
			}
		}
		if t.Failed() {
			t.Fatalf("after kill %d", kill+1)
		}
	}
	k := h.launch(t)
	k.ready(t)
	for _, c := range clients {
		c.check(t.Context(), k)
		c.ask(t.Context(), k)
		if !c.open.ended {
			c.errorf("the answer ends with %q", c.open.raw[max(0, len(c.open.raw)-300):])
			continue
		}
		c.finish()
		c.check(t.Context(), k)
	}
	t.Logf("%d answers broke off, %d responses were kept", broken, len(clients[2].kept)+len(clients[5].kept))
}
