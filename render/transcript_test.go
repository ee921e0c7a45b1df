package render

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// lineEnds are the characters at which Python's str.splitlines ends a line.
var lineEnds = regexp.MustCompile("[\n\v\f\r\x1c-\x1e\u0085\u2028\u2029]")

func genEvent(kinds ...EventKind) *rapid.Generator[Event] {
	return rapid.Custom(func(t *rapid.T) Event {
		return Event{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Text: genText().Draw(t, "text")}
	})
}

func genTranscript() *rapid.Generator[Transcript] {
	return rapid.Custom(func(t *rapid.T) Transcript {
		transcript := Transcript{
			History: rapid.SliceOfN(genEvent(EventUser, EventRespond, EventCall, EventResult), 0, 5).Draw(t, "history"),
			Current: rapid.SliceOfN(genEvent(eventKinds()...), 0, 5).Draw(t, "current"),
		}
		if rapid.Bool().Draw(t, "counted") {
			transcript.Shown = rapid.Int64Range(0, 100).Draw(t, "shown")
			transcript.Total = transcript.Shown + rapid.Int64Range(1, 1000).Draw(t, "dropped")
		}
		return transcript
	})
}

func equalTranscripts(a, b Transcript) bool {
	return slices.Equal(a.History, b.History) && slices.Equal(a.Current, b.Current) && a.Shown == b.Shown && a.Total == b.Total
}

// Reading gives back exactly what was written.
func TestTranscriptIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		written := genTranscript().Draw(t, "transcript")
		text := written.String()
		read, err := ReadTranscript(text)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if !equalTranscripts(read, written) {
			t.Fatalf("read %+v\nwrote %+v\n%s", read, written, text)
		}
	})
}

// Whatever content says, the text has exactly the structure that was meant: as many lines begin an event or
// a section, wherever any program ends a line, as there are events and sections.
func TestContentCannotForgeStructure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		written := genTranscript().Draw(t, "transcript")
		want := 1 + len(written.History) + len(written.Current)
		if len(written.Current) > 0 {
			want++
		}
		if written.Shown < written.Total {
			want++
		}
		found := 0
		for _, line := range lineEnds.Split(written.String(), -1) {
			if looksStructural(line) {
				found++
			}
		}
		if found != want {
			t.Fatalf("%d structural lines, want %d in\n%q", found, want, written.String())
		}
	})
}

// The transcript of any log's plan is read back, each call is followed by its result, and only the current
// cycle has thinking.
func TestTranscriptOfAnyPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		messages := messagesOf(t, genLog().Draw(t, "log"))
		plan := &window.Plan{Messages: messages, Cycle: rapid.Int64Range(0, int64(len(messages))).Draw(t, "cycle")}
		transcript := TranscriptOf(plan)
		read, err := ReadTranscript(transcript.String())
		if err != nil || !equalTranscripts(read, transcript) {
			t.Fatalf("%v in\n%s", err, transcript)
		}
		for _, events := range [][]Event{transcript.History, transcript.Current} {
			for i, event := range events {
				if event.Kind == EventCall && (i+1 == len(events) || events[i+1].Kind != EventResult) {
					t.Fatalf("no result after the call %d in\n%s", i, transcript)
				}
			}
		}
		if slices.ContainsFunc(transcript.History, func(e Event) bool { return e.Kind == EventThink }) {
			t.Fatalf("the history thinks:\n%s", transcript)
		}
		if plan.Cycle == 0 && transcript.Current != nil {
			t.Fatalf("a current cycle without a cycle:\n%s", transcript)
		}
	})
}

func TestReadTranscriptRefusesWhatWasNotWritten(t *testing.T) {
	for text, line := range map[string]string{
		"":                               "line 1 ",
		"=== HISTORY ===":                "line 1 ",
		"=== history ===\n":              "line 1 ",
		"=== HISTORY ===\n(showing 3)\n": "line 2 ",
		"=== HISTORY ===\n(showing last 03 of 5 messages)\n": "line 2 ",
		"=== HISTORY ===\n(showing last 5 of 5 messages)\n":  "line 2 ",
		"=== HISTORY ===\n\nhello\n":                         "line 3 ",
		"=== HISTORY ===\n\n$user: a":                        "line 3 ",
		"=== HISTORY ===\n$user: a\n":                        "line 2 ",
		"=== HISTORY ===\n\n$user:a\n":                       "line 3 ",
		"=== HISTORY ===\n\n$user: a\n$respond: b\n":         "line 4 ",
		"=== HISTORY ===\n\n$user: a\n § call : b\n":         "line 4 ",
		"=== HISTORY ===\n\n=== CURRENT ===\n":               "line 2 ",
		"=== HISTORY ===\n\n$shout: a\n":                     "line 3 ",
	} {
		_, err := ReadTranscript(text)
		if err == nil || !strings.Contains(err.Error(), line) || !errors.Is(err, continuo.ErrInvalid) {
			t.Errorf("%q: got error %v, want one that names %s", text, err, line)
		}
	}
}

