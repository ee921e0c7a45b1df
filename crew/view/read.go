package view

import (
	"errors"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// maxBacklog bounds how many entries are read to find the beginning of the role's open turn, and how many are read
// only to count the messages in them.
var maxBacklog int64 = 2048

// reader reads the log backward, once, as long as the view can show the entries.
type reader struct {
	*sizer
	source  window.Source
	backlog *backlog

	units   *window.Assembler // of messages
	retried map[string]bool   // roles with a retry among the entries so far, back to the failed attempt
	recalls []part            // blocks of recalled entries after the next message, newest first
	size    continuo.Size     // of the messages
	fullAt  int64             // the number of entries read when the limits were full; 0 before
}

// read reads the part of the log that a role's request may show.
func read(source window.Source, s *sizer) (*backlog, error) {
	r := &reader{
		sizer: s, source: source, backlog: &backlog{oldest: s.in.At + 1, end: s.in.At},
		units: window.NewAssembler(s.definition), retried: map[string]bool{},
	}
	for _, step := range []func() error{r.readNotes, r.readMessages, r.countOlder, r.readShownSummary, r.findRequests} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return r.backlog, nil
}

// readMessages reads the role's open turn, and the messages before it.
func (r *reader) readMessages() error {
	b, open := r.backlog, newOpenTurn(&r.role)
	for entry, err := range r.source.Backward(r.in.At) {
		if err != nil {
			return err
		}
		b.rows++
		if entry.Seq <= r.role.Since {
			break
		}
		if open.decided {
			r.take(entry)
		} else if open.take(entry); open.decided {
			r.sortOut(open)
		}
		if open.decided && !r.units.Waiting() && r.enough(entry.Seq-1) {
			break
		}
	}
	if !open.decided {
		r.sortOut(open)
	}
	b.excluded = append(b.excluded, r.units.Finish()...)
	for _, block := range r.recalls { // nothing that is shown precedes them
		b.excluded = append(b.excluded, window.Exclusion{Entry: block.entry, Reason: window.ReasonUIOnly})
	}
	slices.Reverse(b.messages)
	if n := len(b.messages); n > 0 && b.messages[n-1].isNew && b.messages[n-1].unit.Open() {
		b.held, b.messages = b.messages[n-1], b.messages[:n-1]
	}
	return nil
}

// sortOut divides the entries so far into the role's open turn and messages.
func (r *reader) sortOut(open *openTurn) {
	b, own := r.backlog, window.NewAssembler(r.definition)
	if open.cue != nil {
		b.cue, b.end = open.cue, open.cue.Seq-1
	}
	for _, e := range open.entries {
		switch {
		case e.Seq <= b.end:
			r.take(e)
		case e == b.cue:
			b.excluded = append(b.excluded, window.Exclusion{Entry: e, Reason: window.ReasonUIOnly})
		case e.TurnID == "" || e.TurnID != b.cue.TurnID:
			b.excluded = append(b.excluded, window.Exclusion{Entry: e, Reason: window.ReasonAfterCue})
		default:
			r.learn(e)
			if e.Round != nil && e.Round.ViewHash == r.hash {
				b.shownThrough = max(b.shownThrough, e.Round.Cursor)
			}
			if u := own.Add(e); u != nil {
				b.turn = append(b.turn, u)
			}
		}
		if e.Seq > b.end {
			b.oldest = e.Seq
		}
	}
	b.excluded = append(b.excluded, own.Finish()...)
	slices.Reverse(b.turn)
}

// learn reads the values that an earlier request recorded on an entry.
func (r *reader) learn(e *continuo.Entry) {
	w := r.request.Learn(e)
	if w == nil || r.backlog.previous != nil || !r.role.hasEpochs() || r.role.Whole {
		return
	}
	if w.Start > r.role.Since && len(w.Pins) == 0 && w.Left >= -1 {
		r.backlog.previous = w
	}
}

// take takes the next older entry before the open turn.
func (r *reader) take(e *continuo.Entry) {
	b := r.backlog
	b.oldest = e.Seq
	r.learn(e)
	if r.role.mayShow(e) {
		b.summaries = append(b.summaries, e)
	}
	if r.role.ownsRecall(e) && r.definition.RecallShare > 0 {
		r.recalls = append(r.recalls, r.recallBlock(e))
		return
	}
	m := r.message(e, true)
	if m == nil {
		return
	}
	slices.Reverse(r.recalls)
	m.recalls, r.recalls = r.recalls, nil
	if m.user {
		b.original = m
		if b.newest == nil {
			b.newest = m
		}
	}
	b.messages = append(b.messages, m)
	r.size = r.size.Add(r.measure(m, m == b.newest)).Add(m.recallSize())
}

// message converts the next older entry to a message; nil where it is none, or is not complete yet. Only recorded
// exclusions appear among the plan's items.
func (r *reader) message(e *continuo.Entry, record bool) *message {
	exclude := func(reason string, entries ...*continuo.Entry) *message {
		for _, entry := range entries {
			if record {
				r.backlog.excluded = append(r.backlog.excluded, window.Exclusion{Entry: entry, Reason: reason})
			}
		}
		return nil
	}
	if event := e.RunEvent; event != nil && event.Kind == continuo.RunNodeBegan {
		r.retried[e.NodeID] = event.Attempt > 1
	}
	if reason := neverShown(e); reason != "" {
		return exclude(reason, e)
	}
	u := r.units.Add(e)
	if u == nil {
		return nil
	}
	m := newMessage(u, &r.role)
	switch {
	case m == nil, e.Error != nil && !m.own && r.retried[e.NodeID]: // the next attempt's answer replaces it
		return exclude(window.ReasonFailedAnswer, u.Entries...)
	case m.own && r.role.Remembers && !r.role.Whole:
		return exclude(window.ReasonOwnMessage, u.Entries...)
	}
	return m
}

// neverShown returns the reason for which an entry is never shown to a role, or "". Entries for which it returns ""
// may still be excluded later.
func neverShown(e *continuo.Entry) string {
	switch {
	case e.IsPlaceholder():
		return window.ReasonPlaceholder
	case e.HoldsRecall():
		return window.ReasonUIOnly
	case e.Hidden || e.Role == continuo.Tool || e.HasCalls():
		return ""
	case e.Role == continuo.System:
		return window.ReasonSystem
	case e.Error == nil && (e.Role == continuo.User || e.Reasoning == nil) && e.Content.IsBlank():
		return window.ReasonEmpty
	case e.Error == nil && e.Content.IsBlank():
		return window.ReasonThinking
	}
	return ""
}

// maxSummaryRows bounds how many entries before the oldest showable one are searched for a summary.
const maxSummaryRows = 1000

// enough reports whether no entry at or before seq can be shown as a message.
func (r *reader) enough(seq int64) bool {
	b := r.backlog
	if r.full() {
		if r.fullAt == 0 {
			r.fullAt = b.rows
		}
		return r.role.Kind != Summary || len(b.summaries) > 0 || b.rows > r.fullAt+maxSummaryRows
	}
	switch kind := r.role.Kind; {
	case seq > r.role.Cursor, r.role.Whole:
		return false
	case kind == Delta:
		return true
	case b.previous != nil:
		return seq < b.previous.Start
	case kind == Memory && len(b.summaries) > 0:
		return seq <= b.summaries[0].Summary.Through
	case kind == Memory:
		return r.role.Remembers
	case kind == Window && r.role.Newest == 0:
		return true
	case kind == Summary && len(b.summaries) > 0:
		return seq <= b.summaries[0].Summary.Through && len(b.messages) >= r.role.Newest
	}
	return false
}

// full reports whether the messages exceed what the view can show.
func (r *reader) full() bool {
	return r.maxMessages > 0 && len(r.backlog.messages) > r.maxMessages || r.request.Limits().Exceeded(r.size) != ""
}

// countOlder reads on after the limits were full, to count the messages that are left out: back to the beginning of
// the previous window, whose count covers the earlier ones.
func (r *reader) countOlder() error {
	b := r.backlog
	var summary *continuo.Entry
	if len(b.summaries) > 0 {
		summary = b.summaries[0]
	}
	from := r.role.Since
	switch {
	case r.role.onlyNew(summary):
		from = max(from, r.role.Cursor)
	case b.previous != nil:
		from = min(b.previous.Start-1, max(r.role.Cursor, r.role.Since))
	}
	if b.oldest <= from+1 {
		return nil
	}
	rows := int64(0)
	for entry, err := range r.source.Backward(b.oldest - 1) {
		if err != nil {
			return err
		}
		b.rows++
		if rows++; entry.Seq <= from {
			return nil
		}
		if rows > maxBacklog {
			b.moreOlder = true
			return nil
		}
		if m := r.message(entry, false); m != nil {
			b.older = append(b.older, countedMessage{m.seq(), m.isNew})
		}
	}
	return nil
}

// readNotes reads the role's notes.
func (r *reader) readNotes() error {
	if r.role.Kind != Memory || r.role.Notes <= r.role.Since || r.role.Notes > r.in.At {
		return nil
	}
	return r.readSummary(r.role.Notes)
}

// readShownSummary reads the summary that the previous window shows instead of earlier messages.
func (r *reader) readShownSummary() error {
	previous := r.backlog.previous
	if previous == nil || previous.Summary == 0 || r.backlog.summary(previous.Summary) != nil {
		return nil
	}
	return r.readSummary(previous.Summary)
}

// readSummary reads the entry at a seq, if it is a summary that the role may be shown.
func (r *reader) readSummary(seq int64) error {
	for entry, err := range r.source.Forward(seq) {
		if err != nil {
			return err
		}
		if r.backlog.rows++; entry.Seq == seq && entry.Seq <= r.in.At && r.role.mayShow(entry) {
			r.backlog.summaries = append(r.backlog.summaries, entry)
		}
		break
	}
	return nil
}

// findRequests finds the first and the newest message of the user since the reset, at whatever seq.
func (r *reader) findRequests() error {
	b := r.backlog
	if b.oldest <= r.role.Since+1 {
		return nil
	}
	seq, newest, err := r.latestUser(min(b.oldest-1, b.end))
	if err != nil || seq <= r.role.Since {
		return err
	}
	if b.newest == nil {
		b.newest = newest
	}
	first, err := r.firstUser(r.role.Since+1, seq)
	switch {
	case first == nil:
	case b.newest != nil && first.seq() == b.newest.seq():
		b.original = b.newest
	default:
		b.original = first
	}
	return err
}

// latestUser reads the newest message of the user at or before a seq: 0 for none, and nil where it has no text.
func (r *reader) latestUser(at int64) (seq int64, latest *message, err error) {
	entry, err := r.source.LatestUser(at)
	if errors.Is(err, continuo.ErrNotFound) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	r.backlog.rows++
	return entry.Seq, r.single(entry), nil
}

// firstUser reads the first message of the user from a seq up to another; nil for none.
func (r *reader) firstUser(from, through int64) (*message, error) {
	for entry, err := range r.source.Forward(from) {
		if err != nil {
			return nil, err
		}
		r.backlog.rows++
		if entry.Seq > through {
			break
		}
		if entry.Role != continuo.User || entry.Hidden {
			continue
		}
		if m := r.single(entry); m != nil {
			return m, nil
		}
	}
	return nil, nil
}

// single is the message of an entry without calls; nil where it has no text.
func (r *reader) single(e *continuo.Entry) *message {
	return newMessage(&window.Unit{Entries: []*continuo.Entry{e}}, &r.role)
}
