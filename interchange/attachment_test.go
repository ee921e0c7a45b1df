package interchange

import (
	"bytes"
	"io"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/messages"
	"github.com/continuo-log/continuo/internal/rawjson"
	"pgregory.net/rapid"
)

// data is base64 of more bytes than stand for themselves.
var data = strings.Repeat("iVBORw0KGgo/A+_-", 200_000/16) + "AA=="

func contentOf(t failer, list string) continuo.Content {
	t.Helper()
	var content continuo.Content
	if err := content.UnmarshalJSON([]byte(list)); err != nil {
		t.Fatal(err)
	}
	return content
}

// TestAttachmentsAreExportedWhole exports large parts in every role, and among them some without data.
func TestAttachmentsAreExportedWhole(t *testing.T) {
	lists := []string{
		`[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + data + `","detail":"low"}}]`,
		`[{"type":"image_url","image_url":{"url":"data:image\/png;base64,\/9j` + strings.ReplaceAll(data, "/", `\/`) + `"}},{"type":"text","text":"` + data + `"}]`,
		`[{"type":"image_url","image_url":{"url":"https://example.com/` + strings.Repeat("é", 5000) + `"}},{"type":"file","file":{"file_data":"data:application/pdf;base64,` + data + `"}}]`,
		`[{"type":"input_audio","input_audio":{"data":"\/` + data + `","format":"wav"}},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + data + `"}}]`,
	}
	answer := continuo.Entry{Role: continuo.Assistant, ToolCalls: []continuo.ToolCall{continuo.FunctionCall("c", "look", "{}")}, Content: continuo.Null()}
	entries := []continuo.Entry{{Role: continuo.User, Content: contentOf(t, lists[0])}, answer}
	entries = append(entries, continuo.Entry{Role: continuo.Tool, ToolCallID: "c", Content: contentOf(t, lists[1])})
	for _, list := range lists[2:] {
		entries = append(entries, continuo.Entry{Role: continuo.User, Content: contentOf(t, list)})
	}
	log := newLog()
	conversation, err := log.Import(t.Context(), continuo.Conversation{}, entries)
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{FormatContinuo, FormatOpenAI, FormatOpenAIJSONL, FormatSource} {
		written := exported(t, log, conversation, format)
		if bytes.Contains(written, []byte("continuo_object")) || bytes.Contains(written, []byte(`"attachments"`)) {
			t.Errorf("%s: the export names objects", format)
		}
		documents := 0
		for document, err := range Read(format, bytes.NewReader(written), Options{}) {
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range entries {
				if got := document.Entries[i]; !bytes.Equal(rawjson.MustMarshal(got.Content), rawjson.MustMarshal(want.Content)) {
					t.Errorf("%s: content %d is\n%.300s\nwant\n%.300s", format, i, rawjson.MustMarshal(got.Content), rawjson.MustMarshal(want.Content))
				}
			}
			documents++
		}
		if documents != 1 {
			t.Errorf("%s: %d documents", format, documents)
		}
	}
}

// TestAnExportHoldsNoDataOfAttachments looks at what goes through its steps.
func TestAnExportHoldsNoDataOfAttachments(t *testing.T) {
	log := newLog()
	content := contentOf(t, `[{"type":"image_url","image_url":{"url":"data:image/png;base64,`+data+`"}},{"type":"file","file":{"file_data":"`+data+`"}}]`)
	conversation, err := log.Import(t.Context(), continuo.Conversation{}, []continuo.Entry{{Role: continuo.User, Content: content}})
	if err != nil {
		t.Fatal(err)
	}
	for entry, err := range newObjects(t.Context(), log).replaceLarge(log.Read(t.Context(), conversation, continuo.Range{})) {
		if err != nil || len(entry.Content.Parts()) != 2 || entry.Attachments != nil {
			t.Fatalf("%+v (%v)", entry, err)
		}
		for _, part := range entry.Content.Parts() {
			if len(part.Raw) > 200 || !rawjsonValid(part.Raw) {
				t.Errorf("the export holds %.500s", part.Raw)
			}
		}
	}
}

