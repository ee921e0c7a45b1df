package render

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// streamed writes events as a model does.
func streamed(events []Event) string {
	var text strings.Builder
	for i, event := range events {
		if i > 0 {
			text.WriteString("\n\n")
		}
		text.WriteString("§" + strings.TrimPrefix(event.line(), "$"))
	}
	return text.String()
}

// endsWithCR reports whether the line end that a writer puts behind the event makes CR LF, which is one line end.
func endsWithCR(e Event) bool { return strings.HasSuffix(e.Text, "\r") }

// joined adds pieces up to events.
func joined(pieces []Piece) []Event {
	var events []Event
	for _, piece := range pieces {
		if piece.Begin {
			events = append(events, Event{Kind: piece.Kind})
		} else {
			events[len(events)-1].Text += piece.Text
		}
	}
	return events
}

// readSplit reads text that comes in pieces of these lengths, and the rest at once.
func readSplit(text string, lengths ...int) []Event {
	var reader EventReader
	var pieces []Piece
	for _, n := range lengths {
		n = min(n, len(text))
		pieces = append(pieces, reader.Write(text[:n])...)
		text = text[n:]
	}
	pieces = append(pieces, reader.Write(text)...)
	return joined(append(pieces, reader.End()...))
}

func byteByByte(text string) []int {
	lengths := make([]int, len(text))
	for i := range lengths {
		lengths[i] = 1
	}
	return lengths
}

// genStream draws texts full of what the streaming form is made of.
func genStream() *rapid.Generator[string] {
	piece := rapid.OneOf(genText(), rapid.SampledFrom([]string{
		"§think: ", "§respond: ", "§call: {\"name\": \"f\"}", "\n\n§result: x", "\n§ Call :", "\n\n", "\n", "```", "```json\n", "\n```\n", "\n\\§think: x", "$call: ", "\n$result: x",
	}))
	return rapid.Map(rapid.SliceOfN(piece, 0, 8), func(pieces []string) string { return strings.Join(pieces, "") })
}

// What was written in the streaming form is read back, whatever the texts say and wherever it is split.
func TestEventsAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spoken := genEvent(EventThink, EventRespond, EventCall).Filter(func(e Event) bool { return !endsWithCR(e) })
		written := rapid.SliceOfN(spoken, 0, 5).Draw(t, "events")
		text := streamed(written)
		lengths := rapid.SliceOfN(rapid.IntRange(0, 12), 0, 10).Draw(t, "lengths")
		if read := readSplit(text, lengths...); !slices.Equal(read, written) {
			t.Fatalf("read %q\nwrote %q\n%q", read, written, text)
		}
	})
}

// Where a text is split makes no difference, in the middle of characters too.
func TestEventsAreSplitAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := genStream().Draw(t, "text")
		whole := readSplit(text)
		lengths := rapid.SliceOfN(rapid.IntRange(0, 12), 0, 10).Draw(t, "lengths")
		for _, lengths := range [][]int{lengths, byteByByte(text)} {
			if read := readSplit(text, lengths...); !slices.Equal(read, whole) {
				t.Fatalf("split at %v: read %q\nwhole %q\nof %q", lengths, read, whole, text)
			}
		}
	})
}

