// Package sse reads and writes server-sent events, the form in which models stream their answers and
// in which the server streams its own.
//
// The Reader follows the WHATWG HTML standard's section on parsing an event stream: lines end with LF,
// CRLF or CR, a BOM at the start is dropped, comments are skipped. It departs from the standard in one
// point: an event that the stream ends in the middle of is not dropped but delivered as Cut, because
// some servers leave out the last blank line. The Writer uses LF only and writes each event in one
// piece, since there are clients that understand nothing else.
package sse

import "time"

// Event is one event of a stream.
type Event struct {
	// ID is the last id that the stream gave, in this event or before; a client that connects again
	// sends it as Last-Event-ID. A Writer leaves out an empty one.
	ID string
	// Type is what the event field says; empty means "message".
	Type string
	// Data is the data lines, joined by LF. From a Reader it is valid until the next call of Next.
	Data []byte
	// Retry is how long a client shall wait before it connects again, 0 when the stream did not say so.
	// A Writer writes whole milliseconds.
	Retry time.Duration
	// Cut says that the stream ended before the blank line that ends the event: the data may be a part
	// only. A Writer does not look at it.
	Cut bool
}