func rawjsonValid(raw []byte) bool {
	_, err := rawjson.ParseObject(raw)
	return err == nil
}

// TestAnthropicImagesRoundTrip imports large images and a document in the other protocol. What a
// tool returned is kept as the vendor's own block, which is no part of the content.
func TestAnthropicImagesRoundTrip(t *testing.T) {
	source := `[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + data + `"}},` +
		`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + data + `"},"title":"a"}]},` +
		`{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"look","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"` + data + `"}}]}]}]`
	for document, err := range Read(FormatAnthropic, strings.NewReader(source), Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		log, conversation := imported(t, document)
		attachments := 0
		for entry, err := range log.Read(t.Context(), conversation, continuo.Range{}) {
			if err != nil {
				t.Fatal(err)
			}
			attachments += len(entry.Attachments)
		}
		if written := exported(t, log, conversation, FormatSource); attachments != 2 || !messages.SameJSON(written, []byte(source)) {
			t.Errorf("%d attachments; the export is\n%.500s", attachments, written)
		}
	}
}

// TestAnAttachmentThatIsNotWholeFailsItsExport wants no export that looks like a whole one.
func TestAnAttachmentThatIsNotWholeFailsItsExport(t *testing.T) {
	log := newLog()
	content := contentOf(t, `[{"type":"image_url","image_url":{"url":"data:image/png;base64,`+data+`"}}]`)
	conversation, err := log.Import(t.Context(), continuo.Conversation{}, []continuo.Entry{{Role: continuo.User, Content: content}})
	if err != nil {
		t.Fatal(err)
	}
	objects, damaged := log.Turns().(*memory).objects, 0
	for info, err := range objects.Objects(t.Context(), conversation.ID) {
		if err != nil {
			t.Fatal(err)
		}
		damaged++
		if err := objects.PutObject(t.Context(), info.Name, strings.NewReader(strings.Repeat("x", int(info.Size)))); err != nil {
			t.Fatal(err)
		}
	}
	for _, format := range []string{FormatContinuo, FormatOpenAI, FormatSource} {
		if err := Export(t.Context(), io.Discard, format, log, conversation); err == nil || damaged != 1 {
			t.Errorf("%s: %d damaged attachments are exported", format, damaged)
		}
	}
}

// TestDataIsFoundBetweenEscapes cuts the longest data out of any strings, and wants JSON on both sides.
func TestDataIsFoundBetweenEscapes(t *testing.T) {
	piece := rapid.SampledFrom([]string{`\\`, `\"`, `\/`, `\u00e9`, `\n`, ",", "é", "A", "Bc", "QUJD", "====", "x-_", ":"})
	rapid.Check(t, func(rt *rapid.T) {
		var raw strings.Builder
		raw.WriteString(`{"type":"x"`)
		for range rapid.IntRange(1, 4).Draw(rt, "strings") {
			raw.WriteString(`, "` + strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(rt, "key"), "") + `":"` + strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(rt, "value"), "") + `"`)
		}
		raw.WriteString("}")
		whole := raw.String()
		begin, end := longestData([]byte(whole))
		cut := whole[:begin] + "WORD." + whole[end:]
		if !rawjsonValid([]byte(cut)) || whole[end] != '"' || strings.ContainsAny(whole[begin:end], `\",é`) {
			rt.Fatalf("%s is cut to %s", whole, cut)
		}
		object, _ := rawjson.ParseObject([]byte(cut))
		again := strings.Replace(string(object.Raw()), "WORD.", whole[begin:end], 1)
		want, _ := rawjson.ParseObject([]byte(whole))
		if len(object) == len(want) && again != string(want.Raw()) {
			rt.Fatalf("%s comes back as %s", whole, again)
		}
	})
}
