package render

import (
	"fmt"
	"io"
	"strings"
)

// Transcript is the text form of a conversation, which transcript.md beside this file describes: for going
// on with a cycle that broke off, and for models without native tool calls.
type Transcript struct {
	// History is what came before the cycle, without thinking; Current is the cycle, whole, nil when there
	// is none to go on with.
	History, Current []Event
	// Shown and Total say that History shows the last Shown of Total messages. Both are 0 when nothing is
	// left out.
	Shown, Total int64
}

// Event is one thing that was said, thought, called or returned. Its text may be anything.
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
)

// eventKinds returns all kinds.
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
	t.WriteTo(&text) // a Builder takes everything
	return text.String()
}

// WriteTo writes the whole text and returns how many bytes that were.
func (t Transcript) WriteTo(w io.Writer) (int64, error) {
	out := &countingWriter{w: w}
	out.write(historyHeader)
	if t.Shown < t.Total {
		out.write("\n" + countLine(t.Shown, t.Total))
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

func countLine(shown, total int64) string {
	return fmt.Sprintf("(showing last %d of %d messages)", shown, total)
}

// write puts an event after what stands there.
func (e Event) write(out *countingWriter) { out.write("\n\n" + e.line()) }

// line is the whole event. An empty text has no space before it either, so that programs which cut white
// space off line ends do no harm.
func (e Event) line() string {
	text := "$" + string(e.Kind) + ":"
	if e.Text != "" {
		text += " " + escape(e.Text)
	}
	return text
}

// countingWriter counts what it writes and keeps the first error.
type countingWriter struct {
	w   io.Writer
	n   int64
	err error
}

func (c *countingWriter) write(text string) {
	if c.err != nil {
		return
	}
	n, err := io.WriteString(c.w, text)
	c.n, c.err = c.n+int64(n), err
}
