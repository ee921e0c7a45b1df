package render

import "strings"

// EventReader parses events in the streaming form, with §, from text that arrives in pieces split anywhere.
// It returns text as soon as it cannot be structure any more: it holds back only the beginning of a line that
// may still begin an event, and up to two line ends before it. The zero value is ready to use; it is not safe
// for concurrent use.
//
// It is lenient with frequent mistakes of models: text before the first event is a response; a code fence
// around the whole answer is removed; $ counts as § when the first event is written with it, and within a
// call. See transcript.md.
type EventReader struct {
	buffer  string // received and not yet parsed
	state   readerState
	kind    EventKind // of the event being read, "" before the first
	sign    rune      // of the first event that had one
	pending string    // parsed; content unless an event follows: line ends, a closing fence
	fence   fence
	pieces  []Piece
	text    strings.Builder // text of the piece being built
}

// Piece is a part of an event as it was read.
type Piece struct {
	Kind EventKind
	Text string
	// Begin says that an event begins; its piece has no text.
	Begin bool
}

// readerState is the reader's position in an event.
type readerState int

const (
	atLine  readerState = iota // at the beginning of a line
	inLine                     // in a line after its beginning
	atText                     // after the colon of an event
	atLead                     // after the colon and a line end
	atFirst                    // at the beginning of the text, on the event's own line
)

// maxMark bounds in bytes how much of a line is held back. A longer beginning that is still undecided
// consists of blanks and backslashes only, and is content.
const maxMark = 1024

// Write reads the next piece of text and returns the pieces of events that it completes.
func (r *EventReader) Write(text string) []Piece {
	r.buffer += text
	return r.read(false)
}

// End reads the held-back text at the end of the input.
func (r *EventReader) End() []Piece {
	pieces := r.read(true)
	if r.fence.opening != "" {
		r.content("")
	}
	if r.pending != "" && !r.fence.closing {
		r.emit(r.pending)
	}
	return append(pieces, r.take()...)
}

func (r *EventReader) take() []Piece {
	r.endPiece()
	pieces := r.pieces
	r.pieces = nil
	return pieces
}

func (r *EventReader) read(end bool) []Piece {
	for r.buffer != "" && r.step(end) {
	}
	return r.take()
}

// step parses one token from the buffer. It returns false when it needs more text.
func (r *EventReader) step(end bool) bool {
	switch r.state {
	case inLine:
		return r.readContent(end)
	case atText:
		return r.readLead(end)
	case atLead:
		return r.readLeadBreak(end)
	default:
		return r.readMark(end)
	}
}

// readLead reads the separator between the colon and the text: one space, or line ends.
func (r *EventReader) readLead(end bool) bool {
	if r.isHalfBreak(0, end) {
		return false
	}
	r.state = atFirst
	switch {
	case r.buffer[0] == ' ':
		r.buffer = r.buffer[1:]
	case lineBreak(r.buffer) != "":
		r.state = atLead
	}
	return true
}

// readLeadBreak reads one of the line ends between the colon and the text.
func (r *EventReader) readLeadBreak(end bool) bool {
	if r.isHalfBreak(0, end) {
		return false
	}
	if found := lineBreak(r.buffer); found != "" {
		r.buffer = r.buffer[len(found):]
	} else {
		r.state = atLine
	}
	return true
}

// lineBreak returns the line end, LF or CR LF, that a text begins with, or nothing.
func lineBreak(text string) string {
	for _, each := range []string{"\n", "\r\n"} {
		if strings.HasPrefix(text, each) {
			return each
		}
	}
	return ""
}

// isHalfBreak reports whether the buffer ends, from at, with a CR whose LF may follow.
func (r *EventReader) isHalfBreak(at int, end bool) bool { return !end && r.buffer[at:] == "\r" }

