package render

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/window"
)

// logOf brings a conversation of the data into the form of the log. What the log's rules refuse is left
// out; calls without a result get one.
func logOf(c conversation) []continuo.Entry {
	var entries []continuo.Entry
	var group continuo.Group
	add := func(entry continuo.Entry) {
		if entry.Role != continuo.Tool {
			for _, id := range slices.Clone(group.Open) {
				made := continuo.Entry{Seq: int64(len(entries) + 1), Role: continuo.Tool, ToolCallID: id, Content: continuo.Text("[none]")}
				if group.Accept(&made) == nil {
					entries = append(entries, made)
				}
			}
		}
		if group.Accept(&entry) == nil {
			entry.Seq = int64(len(entries) + 1)
			entries = append(entries, entry)
		}
	}
	for _, raw := range c.Messages {
		if c.Protocol == "anthropic" {
			for _, entry := range entriesOfAnthropic(raw) {
				add(entry)
			}
			continue
		}
		var entry continuo.Entry
		object, _ := rawjson.ParseObject(raw)
		if json.Unmarshal(object.Without("error", "reasoning", "ts").Raw(), &entry) == nil {
			add(entry)
		}
	}
	add(continuo.Entry{Role: continuo.User, Content: continuo.Text("go on")})
	return entries
}

// entriesOfAnthropic splits a message of the Messages API into entries that keep its blocks as vendor data.
func entriesOfAnthropic(raw json.RawMessage) []continuo.Entry {
	var m struct {
		Role    continuo.Role   `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	if text, ok := rawjson.String(m.Content); ok {
		return []continuo.Entry{{Role: m.Role, Content: continuo.Text(text)}}
	}
	var blocks []json.RawMessage
	if json.Unmarshal(m.Content, &blocks) != nil {
		return nil
	}
	var entries []continuo.Entry
	said := continuo.Entry{Role: m.Role}
	var texts []string
	var rest []json.RawMessage
	for _, raw := range blocks {
		block, _ := rawjson.ParseObject(raw)
		switch blockType(block) {
		case "tool_result":
			entries = append(entries, continuo.Entry{
				Role: continuo.Tool, ToolCallID: stringOf(block.Get("tool_use_id")), Content: continuo.Text("a result"),
				Vendor: map[string]json.RawMessage{"anthropic": rawjson.MustMarshal(rawjson.Object{{Key: "block", Value: raw}})},
			})
			continue
		case "tool_use":
			said.ToolCalls = append(said.ToolCalls, continuo.FunctionCall(stringOf(block.Get("id")), stringOf(block.Get("name")), string(block.Get("input"))))
		case "text":
			texts = append(texts, stringOf(block.Get("text")))
		}
		rest = append(rest, raw)
	}
	if len(rest) > 0 {
		said.Content = continuo.Text(strings.Join(texts, "\n"))
		said.Vendor = map[string]json.RawMessage{"anthropic": rawjson.MustMarshal(rawjson.Object{{Key: "content", Value: rawjson.MustMarshal(rest)}})}
		entries = append(entries, said)
	}
	return entries
}

// Every recorded conversation, once it is in a log, renders to requests that the protocols accept, and to
// a transcript that is read back.
func TestRecordedConversationsRender(t *testing.T) {
	rendered := 0
	eachConversation(t, "*.jsonl.gz", func(t *testing.T, c conversation) {
		rendered++
		messages := wholeMessages(logOf(c))
		o := Options{Provider: c.Protocol} // "anthropic" where the blocks are Anthropic's own
		openai, err := OpenAIChat(messages, o)
		if err != nil {
			t.Fatalf("%s: %v", c.ID, err)
		}
		if found := refused(CheckOpenAIChat(openai)); len(found) > 0 {
			t.Errorf("%s for OpenAI chat: %v", c.ID, found)
		}
		anthropic, _, err := Anthropic(messages, o)
		if err != nil {
			t.Fatalf("%s: %v", c.ID, err)
		}
		if found := refused(CheckAnthropic(anthropic)); len(found) > 0 {
			t.Errorf("%s for Anthropic: %v", c.ID, found)
		}
		items, err := Responses(messages, o)
		if err != nil {
			t.Fatalf("%s: %v", c.ID, err)
		}
		if found := refused(CheckResponses(items)); len(found) > 0 {
			t.Errorf("%s for OpenAI responses: %v", c.ID, found)
		}
		contents, _, err := Gemini(messages, o)
		if err != nil {
			t.Fatalf("%s: %v", c.ID, err)
		}
		if found := refused(CheckGemini(contents, "")); len(found) > 0 {
			t.Errorf("%s for Gemini: %v", c.ID, found)
		}
		plan := &window.Plan{Messages: messages, Cycle: int64(len(messages)/2 + 1)}
		readsBack(t, c.ID, TranscriptOf(plan))
	})
	t.Logf("%d conversations", rendered)
}

func readsBack(t *testing.T, what string, transcript Transcript) {
	t.Helper()
	text := transcript.String()
	again, err := ReadTranscript(text)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if !slices.Equal(again.History, transcript.History) || !slices.Equal(again.Current, transcript.Current) ||
		again.Shown != transcript.Shown || again.Total != transcript.Total {
		t.Fatalf("%s: what was read is not what was written:\n%s", what, text)
	}
}

// What came from Anthropic goes back to it block by block, but for cache marks and texts without text.
func TestAnthropicBlocksGoBackAsTheyCame(t *testing.T) {
	whole := 0
	eachConversation(t, "anthropic-native.jsonl.gz", func(t *testing.T, c conversation) {
		if c.Protocol != "anthropic" || len(c.Violations) > 0 {
			return
		}
		whole++
		messages := wholeMessages(logOf(c))
		rendered, _, err := Anthropic(messages[:len(messages)-1], Options{Provider: "anthropic"}) // without "go on"
		if err != nil {
			t.Fatal(err)
		}
		if want, got := flatten(c.Messages), flatten(rendered); !slices.Equal(want, got) {
			for i := range min(len(want), len(got)) {
				if want[i] != got[i] {
					t.Errorf("%s: block %d\n got %s\nwant %s", c.ID, i, got[i], want[i])
				}
			}
			t.Errorf("%s: %d blocks became %d", c.ID, len(want), len(got))
		}
	})
	if whole < 40 {
		t.Errorf("only %d conversations were compared", whole)
	}
}

// flatten lists the blocks of messages, each with its role, without what rendering takes off.
func flatten(messages []json.RawMessage) []string {
	var list []string
	for i, raw := range messages {
		var m struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		}
		if json.Unmarshal(raw, &m) != nil {
			continue
		}
		if text, ok := rawjson.String(m.Content); ok {
			list = append(list, fmt.Sprintf("%s %s", m.Role, (&anthropicWriter{}).textBlock(text)))
			continue
		}
		for n, block := range cleanBlocks(m.Content) {
			if content := cleanBlocks(block.Get("content")); content != nil && blockType(block) == "tool_result" {
				block.Set("content", rawjson.MustMarshal(content))
			}
			if last := i == len(messages)-1 && n == len(cleanBlocks(m.Content))-1; last && blockType(block) == "text" {
				block.Set("text", rawjson.MustMarshal(strings.TrimRight(stringOf(block.Get("text")), " \n")))
			}
			list = append(list, fmt.Sprintf("%s %s", m.Role, rawjson.MustMarshal(block)))
		}
	}
	return list
}
