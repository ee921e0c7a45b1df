package interchange

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"pgregory.net/rapid"
)

// answered is a log with the results of calls.
func answered(t failer, contents ...continuo.Content) (*continuo.Log, continuo.Conversation) {
	t.Helper()
	answer := continuo.Entry{Role: continuo.Assistant, Content: continuo.Null()}
	entries := []continuo.Entry{answer}
	for i, content := range contents {
		id := string(rune('a' + i))
		entries[0].ToolCalls = append(entries[0].ToolCalls, continuo.FunctionCall(id, "f", "{}"))
		entries = append(entries, continuo.Entry{Role: continuo.Tool, ToolCallID: id, Content: content})
	}
	log := newLog()
	conversation, err := log.Import(context.Background(), continuo.Conversation{}, entries)
	if err != nil {
		t.Fatal(err)
	}
	return log, conversation
}

// TestOutputsBesideTheLogAreExportedWhole exports outputs that are longer than any buffer on the way.
func TestOutputsBesideTheLogAreExportedWhole(t *testing.T) {
	long := strings.Repeat("a line with é, 語, 😀, <&>, \u2028 \"quotes\" and \\\r\n\x01", 5000)
	parts := continuo.Parts(continuo.TextPart(long), continuo.TextPart(""), continuo.TextPart(long[3:]))
	contents := []continuo.Content{continuo.Text(long), parts, continuo.Text("x"), continuo.Text(long[1:])}
	log, conversation := answered(t, contents...)
	for entry, err := range log.Read(t.Context(), conversation, continuo.Range{From: 2}) {
		if err != nil || (entry.Output == nil) != (entry.Seq == 4) {
			t.Fatalf("entry %d: %+v (%v)", entry.Seq, entry.Output, err)
		}
	}
	for _, format := range []string{FormatContinuo, FormatOpenAI, FormatOpenAIJSONL, FormatSource} {
		found := 0
		for document, err := range Read(format, bytes.NewReader(exported(t, log, conversation, format)), Options{}) {
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range contents {
				got := document.Entries[i+1]
				if !bytes.Equal(rawjson.MustMarshal(got.Content), rawjson.MustMarshal(want)) || got.Output != nil {
					t.Errorf("%s: result %d is not what was appended: %+v", format, i, got.Output)
				}
				found++
			}
		}
		if found != len(contents) {
			t.Errorf("%s: %d results were read", format, found)
		}
	}
	var line continuo.Entry
	if err := json.Unmarshal(bytes.Split(exported(t, log, conversation, FormatContinuo), []byte("\n"))[2], &line); err != nil {
		t.Fatal(err)
	}
	if line.Chars != len([]rune(long)) || line.Tokens != 0 {
		t.Errorf("%d characters and %d tokens are told, which are a preview's", line.Chars, line.Tokens)
	}
}

func TestAnyTextIsWrittenInPieces(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.ToValidUTF8(rapid.String().Draw(rt, "text"), "?")
		text += strings.Repeat("é語😀x"[rapid.IntRange(0, 1).Draw(rt, "shift")*2:], rapid.SampledFrom([]int{0, 1, 13_000}).Draw(rt, "times"))
		var out bytes.Buffer
		if err := writeText(&out, iotest.OneByteReader(strings.NewReader(text))); err != nil {
			rt.Fatal(err)
		}
		if want := string(rawjson.MustMarshal(text)); `"`+out.String()+`"` != want {
			rt.Fatalf("%d bytes are written, want %d", out.Len(), len(want)-2)
		}
	})
}

// TestAnOutputThatIsNotWholeFailsItsExport wants no export that looks like a whole one.
func TestAnOutputThatIsNotWholeFailsItsExport(t *testing.T) {
	log, conversation := answered(t, continuo.Text(strings.Repeat("0123456789", 500)))
	objects := log.Turns().(*memory).objects
	put := func(name, data string) {
		if err := objects.PutObject(t.Context(), name, strings.NewReader(data)); err != nil {
			t.Fatal(err)
		}
	}
	damaged := 0
	for info, err := range objects.Objects(t.Context(), conversation.ID) {
		if err != nil || info.Size != 5000 {
			t.Fatalf("%+v (%v)", info, err)
		}
		for what, damage := range map[string]string{"other": strings.Repeat("x", 5000), "fewer": strings.Repeat("0123456789", 499)} {
			put(info.Name, damage)
			for _, format := range []string{FormatContinuo, FormatOpenAI, FormatSource} {
				if err := Export(t.Context(), io.Discard, format, log, conversation); err == nil {
					t.Errorf("%s: %s bytes in object %s are exported", format, what, info.Name)
				}
			}
			damaged++
		}
		put(info.Name, strings.Repeat("0123456789", 500))
	}
	if damaged != 2 {
		t.Errorf("%d objects were damaged", damaged)
	}
	if err := Export(t.Context(), io.Discard, FormatOpenAI, log, conversation); err != nil {
		t.Error(err)
	}
}
