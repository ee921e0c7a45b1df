package api

import (
	"strconv"
	"strings"
)

// streamOver describes the answer to a client that has received everything.
const streamOver = "The client has received the end, by the id in `Last-Event-ID`, and nothing has followed it since. An `EventSource` stops " +
	"reconnecting then."

// EndSuffix follows the seq of the newest entry in the id of the event end: a client that sends this id back has
// received everything.
const EndSuffix = "/end"

// After is what a streaming client has received already.
type After struct {
	// The id of the last event with an id that the client has received. It takes precedence over `after`.
	LastEventID string `header:"Last-Event-ID" pattern:"^[0-9]+(/end)?$"`
	// The `seq` of the last entry that the client has received, for clients that cannot set headers.
	Seq   int64 `query:"after" minimum:"0" default:"0"`
	ended bool
}

// Check reads the id of the last event.
func (a *After) Check() (err error) {
	if a.LastEventID == "" {
		return nil
	}
	text, ended := strings.CutSuffix(a.LastEventID, EndSuffix)
	if a.Seq, err = strconv.ParseInt(text, 10, 64); err != nil || a.Seq < 0 || a.Seq > maxSeq {
		return Refuse("Last-Event-ID", "Last-Event-ID must be the id of an event of this stream, not %q", Bounded(a.LastEventID))
	}
	a.ended = ended
	return nil
}

// Ended reports whether the client has received the end after the entry Seq.
func (a After) Ended() bool { return a.ended }
