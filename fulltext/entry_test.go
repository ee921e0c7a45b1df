package fulltext_test

import (
	"slices"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext"
)

func TestTextsOfAnEntry(t *testing.T) {
	entry := continuo.Entry{
		Role: continuo.Assistant, Outcome: "Read config.yml", Content: continuo.Text(`the \new way`),
		Reasoning: &continuo.Reasoning{Text: "secret thoughts"},
		ToolCalls: []continuo.ToolCall{
			{ID: "c1", Name: "file_write", Arguments: `{"text":"one\ntwo \"\u00e9t\u00e9\" \ud83d\ude00 c:\\new"}`},
			{ID: "c2", Name: "broken", Arguments: `{"a":"\ud83d \u12 \x \`},
		},
		Error: &continuo.TurnError{Message: "the model broke off"},
	}
	want := []string{
		"Read config.yml", `the \new way`, "file_write", "{\"text\":\"one\ntwo \"été\" 😀 c:\\new\"}",
		"broken", "{\"a\":\"\uFFFD \\u12 \\x \\", "the model broke off",
	}
	if got := fulltext.TextsOf(&entry); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	entry.Hidden = true
	if got := fulltext.TextsOf(&entry); len(got) > 0 {
		t.Errorf("of a hidden entry %q are searched", got)
	}
}

func TestContentThatIsJSONIsRead(t *testing.T) {
	for content, want := range map[string]string{
		` {"out":"a\nb"}`: " {\"out\":\"a\nb\"}",
		`["\u4f60"]`:      `["你"]`,
		`{broken \n`:      `{broken \n`,
		`C:\new`:          `C:\new`,
	} {
		got := fulltext.TextsOf(&continuo.Entry{Role: continuo.Tool, Content: continuo.Text(content)})
		if !slices.Equal(got, []string{want}) {
			t.Errorf("%q: got %q, want %q", content, got, want)
		}
	}
	parts := continuo.Parts(continuo.TextPart("one"), continuo.Part{Type: "image_url", Raw: []byte(`{"type":"image_url"}`)}, continuo.TextPart("two"))
	if got := fulltext.TextsOf(&continuo.Entry{Role: continuo.User, Content: parts}); !slices.Equal(got, []string{"one\ntwo"}) {
		t.Errorf("of parts: %q", got)
	}
}
