package render_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/render"
	"github.com/continuo-log/continuo/window"
)

// partsMessage is a shown message with the parts of a JSON list.
func partsMessage(t *testing.T, role continuo.Role, parts string) window.Message {
	t.Helper()
	var content continuo.Content
	if err := json.Unmarshal([]byte(parts), &content); err != nil {
		t.Fatal(err)
	}
	return window.Message{Seq: 7, Role: role, Content: content, Entry: &continuo.Entry{Seq: 7, Role: role, Content: content}}
}

// Documents are sent in the way that a format has for them; what it has no place for is named.
func TestDocuments(t *testing.T) {
	for _, test := range []struct {
		part, openAI, anthropic string
		unsentOpenAI            string
		unsentAnthropic         string
	}{
		{
			part:      `{"type":"document","title":"Report: May","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="}}`,
			openAI:    `{"type":"file","file":{"filename":"Report_ May.pdf","file_data":"data:application/pdf;base64,JVBERi0="}}`,
			anthropic: `{"type":"document","title":"Report: May","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="}}`,
		},
		{
			part:      `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="}}`,
			openAI:    `{"type":"file","file":{"filename":"document.pdf","file_data":"data:application/pdf;base64,JVBERi0="}}`,
			anthropic: `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="}}`,
		},
		{
			part:      `{"type":"document","title":"Notes","source":{"type":"text","media_type":"text/plain","data":"a line"}}`,
			openAI:    `{"type":"text","text":"Notes\n\na line"}`,
			anthropic: `{"type":"document","title":"Notes","source":{"type":"text","media_type":"text/plain","data":"a line"}}`,
		},
		{
			part:      `{"type":"document","source":{"type":"content","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}}`,
			openAI:    `{"type":"text","text":"one\n\ntwo"}`,
			anthropic: `{"type":"document","source":{"type":"content","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}}`,
		},
		{
			part:      `{"type":"search_result","source":"https://x.test/","title":"X","content":[{"type":"text","text":"found"}]}`,
			openAI:    `{"type":"text","text":"X\n\nhttps://x.test/\n\nfound"}`,
			anthropic: `{"type":"search_result","source":"https://x.test/","title":"X","content":[{"type":"text","text":"found"}]}`,
		},
		{
			part:         `{"type":"document","source":{"type":"url","url":"https://x.test/a.pdf"}}`,
			openAI:       `{"type":"text","text":"[document: left out, because it cannot be sent here; its address is https://x.test/a.pdf]"}`,
			anthropic:    `{"type":"document","source":{"type":"url","url":"https://x.test/a.pdf"}}`,
			unsentOpenAI: "document",
		},
		{
			part:      `{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="}}`,
			openAI:    `{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="}}`,
			anthropic: `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="},"title":"a.pdf"}`,
		},
		{
			part:      `{"type":"file","file":{"filename":"a.txt","file_data":"data:text/plain; charset=utf-8;base64,YSBsaW5l"}}`,
			openAI:    `{"type":"file","file":{"filename":"a.txt","file_data":"data:text/plain; charset=utf-8;base64,YSBsaW5l"}}`,
			anthropic: `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a line"},"title":"a.txt"}`,
		},
		{
			part:            `{"type":"file","file":{"file_id":"file-1"}}`,
			openAI:          `{"type":"file","file":{"file_id":"file-1"}}`,
			anthropic:       `{"type":"text","text":"[file: left out, because it cannot be sent here]"}`,
			unsentAnthropic: "file",
		},
		{
			part:            `{"type":"container_upload","file_id":"f"}`,
			openAI:          `{"type":"text","text":"[container_upload: left out, because it cannot be sent here]"}`,
			anthropic:       `{"type":"text","text":"[container_upload: left out, because it cannot be sent here]"}`,
			unsentOpenAI:    "container_upload",
			unsentAnthropic: "container_upload",
		},
	} {
		messages := []window.Message{partsMessage(t, continuo.User, "["+test.part+"]")}
		chat, err := render.OpenAIChat(messages, render.Options{})
		if err != nil {
			t.Fatal(err)
		}
		blocks, _, err := render.Anthropic(messages, render.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := string(chat[0]), `{"role":"user","content":[`+test.openAI+`]}`; got != want {
			t.Errorf("%s\nfor OpenAI %s\nwant       %s", test.part, got, want)
		}
		if got, want := string(blocks[0]), `{"role":"user","content":[`+test.anthropic+`]}`; got != want {
			t.Errorf("%s\nfor Anthropic %s\nwant          %s", test.part, got, want)
		}
		wantUnsent(t, render.UnsentOpenAIChat(messages), test.unsentOpenAI)
		wantUnsent(t, render.UnsentAnthropic(messages, render.Options{}), test.unsentAnthropic)
		if len(render.UnsentText(messages)) != 1 {
			t.Errorf("%s: a transcript says nothing of what it leaves out", test.part)
		}
	}
}

func wantUnsent(t *testing.T, got []continuo.MissingPart, partType string) {
	t.Helper()
	var want []continuo.MissingPart
	if partType != "" {
		want = []continuo.MissingPart{{Seq: 7, Type: partType, Problem: continuo.PartUnsupported}}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("unsent: %+v, want %+v", got, want)
	}
}

// What a tool returned as a document follows the results, for tool messages hold text only.
func TestDocumentOfTool(t *testing.T) {
	call := window.Message{Seq: 6, Role: continuo.Assistant, ToolCalls: []continuo.ToolCall{{ID: "a", Name: "get", Arguments: "{}"}}}
	result := partsMessage(t, continuo.Tool, `[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="}}]`)
	result.ToolCallID = "a"
	messages := []window.Message{call, result}
	chat, err := render.OpenAIChat(messages, render.Options{})
	if err != nil || len(chat) != 3 || !strings.Contains(string(chat[2]), `"file_data":"data:application/pdf;base64,JVBERi0="`) {
		t.Errorf("%s, %v", chat, err)
	}
	if found := render.CheckOpenAIChat(chat); len(found) > 0 {
		t.Error(found)
	}
	wantUnsent(t, render.UnsentOpenAIChat(messages), "")
}

// Blocks that go back to their own provider only are named where the request goes to another one.
func TestWithheld(t *testing.T) {
	m := partsMessage(t, continuo.Assistant, `[{"type":"text","text":"hi"}]`)
	m.Entry.Vendor = map[string]json.RawMessage{
		"anthropic":   json.RawMessage(`{"content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"server_tool_use","id":"u"},{"type":"text","text":"hi"}]}`),
		"interchange": json.RawMessage(`{"format":"anthropic"}`),
	}
	want := []window.WithheldBlocks{{Seq: 7, Provider: "anthropic", Types: []string{"thinking", "server_tool_use"}}}
	if got := render.Withheld([]window.Message{m}, render.Options{Provider: "gateway"}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := render.Withheld([]window.Message{m}, render.Options{Provider: "anthropic"}); len(got) > 0 {
		t.Errorf("nothing is held back from its own provider: %+v", got)
	}
}