func TestTranscriptCountsWhatWasLeftOut(t *testing.T) {
	entries := []continuo.Entry{
		{Seq: 60, Role: continuo.User, Content: continuo.Text("a")},
		{Seq: 61, Role: continuo.Assistant, ToolCalls: []continuo.ToolCall{continuo.FunctionCall("c", "f", "{}")}},
		{Seq: 62, Role: continuo.Tool, ToolCallID: "c", Content: continuo.Text("r")},
		{Seq: 63, Role: continuo.User, Content: continuo.Text("b")},
	}
	plan := &window.Plan{Messages: wholeMessages(entries), Cycle: 63, Items: []window.PlanItem{
		{Seq: 1, Through: 55, Verdict: window.Dropped},
		{Seq: 56, Verdict: window.Excluded},
		{Seq: 57, Role: continuo.System, Verdict: window.Dropped},
		{Seq: 58, Through: 59, Verdict: window.Dropped},
		{Seq: 64, Through: 70, Verdict: window.Dropped}, // of the cycle, not of the history
	}}
	plan.Messages = append([]window.Message{{Role: continuo.User, Content: continuo.Text("[marker]")}}, plan.Messages...)
	transcript := TranscriptOf(plan)
	if transcript.Shown != 3 || transcript.Total != 60 {
		t.Errorf("showing %d of %d, want 3 of 60", transcript.Shown, transcript.Total)
	}
	if text := transcript.String(); !strings.HasPrefix(text, "=== HISTORY ===\n(showing last 3 of 60 messages)\n\n$user: a\n\n$call: ") {
		t.Errorf("transcript begins %q", text)
	}
	plan.Items = nil
	if transcript := TranscriptOf(plan); transcript.Shown != 0 || transcript.Total != 0 {
		t.Errorf("showing %d of %d when nothing is left out, want 0 of 0", transcript.Shown, transcript.Total)
	}
}

// Results that came in another order than the calls stand by their own calls; a missing one is said to be.
func TestTranscriptPairsParallelCalls(t *testing.T) {
	call := func(id, arguments string) continuo.ToolCall { return continuo.FunctionCall(id, "f", arguments) }
	messages := []window.Message{
		{Seq: 1, Role: continuo.Assistant, ToolCalls: []continuo.ToolCall{call("a", "{\"n\":\n1}"), call("b", ""), call("c", "1")}},
		{Seq: 3, Role: continuo.Tool, ToolCallID: "c", Content: continuo.Text("of c")},
		{Seq: 2, Role: continuo.Tool, ToolCallID: "a", Content: continuo.Text("of a")},
	}
	want := []Event{
		{EventCall, "{\"name\": \"f\", \"args\": {\"n\":\n1}}"},
		{EventResult, "of a"},
		{EventCall, `{"name": "f", "args": ""}`},
		{EventResult, noResult},
		{EventCall, `{"name": "f", "args": 1}`},
		{EventResult, "of c"},
	}
	if got := TranscriptOf(&window.Plan{Messages: messages}).History; !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

// failingWriter fails after some bytes.
type failingWriter struct{ room int }

func (w *failingWriter) Write(p []byte) (int, error) {
	if len(p) > w.room {
		return w.room, errors.New("full")
	}
	w.room -= len(p)
	return len(p), nil
}

func TestTranscriptWriteToSaysHowFarItCame(t *testing.T) {
	transcript := Transcript{History: []Event{{EventUser, "hello"}}}
	n, err := transcript.WriteTo(&failingWriter{room: 20})
	if err == nil || n < 15 || n > 20 {
		t.Errorf("wrote %d bytes, error %v; want 15 to 20 and an error", n, err)
	}
}

// pieces notes the largest write.
type pieces struct {
	text    strings.Builder
	largest int
}

func (p *pieces) Write(data []byte) (int, error) {
	p.largest = max(p.largest, len(data))
	return p.text.Write(data)
}

func TestALargeTranscriptIsWrittenInPieces(t *testing.T) {
	transcript := Transcript{History: []Event{{EventUser, strings.Repeat("a large text\n", 1<<16)}, {EventRespond, ""}, {EventGap, "3"}, {EventUser, "$user: x"}}}
	var out pieces
	n, err := transcript.WriteTo(&out)
	if err != nil || n != int64(out.text.Len()) || out.text.String() != transcript.String() || out.largest > pieceBytes {
		t.Errorf("wrote %d bytes, the largest write has %d; %v", n, out.largest, err)
	}
}
