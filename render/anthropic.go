package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/plaintext"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/window"
)

// Texts that replace an empty text where the API requires one.
const (
	emptyMessage = "(empty message)"
	// LeadIn is the user message in front of a list that would begin with the assistant.
	LeadIn = "(The conversation goes on from here.)"
)

// Anthropic writes messages as those of a Messages API request, and returns the texts of the leading system
// messages, which belong to the request's system prompt. Later system messages become text of the user, in
// <system> tags. Messages of one role that follow each other are merged; in a merged user message the results
// come first, in the order of the calls. A list that would begin with the assistant gets a short user message
// in front of it.
func Anthropic(messages []window.Message, o Options) (rendered []json.RawMessage, leadingSystem []string, err error) {
	w, err := writeAnthropic(messages, o, false)
	if err != nil {
		return nil, nil, err
	}
	for _, m := range w.out {
		rendered = append(rendered, m.appendTo(nil))
	}
	return rendered, w.system, nil
}

// blockMessage is a message to which blocks can still be added. Blocks have no white space between their tokens.
type blockMessage struct {
	role    string
	blocks  []json.RawMessage
	passing int // number of blocks at the end that the next request does not have
}

// appendTo appends the message as JSON.
func (m blockMessage) appendTo(dst []byte) []byte {
	begin := len(dst)
	dst = rawjson.AppendString(append(dst, `{"role":`...), m.role)
	dst = append(dst, `,"content":[`...)
	for i, block := range m.blocks {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, block...)
	}
	dst = append(dst, "]}"...)
	repairSurrogates(dst[begin:])
	return dst
}

// anthropicWriter collects rendered messages.
type anthropicWriter struct {
	options Options
	memory  []byte // of the blocks
	ids     callIDs
	begun   bool // a message other than a system message was seen
	system  []string
	out     []blockMessage
	bareTo  int64 // before this seq thinking is left out
}

func writeAnthropic(messages []window.Message, o Options, noOldThinking bool) (*anthropicWriter, error) {
	groups, err := groupsOf(messages)
	if err != nil {
		return nil, fmt.Errorf("render for Anthropic: %w", err)
	}
	w := &anthropicWriter{options: o, memory: make([]byte, 0, roomFor(messages))}
	for i := range groups {
		if head := groups[i].head; noOldThinking && head.Role == continuo.User {
			w.bareTo = max(w.bareTo, head.Seq)
		}
	}
	for i := range groups {
		if err := w.group(&groups[i]); err != nil {
			return nil, fmt.Errorf("render seq %d for Anthropic: %w", groups[i].head.Seq, err)
		}
	}
	w.finish()
	return w, nil
}

func (w *anthropicWriter) group(g *group) error {
	if g.head.Role == continuo.System {
		w.addSystem(g.head)
		return nil
	}
	w.begun = true
	if g.head.Role == continuo.User {
		blocks, err := w.userBlocks(g.head)
		if err != nil {
			return err
		}
		w.add("user", blocks)
		if last := &w.out[len(w.out)-1]; g.head.Passing {
			last.passing += len(blocks)
		} else {
			last.passing = 0
		}
		return nil
	}
	ids := callNames{calls: g.head.ToolCalls}
	for _, call := range g.head.ToolCalls {
		ids.ids = append(ids.ids, w.ids.take(anthropicCallID(call.ID)))
	}
	blocks, err := w.assistantBlocks(g.head, ids)
	if err != nil {
		return err
	}
	if g.head.Seq < w.bareTo {
		blocks = slices.DeleteFunc(blocks, func(block json.RawMessage) bool { return isThinkingBlock(typeOf(block)) })
	}
	w.add("assistant", blocks)
	for _, m := range g.callOrder() {
		block, err := w.resultBlock(m, ids.of(m.ToolCallID))
		if err != nil {
			return err
		}
		w.add("user", []json.RawMessage{block})
	}
	return nil
}

func (w *anthropicWriter) addSystem(m *window.Message) {
	text := m.Content.String()
	switch {
	case isBlank(text):
	case !w.begun:
		w.system = append(w.system, text)
	default:
		w.add("user", []json.RawMessage{w.textBlock(inSystemTags(text))})
	}
}

// inSystemTags wraps the text of a system message that becomes part of a user message.
func inSystemTags(text string) string { return "<system>\n" + text + "\n</system>" }

// add appends blocks to the last message, or as a new one when the role changes.
func (w *anthropicWriter) add(role string, blocks []json.RawMessage) {
	if len(blocks) == 0 {
		return
	}
	if len(w.out) == 0 && role == "assistant" {
		w.out = append(w.out, blockMessage{role: "user", blocks: []json.RawMessage{w.textBlock(LeadIn)}})
	}
	if n := len(w.out); n > 0 && w.out[n-1].role == role {
		w.out[n-1].blocks = append(w.out[n-1].blocks, blocks...)
		return
	}
	w.out = append(w.out, blockMessage{role: role, blocks: blocks})
}

// finish trims white space off the end of an assistant text that is the last message, because the API would
// continue from it.
func (w *anthropicWriter) finish() {
	n := len(w.out)
	if n == 0 || w.out[n-1].role != "assistant" {
		return
	}
	last := &w.out[n-1]
	end := len(last.blocks) - 1
	if typeOf(last.blocks[end]) != "text" {
		return
	}
	object, err := rawjson.ParseObject(last.blocks[end])
	if err != nil {
		return
	}
	text, _ := rawjson.String(object.Get("text"))
	trimmed := strings.TrimRightFunc(text, unicode.IsSpace)
	if trimmed != text {
		object.Set("text", rawjson.MustMarshal(trimmed))
		last.blocks[end] = object.Raw()
	}
}

// isBlank reports whether the API would refuse a text as empty.
func isBlank(text string) bool { return plaintext.IsBlank(text) }

// textBlock writes a text block.
func (w *anthropicWriter) textBlock(text string) json.RawMessage {
	begin := w.begin("text")
	w.memory = rawjson.AppendString(append(w.memory, `,"text":`...), text)
	return w.end(begin)
}

// begin begins a block of a type that this package writes, and returns its offset.
func (w *anthropicWriter) begin(blockType string) int {
	begin := len(w.memory)
	w.memory = append(append(append(w.memory, typeFirst...), blockType...), '"')
	return begin
}

// end ends the block that begins at an offset.
func (w *anthropicWriter) end(begin int) json.RawMessage {
	w.memory = append(w.memory, '}')
	return w.memory[begin:len(w.memory):len(w.memory)]
}

// typeFirst is how a block begins that this package writes.
const typeFirst = `{"type":"`

// typeOf is the type of a block, "" for none.
func typeOf(block json.RawMessage) string {
	if rest, ok := bytes.CutPrefix(block, []byte(typeFirst)); ok {
		if end := bytes.IndexAny(rest, `"\\`); end >= 0 && rest[end] == '"' {
			return string(rest[:end])
		}
	}
	object, err := rawjson.ParseObject(block)
	if err != nil {
		return ""
	}
	return blockType(object)
}

func blockType(object rawjson.Object) string {
	text, _ := rawjson.String(object.Get("type"))
	return text
}
