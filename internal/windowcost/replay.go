package main

import (
	"context"
	"iter"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/interchange"
	"github.com/continuo-log/continuo/render"
	"github.com/continuo-log/continuo/token"
	"github.com/continuo-log/continuo/window"
)

// conversation is a conversation in memory, as the log numbers and counts it; a window.Source of its first entries.
type conversation struct {
	all     []continuo.Entry
	entries []continuo.Entry // so far
	bytes   map[shownAs]int  // of the rendered message
}

// shownAs is a message in one of its forms.
type shownAs struct {
	seq  int64
	size continuo.Size
}

// capture is a store that keeps what a log creates.
type capture struct {
	continuo.Store
	entries []continuo.Entry
}

func (c *capture) Create(_ context.Context, _ continuo.Conversation, entries []continuo.Entry) error {
	c.entries = entries
	return nil
}

func imported(document interchange.Document) (*conversation, error) {
	kept := &capture{}
	log := continuo.NewLog(kept, continuo.LogOptions{Counter: token.O200k()})
	if _, err := log.Import(context.Background(), document.Conversation, document.Entries); err != nil {
		return nil, err
	}
	return &conversation{all: kept.entries, bytes: map[shownAs]int{}}, nil
}

func (c *conversation) Backward(seq int64) iter.Seq2[*continuo.Entry, error] {
	return func(yield func(*continuo.Entry, error) bool) {
		for seq = min(seq, int64(len(c.entries))); seq >= 1; seq-- {
			if !yield(&c.entries[seq-1], nil) {
				return
			}
		}
	}
}

func (c *conversation) Forward(seq int64) iter.Seq2[*continuo.Entry, error] {
	return func(yield func(*continuo.Entry, error) bool) {
		for ; seq <= int64(len(c.entries)); seq++ {
			if !yield(&c.entries[seq-1], nil) {
				return
			}
		}
	}
}

func (c *conversation) LatestUser(seq int64) (*continuo.Entry, error) {
	for ; seq >= 1; seq-- {
		if e := &c.entries[seq-1]; e.Role == continuo.User && !e.Hidden {
			return e, nil
		}
	}
	return nil, continuo.ErrNotFound
}

// outgrows reports whether the conversation is larger than a window.
func (c *conversation) outgrows(limits window.Limits) bool {
	var size continuo.Size
	for i := range c.all {
		size = size.Add(continuo.Size{Messages: 1, Chars: c.all[i].Chars, Tokens: c.all[i].Tokens + window.MessageOverhead})
	}
	return limits.Exceeded(size) != ""
}

// figures sum up requests.
type figures struct {
	requests, moves    int
	tokens, cached     float64 // of all requests; those that extend the request before
	fresh              float64 // tokens of messages that no request had before
	bytes, sharedBytes int64
}

func (f *figures) add(g figures) {
	f.requests, f.moves = f.requests+g.requests, f.moves+g.moves
	f.tokens, f.cached, f.fresh = f.tokens+g.tokens, f.cached+g.cached, f.fresh+g.fresh
	f.bytes, f.sharedBytes = f.bytes+g.bytes, f.sharedBytes+g.sharedBytes
}

func (f *figures) mean() float64 { return f.tokens / float64(f.requests) }

func (f *figures) cost(p prices) float64 { return (f.tokens-f.cached)*p.write + f.cached*p.cached }

// shared is the share of the bytes that extend the request before, where each request begins with a prompt of so many tokens.
func (f *figures) shared(prompt int) float64 {
	same := float64(prompt) * promptBytes * float64(f.requests)
	return (float64(f.sharedBytes) + same) / (float64(f.bytes) + same)
}

// least is the least cost of windows with the same mean size.
func (f *figures) least(p prices) float64 { return f.fresh*p.write + (f.tokens-f.fresh)*p.cached }

func replayAll(all []*conversation, limits window.Limits, p prices, apply func(*window.View)) (sum figures, err error) {
	view, err := window.DefaultSettings().View(window.Codex)
	if err != nil {
		return sum, err
	}
	view.Limits = limits
	apply(&view)
	for _, c := range all {
		one, err := c.replay(view, p)
		if err != nil {
			return sum, err
		}
		sum.add(one)
	}
	return sum, nil
}

// replay builds a request before every answer, and records the window on the answer as a turn does.
func (c *conversation) replay(view window.View, p prices) (f figures, err error) {
	c.entries = c.all[:0:0]
	var before []shownAs
	seen := map[int64]bool{}
	for _, entry := range c.all {
		if entry.Role == continuo.Assistant && !entry.Hidden && len(c.entries) > 0 {
			plan, err := view.Build(c, window.Input{At: int64(len(c.entries)), Counter: token.O200k()})
			if err != nil {
				return f, err
			}
			before = c.count(&f, plan, before, seen)
			entry.Round = roundOf(plan)
		}
		c.entries = append(c.entries, entry)
	}
	return f, nil
}

// count adds a request to the figures and returns its messages.
func (c *conversation) count(f *figures, plan *window.Plan, before []shownAs, seen map[int64]bool) []shownAs {
	f.requests++
	if plan.Moved {
		f.moves++
	}
	now := make([]shownAs, 0, len(plan.Messages))
	extends := true
	for i := range plan.Messages {
		m := &plan.Messages[i]
		as := shownAs{m.Seq, m.Size}
		extends = extends && i < len(before) && before[i] == as
		tokens, bytes := float64(m.Size.Tokens), c.bytesOf(m, as)
		f.tokens += tokens
		f.bytes += int64(bytes)
		if extends {
			f.cached += tokens
			f.sharedBytes += int64(bytes)
		}
		if m.Seq > 0 && !seen[m.Seq] {
			seen[m.Seq] = true
			f.fresh += tokens
		}
		now = append(now, as)
	}
	return now
}

func (c *conversation) bytesOf(m *window.Message, as shownAs) int {
	n, ok := c.bytes[as]
	if !ok {
		messages, err := render.OpenAIChat([]window.Message{*m}, render.Options{})
		for _, message := range messages {
			n += len(message) + 1
		}
		if err != nil { // a result without its call
			n = len(m.Content.String()) + 1
		}
		c.bytes[as] = n
	}
	return n
}