// readMark reads the beginning of a line, as far as it is structure.
func (r *EventReader) readMark(end bool) bool {
	length, width := lineEnd(r.buffer)
	if r.isHalfBreak(length, end) {
		return false
	}
	line, whole := r.buffer[:length], end || width > 0
	if r.state == atLine {
		if r.kind == "" && r.fence.opening == "" && whole && strings.TrimLeftFunc(line, isInvisible) == "" {
			r.buffer = r.buffer[length+width:] // no event has begun
			return true
		}
		if taken, wait := r.readFence(line, whole, r.buffer[length:length+width]); taken || wait {
			return taken
		}
	}
	mark, decided := markOf(line, whole)
	if !decided {
		if len(line) <= maxMark {
			return false
		}
		mark = lineMark{}
	}
	if mark.kind != "" && r.state == atLine && r.accepts(mark.sign) {
		r.begin(mark)
		return true
	}
	if mark.escaped {
		r.buffer = r.buffer[1:]
	}
	r.state = inLine
	return true
}

// accepts reports whether a sign begins an event in the current state.
func (r *EventReader) accepts(sign rune) bool {
	return sign == '§' || r.sign != '§' || r.kind == EventCall
}

// begin begins the event of a mark. The line ends held back separate it from the event before.
func (r *EventReader) begin(mark lineMark) {
	if r.fence.closing { // the held-back fence line closed nothing
		r.emit(strings.TrimSuffix(r.pending, lastBreaks(r.pending)))
		r.fence.closing = false
	}
	if r.fence.opening != "" {
		r.fence = fence{all: true}
	}
	if r.sign == 0 {
		r.sign = mark.sign
	}
	r.pending, r.state = "", atText
	r.buffer = r.buffer[mark.text:]
	r.beginEvent(mark.kind)
}

// readContent reads content up to the end of the line.
func (r *EventReader) readContent(end bool) bool {
	length, width := lineEnd(r.buffer)
	if width == 0 {
		text := r.buffer
		if !end {
			text = withoutPartialRune(text)
		}
		r.content(text)
		r.buffer = r.buffer[len(text):]
		return text != ""
	}
	r.content(r.buffer[:length])
	r.buffer = r.buffer[length:]
	if r.isHalfBreak(0, end) {
		return false
	}
	if found := lineBreak(r.buffer); found != "" {
		r.hold(found)
	} else {
		r.content(r.buffer[:width])
	}
	r.buffer = r.buffer[width:]
	r.state = atLine
	return true
}

// hold holds text back that is content unless an event or the end follows.
func (r *EventReader) hold(text string) {
	r.pending += text
	if len(r.pending) > maxMark { // too long for the end of a fence
		r.fence.closing = false
	}
	if keep := len(lastBreaks(r.pending)); !r.fence.closing && len(r.pending) > keep {
		r.emit(r.pending[:len(r.pending)-keep])
		r.pending = r.pending[len(r.pending)-keep:]
	}
}

// lastBreaks returns the line ends that a text ends with, two at most: those that separate an event from the next.
func lastBreaks(text string) string {
	at := len(text)
	for range 2 {
		at = len(strings.TrimSuffix(strings.TrimSuffix(text[:at], "\n"), "\r"))
	}
	return text[at:]
}

// content returns text, after the text that was held back before it. Text before the first event begins a
// response.
func (r *EventReader) content(text string) {
	if r.kind == "" && (text != "" || r.fence.opening != "") {
		r.beginEvent(EventRespond)
		text, r.fence.opening = r.fence.opening+text, ""
	}
	if text == "" {
		return
	}
	if r.fence.closing { // the held-back fence line opened a code block
		r.fence.closing, r.fence.inner = false, true
	}
	r.emit(r.pending + text)
	r.pending = ""
}

func (r *EventReader) emit(text string) {
	r.text.WriteString(text)
}

// beginEvent adds the piece that begins an event.
func (r *EventReader) beginEvent(kind EventKind) {
	r.endPiece()
	r.kind = kind
	r.pieces = append(r.pieces, Piece{Kind: kind, Begin: true})
}

// endPiece turns the collected text into a piece.
func (r *EventReader) endPiece() {
	if r.text.Len() > 0 {
		r.pieces = append(r.pieces, Piece{Kind: r.kind, Text: r.text.String()})
		r.text.Reset()
	}
}