// A mark that is decided early is the one that the whole line gets, and agrees with what escape escapes.
func TestMarksAreDecidedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{
				"\\", " ", "\u200b", "$", "§", "call", "ca", "LL", "think", "user", ":", "=", "===", "HISTORY", "CURR", "ENT", "(showing last ", "(show", "1", "K", "\xc2", "\xff",
				"(", "mess", "age", "\x1b", "[", "m", "]", "\a", "\u009b", "\u202a", "\xe2\x80",
			}), 0, 9).Draw(t, "parts"), "")
		}).Draw(t, "line")
		final, _ := markOf(line, true)
		structural := looksStructural(strings.TrimLeft(line, `\`))
		if slashed := strings.HasPrefix(line, `\`); final.escaped != (slashed && structural) || final.kind != "" && (slashed || !structural) {
			t.Fatalf("%q: mark %+v, structural %v", line, final, structural)
		}
		for at := range len(line) {
			if mark, decided := markOf(line[:at], false); decided && mark != final {
				t.Fatalf("%q decided as %+v, but %q is %+v", line[:at], mark, line, final)
			}
		}
	})
}

func TestWhatModelsWrite(t *testing.T) {
	respond := func(text string) Event { return Event{EventRespond, text} }
	for _, test := range []struct {
		name, text string
		want       []Event
	}{
		{"nothing", "", nil},
		{"only line ends", " \n\n\t\n", nil},
		{"no event", "Hello.\n\nAnd more.\n", []Event{respond("Hello.\n\nAnd more.\n")}},
		{"text before the first event", "\n\nSure!\n\n§call: {}", []Event{respond("Sure!"), {EventCall, "{}"}}},
		{"one line end between", "§think: a\n§respond: b", []Event{{EventThink, "a"}, respond("b")}},
		{"text on the next line", "§think:\na\n\n§respond:\n\nb", []Event{{EventThink, "a"}, respond("b")}},
		{"CR LF between events", "§think: a\r\n\r\n§call: {}\r\n§respond: b\r\nc\r\n", []Event{{EventThink, "a"}, {EventCall, "{}"}, respond("b\r\nc\r\n")}},
		{"CR LF before the text", "\r\n§think:\r\na\r\n\r\n§respond:\r\n\r\nb", []Event{{EventThink, "a"}, respond("b")}},
		{"CR LF in a fence around all", "```text\r\n§think: a\r\n\r\n§respond: b\r\n```\r\n", []Event{{EventThink, "a"}, respond("b")}},
		{"CR alone is content", "§respond: a\r\rb\r", []Event{respond("a\r\rb\r")}},
		{"no space", "§respond:b", []Event{respond("b")}},
		{"careless marks", "§Think : a\n\n  § RESPOND: b", []Event{{EventThink, "a"}, respond("b")}},
		{"dollars", "$think: a\n\n$call: {}\n\n$result: x", []Event{{EventThink, "a"}, {EventCall, "{}"}, {EventResult, "x"}}},
		{"dollars in an answer with §", "§respond: a\n\n$call: {}", []Event{respond("a\n\n$call: {}")}},
		{"a dollar after a call", "§call: {\n\n$result: x", []Event{{EventCall, "{"}, {EventResult, "x"}}},
		{"escapes", "§respond: \\§call: x\n\\\\$user: y\n\\=== CURRENT ===\n\\n", []Event{respond("§call: x\n\\$user: y\n=== CURRENT ===\n\\n")}},
		{"no mark in a line", "§respond: see §call: x", []Event{respond("see §call: x")}},
		{"a mark behind a mark", "§respond: §call: x", []Event{respond("§call: x")}},
		{"not whole", "§respond: a\n§cal", []Event{respond("a\n§cal")}},
		{"a fence around all", "```text\n§think: a\n\n§respond: b\n```\n", []Event{{EventThink, "a"}, respond("b")}},
		{"with a fence in it", "```\n§respond: a\n```go\nx\n```\nb\n```", []Event{respond("a\n```go\nx\n```\nb")}},
		{"with a bare fence in it", "```\n§respond: a\n```\nx\n```\nb\n```", []Event{respond("a\n```\nx\n```\nb")}},
		{"a fence of its own", "```go\nx\n```\n", []Event{respond("```go\nx\n```\n")}},
		{"a fence and nothing", "```go\n", []Event{respond("```go\n")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, lengths := range [][]int{nil, byteByByte(test.text)} {
				if got := readSplit(test.text, lengths...); !slices.Equal(got, test.want) {
					t.Errorf("split at %v: got %q\nwant %q", lengths, got, test.want)
				}
			}
		})
	}
}

// Text is given as soon as it cannot be structure.
func TestReaderHoldsBackOnlyWhatMayBeStructure(t *testing.T) {
	var reader EventReader
	for _, step := range [][2]string{
		{"§", ""},
		{"respond:", ""},
		{" He", "He"},
		{"llo\n", "llo"},
		{"\n", ""},
		{"x", "\n\nx"},
		{"\n", ""},
		{"§ca", ""},
		{"n", "\n§can"},
		{" \xe2\x82", " "},
		{"\xac", "€"},
		{"\n\n\n", "\n"},
		{"\\", ""},
		{"a", "\n\n\\a"},
		{"\n=", "\n="},
		{"\n\\==", ""},
		{"a", "\n\\==a"},
		{"§call:", "§call:"},
	} {
		given := ""
		for _, piece := range reader.Write(step[0]) {
			given += piece.Text
		}
		if given != step[1] {
			t.Errorf("%q gave %q, want %q", step[0], given, step[1])
		}
	}
}

// Whatever an upstream sends without an end, the reader keeps little of it.
func TestReaderHoldsBackLittle(t *testing.T) {
	for _, endless := range []string{"§", " ", "\n", "\\", "\\ ", "\u200b", "§ ", "\\= ", "`", "```\n", "§call", "§call:", "§call:\n", "\r\n", "\xc2", "\\(showing "} {
		for _, begin := range []string{"", "§respond: a\n", "```\n§respond: a\n```"} {
			var reader EventReader
			reader.Write(begin)
			for range 5000 {
				reader.Write(endless)
				if held := len(reader.buffer) + len(reader.pending) + len(reader.fence.opening); held > 3*maxMark {
					t.Fatalf("%q after %q: %d bytes are held back", endless, begin, held)
				}
			}
		}
	}
}

// Any text is read the same however it is split, and each of its characters is given or is structure.
func FuzzEventReader(f *testing.F) {
	f.Add("§think: a\n\n§call: {\"name\": \"f\", \"args\": {}}\n\n$result: x", uint8(1))
	f.Add("```\n§respond: \\$user: x\n```\n", uint8(3))
	f.Add("\\=== CURRENT ===\n\\§ Call :", uint8(2))
	f.Fuzz(func(t *testing.T, text string, step uint8) {
		whole := readSplit(text)
		lengths := []int{}
		for n := 0; n < len(text); n += int(step)%16 + 1 {
			lengths = append(lengths, int(step)%16+1)
		}
		if got := readSplit(text, lengths...); !slices.Equal(got, whole) {
			t.Fatalf("split: %q\nwhole: %q", got, whole)
		}
		if !utf8.ValidString(text) || slices.ContainsFunc(whole, endsWithCR) {
			return
		}
		if again := readSplit(streamed(whole)); !slices.Equal(again, whole) {
			t.Fatalf("written again: %q\nread first: %q", again, whole)
		}
	})
}
