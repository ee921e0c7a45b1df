package render

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Transcript is the text form of a conversation, described in transcript.md beside this file. It is used to
// continue an interrupted cycle, and for models without native tool calls.
type Transcript struct {
	// History has the messages before the cycle, without thinking; Current has the whole cycle, nil when
	// there is none to continue.
	History, Current []Event
	// Shown and Total say that History shows Shown of Total messages: the last ones if it has no gap, else
	// those around its gaps. Both are 0 when nothing is left out.
	Shown, Total int64
}

// Event is one message, thought, call or result, with any text, or a gap. A gap's text is the number of
// messages left out, a decimal number above 0, or empty if it is not given.
type Event struct {
	Kind EventKind
	Text string
}

// EventKind is the word that an event begins with.
type EventKind string

// The kinds of events. The text of a call is {"name": …, "args": …}.
const (
	EventUser    EventKind = "user"
	EventRespond EventKind = "respond"
	EventThink   EventKind = "think"
	EventCall    EventKind = "call"
	EventResult  EventKind = "result"
	// EventGap marks left-out messages. It is written as a line of its own, without a word.
	EventGap EventKind = "gap"
)

// eventKinds returns the kinds that are written as words.
func eventKinds() []EventKind {
	return []EventKind{EventUser, EventRespond, EventThink, EventCall, EventResult}
}

// The lines that begin the two sections.
const (
	historyHeader = "=== HISTORY ==="
	currentHeader = "=== CURRENT ==="
)

// String returns the whole text; it ends with a line end.
func (t Transcript) String() string {
	var text strings.Builder
	t.WriteTo(&text) // a Builder never fails
	return text.String()
}

// WriteTo writes the whole text and returns how many bytes that were.
func (t Transcript) WriteTo(w io.Writer) (int64, error) {
	out := &countingWriter{w: w}
	out.write(historyHeader)
	if t.Shown < t.Total {
		out.write("\n" + countLine(t.Shown, t.Total, hasGap(t.History)))
	}
	for _, event := range t.History {
		event.write(out)
	}
	if len(t.Current) > 0 {
		out.write("\n\n" + currentHeader)
	}
	for _, event := range t.Current {
		event.write(out)
	}
	out.write("\n")
	if out.err != nil {
		return out.n, fmt.Errorf("write transcript: %w", out.err)
	}
	return out.n, nil
}

// countLine says how many messages of the history are shown: the last ones, unless there are gaps.
func countLine(shown, total int64, gaps bool) string {
	last := "last "
	if gaps {
		last = ""
	}
	return fmt.Sprintf("(showing %s%d of %d messages)", last, shown, total)
}

// gapLine marks a gap of so many messages; an empty number is left out.
func gapLine(number string) string {
	switch number {
	case "":
		return "(messages left out)"
	case "1":
		return "(1 message left out)"
	default:
		return "(" + number + " messages left out)"
	}
}

func hasGap(events []Event) bool {
	return slices.ContainsFunc(events, func(e Event) bool { return e.Kind == EventGap })
}

// write appends an event to the events written before.
func (e Event) write(out *countingWriter) {
	out.write("\n\n")
	e.writeLine(out)
}

// writeLine writes the whole event. Before an empty text it omits the space, so that programs which trim line
// ends do no harm.
func (e Event) writeLine(out *countingWriter) {
	if e.Kind == EventGap {
		out.write(gapLine(e.Text))
		return
	}
	out.write("$" + string(e.Kind) + ":")
	if e.Text != "" {
		out.write(" ")
		out.write(escape(e.Text))
	}
}

// line returns what writeLine writes.
func (e Event) line() string {
	var text strings.Builder
	e.writeLine(&countingWriter{w: &text})
	return text.String()
}

// countingWriter counts what it writes and keeps the first error.
type countingWriter struct {
	w   io.Writer
	n   int64
	err error
}

// pieceBytes bounds one write, so that a large text is not copied as a whole for a writer that takes bytes.
const pieceBytes = 64 << 10

func (c *countingWriter) write(text string) {
	for len(text) > 0 && c.err == nil {
		n, err := io.WriteString(c.w, text[:min(len(text), pieceBytes)])
		c.n, c.err, text = c.n+int64(n), err, text[n:]
	}
}
