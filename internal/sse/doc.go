// Package sse reads and writes server-sent events, the format in which models stream their answers and in which the
// server streams its own.
//
// The Reader follows the WHATWG HTML standard's section on parsing an event stream: lines end with LF, CRLF or CR, a
// BOM at the start is dropped, comments are skipped. It departs from the standard in one point: an event in whose
// middle the stream ends is not dropped but delivered as Cut, because some servers leave out the last blank line. The
// Writer uses LF only and writes each event in one piece, since some clients accept nothing else.
package sse

import "time"

// Event is one event of a stream.
type Event struct {
	// ID is the stream's last id, from this event or an earlier one; a client that reconnects sends it as
	// Last-Event-ID. A Writer omits an empty one.
	ID string
	// Type is the value of the event field; empty means "message".
	Type string
	// Data is the data lines, joined by LF. From a Reader it is valid until the next call of Next.
	Data []byte
	// Retry is the delay before a client reconnects, 0 if the stream did not give one. A Writer writes whole
	// milliseconds.
	Retry time.Duration
	// Cut says that the stream ended before the blank line that ends the event: the data may be incomplete. A Writer
	// ignores it.
	Cut bool
}
