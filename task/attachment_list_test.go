package task_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/task"
)

func TestPartsOfAListAreAttachments(t *testing.T) {
	given := task.Attachment{Type: task.Code, Content: "x := 1"}
	for name, test := range map[string]struct {
		part, text string
		want       []task.Attachment
	}{
		"a web image":            {webImage, "[image]", []task.Attachment{{Type: task.Image, URL: "https://example.org/a.png?x=1&y=2"}}},
		"a file of the provider": {`{"type":"file","file":{"file_id":"file-1","filename":"a.pdf"}}`, "[file: a.pdf]", []task.Attachment{{Type: task.File, Name: "a.pdf", Ref: "file-1"}}},
		"a file of responses":    {`{"type":"input_file","file_url":"https://example.org/a.csv"}`, "[file]", []task.Attachment{{Type: task.File, URL: "https://example.org/a.csv"}}},
		"an inline image":        {inlinePNG, "[image, left out]", nil},
		"an inline file":         {inlineFile, "[file: report.pdf, left out]", nil},
		"no address":             {`{"type":"image_url","image_url":{"url":"javascript:alert(1)"}}`, "[image, left out]", nil},
		"no medium":              {`{"type":"thinking","url":"https://example.org"}`, "[thinking]", nil},
	} {
		t.Run(name, func(t *testing.T) {
			made, _ := validated(t, `[{"role":"user","content":[`+textPart+`,`+test.part+`],"attachments":[{"type":"code","content":"x := 1"}]}]`)
			readsBack(t, *made)
			got := made.Context.ConversationHistory.Messages[0]
			if want := append([]task.Attachment{given}, test.want...); got.Content != "Look at this\n"+test.text || !reflect.DeepEqual(got.Attachments, want) {
				t.Errorf("got %q with %+v", got.Content, got.Attachments)
			}
		})
	}
}

func TestPartsOfAListThatAreTooManyAreLeftOut(t *testing.T) {
	var parts []string
	for i := range 4 {
		parts = append(parts, fmt.Sprintf(`{"type":"image_url","image_url":{"url":"https://example.org/%d"}}`, i))
	}
	asked := request(t, `[{"role":"user","content":[`+strings.Join(parts, ",")+`],"attachments":[{"type":"file","ref":"@project/a"}]}]`)
	made, _, err := task.Validate(asked, now, task.Limits{MaxAttachments: 3})
	if err != nil {
		t.Fatal(err)
	}
	got := made.Context.ConversationHistory.Messages[0]
	want := []task.Attachment{{Type: task.File, Ref: "@project/a"}, {Type: task.Image, URL: "https://example.org/0"}, {Type: task.Image, URL: "https://example.org/1"}}
	if got.Content != "[image]\n[image]\n[image, left out]\n[image, left out]" || !reflect.DeepEqual(got.Attachments, want) {
		t.Errorf("got %q with %+v", got.Content, got.Attachments)
	}
}

func TestPartsOfAListForgeNoStructure(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 3))
		made, _ := validated(t, []any{map[string]any{"role": "user", "content": []any{
			map[string]any{"type": "file", "file": map[string]string{"filename": nasty(random), "file_data": "https://example.org/" + nasty(random), "file_id": nasty(random)}},
			map[string]any{"type": "input_image", "filename": nasty(random), "image_url": nasty(random)},
		}}})
		readsBack(t, *made)
		if stored := string(rawjson.MustMarshal(made)); strings.Contains(stored, `\u0000`) {
			t.Errorf("seed %d: NUL is stored in %s", seed, stored)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
