// Package thinktag extracts inline thinking from a model's text: the text between <think> and </think> (or
// <thinking> and </thinking>) at the very beginning of an answer becomes reasoning. Many local servers leave
// it in the text.
//
// A tag may be split anywhere in the stream; only text that could be a tag is held back. Later tags are part
// of the answer, which may mention them.
//
// Pitfalls: an answer that ends normally within its thinking never closed the tag. All of it was already
// shown as reasoning; it becomes the answer as well, because the answer would be empty otherwise. The text of
// a truncated answer stays reasoning.
package thinktag

import (
	"context"
	"iter"
	"strings"

	"github.com/continuo-log/continuo/model"
)

// Model is a model whose inline thinking becomes reasoning. It is safe for concurrent use.
type Model struct {
	model.Model
}

// New wraps a model.
func New(inner model.Model) *Model { return &Model{Model: inner} }

// Stream sends body and yields the answer; see [model.Model].
func (m *Model) Stream(ctx context.Context, body []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		more := false // of the delta that is being split
		s := splitter{yield: func(delta model.Delta) bool {
			delta.More = more
			return yield(delta, nil)
		}}
		for delta, err := range m.Model.Stream(ctx, body) {
			more, delta.More = delta.More, false
			if err != nil {
				if s.rest() {
					yield(delta, err)
				}
				return
			}
			if !s.take(delta) {
				return
			}
		}
		more = false
		s.rest()
	}
}

// state is the splitter's position in an answer.
type state int

const (
	beginning state = iota // only spaces and complete thoughts so far
	thinking
	answering
)

// tags are the names of the tags of inline thinking.
var tags = []string{"think", "thinking"}

// splitter separates thinking from the answer.
type splitter struct {
	yield   func(model.Delta) bool
	state   state
	pending string // text that is not yet classified
	tag     string // name of the open tag
	thought strings.Builder
	called  bool // the answer calls a tool
}

// take handles a delta and yields the result.
func (s *splitter) take(delta model.Delta) bool {
	text := delta.Text
	delta.Text = ""
	if text != "" && !s.text(text) {
		return false
	}
	if delta.ToolCall != nil || delta.Finish != "" {
		s.called = s.called || delta.ToolCall != nil
		if !s.rest() || delta.Finish == "stop" && !s.unclosed() {
			return false
		}
	}
	if text != "" && isEmpty(delta) {
		return true
	}
	return s.yield(delta)
}

// text handles the next piece of text.
func (s *splitter) text(text string) bool {
	s.pending += text
	for {
		before, more := s.state, true
		switch s.state {
		case beginning:
			more = s.begin()
		case thinking:
			more = s.think()
		case answering:
			return s.rest()
		}
		if !more {
			return false
		}
		if s.state == before {
			return true
		}
	}
}

// begin looks for a tag that begins thinking.
func (s *splitter) begin() bool {
	trimmed := strings.TrimLeft(s.pending, " \t\r\n")
	for _, tag := range tags {
		open := "<" + tag + ">"
		switch {
		case len(trimmed) >= len(open) && strings.EqualFold(trimmed[:len(open)], open):
			s.state, s.tag, s.pending = thinking, tag, trimmed[len(open):]
			return true
		case strings.EqualFold(trimmed, open[:min(len(trimmed), len(open))]):
			return true // it may still become one
		}
	}
	s.state = answering
	return true
}

// think yields thinking up to the closing tag.
func (s *splitter) think() bool {
	end := "</" + s.tag + ">"
	at := indexFold(s.pending, end)
	if at < 0 {
		kept := len(s.pending) - partOf(s.pending, end)
		thought := s.pending[:kept]
		s.pending = s.pending[kept:]
		return s.reason(thought)
	}
	thought := s.pending[:at]
	s.pending, s.state = s.pending[at+len(end):], beginning
	s.thought.Reset()
	return thought == "" || s.yield(model.Delta{Reasoning: thought})
}

func (s *splitter) reason(thought string) bool {
	s.thought.WriteString(thought)
	return thought == "" || s.yield(model.Delta{Reasoning: thought})
}

// rest yields the text that was held back.
func (s *splitter) rest() bool {
	text := s.pending
	s.pending = ""
	if s.state == thinking {
		return s.reason(text)
	}
	if s.tag != "" && strings.TrimSpace(text) == "" && s.state == beginning {
		return true // the spaces after a thought
	}
	if s.tag != "" {
		text, s.tag = strings.TrimLeft(text, " \t\r\n"), ""
	}
	if text != "" {
		s.state = answering
	}
	return text == "" || s.yield(model.Delta{Text: text})
}

// unclosed repeats the thinking as the answer, if the answer ended normally within its thinking.
func (s *splitter) unclosed() bool {
	thought := strings.TrimSpace(s.thought.String())
	if s.state != thinking || s.called || thought == "" {
		return true
	}
	return s.yield(model.Delta{Text: thought})
}

// isEmpty reports whether a delta has no content.
func isEmpty(d model.Delta) bool {
	return d.Text == "" && d.Reasoning == "" && d.Signature == "" && d.ToolCall == nil && d.Finish == "" && d.Usage == nil && d.Model == "" && d.Vendor == nil && d.Wire == ""
}

// indexFold is strings.Index for an ASCII needle, ignoring case.
func indexFold(text, needle string) int {
	for at := 0; at+len(needle) <= len(text); at++ {
		next := strings.IndexByte(text[at:], needle[0])
		if next < 0 || at+next+len(needle) > len(text) {
			return -1
		}
		at += next
		if strings.EqualFold(text[at:at+len(needle)], needle) {
			return at
		}
	}
	return -1
}

// partOf returns how many bytes at a text's end may begin a tag.
func partOf(text, tag string) int {
	for n := min(len(text), len(tag)-1); n > 0; n-- {
		if strings.EqualFold(text[len(text)-n:], tag[:n]) {
			return n
		}
	}
	return 0
}
