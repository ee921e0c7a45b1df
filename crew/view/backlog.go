package view

import (
	"slices"
	"sort"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// backlog is the part of the log that was read for a role's request. The layout depends on it and the limits alone.
//
//	since | older: counted | oldest ... messages ... newest | held | cue | turn | at
//	       ^ or not even that            ^ cursor: those after it are new to the role
type backlog struct {
	rows int64 // entries that were read
	// cue is the entry that the role's open turn began with; nil where no turn is open.
	cue *continuo.Entry
	end int64 // the last seq before the cue, or of the log
	// oldest is the lowest seq from which all entries up to end were read.
	oldest   int64
	messages []*message     // from oldest to end, oldest first, without held
	held     *message       // a new group at the end whose calls have no results yet: held back; nil for none
	turn     []*window.Unit // the role's own open turn, oldest first
	excluded []window.Exclusion

	newest, original *message // the user's newest and first message since the reset, at whatever seq; nil for none

	// shownThrough is the seq through which the open turn's first request showed everything; 0 for none.
	shownThrough int64
	// older are the counted messages before oldest, newest first. MoreOlder says that there may be others.
	older     []countedMessage
	moreOlder bool

	previous  *continuo.Window  // of the newest request with an equal view; nil for none, or for a view without epochs
	summaries []*continuo.Entry // that may replace older messages, by the kind of view; newest first
}

// countedMessage is a message that was read only to be counted.
type countedMessage struct {
	seq   int64
	isNew bool
}

// indexFrom is the index of the first message from a seq on.
func (b *backlog) indexFrom(seq int64) int {
	return sort.Search(len(b.messages), func(i int) bool { return b.messages[i].seq() >= seq })
}

// firstNew is the index of the first message that is new to the role, or the number of messages.
func (b *backlog) firstNew() int {
	if i := slices.IndexFunc(b.messages, func(m *message) bool { return m.isNew }); i >= 0 {
		return i
	}
	return len(b.messages)
}

// oldestCounted is the oldest seq that was read, including the entries that were only counted.
func (b *backlog) oldestCounted() int64 {
	if n := len(b.older); n > 0 {
		return b.older[n-1].seq
	}
	return b.oldest
}

// isRequest reports whether a message is the original or the current request, which are always shown.
func (b *backlog) isRequest(seq int64) bool {
	is := func(m *message) bool { return m != nil && m.seq() == seq }
	return is(b.original) || is(b.newest)
}

// summary returns the summary at a seq; nil for none that may be shown.
func (b *backlog) summary(seq int64) *continuo.Entry {
	for _, e := range b.summaries {
		if e.Seq == seq {
			return e
		}
	}
	return nil
}

// usualSummary is the summary that the view shows instead of old messages: the role's notes, or the summary that
// reaches furthest. Nil for none, and for a view that shows neither.
func (b *backlog) usualSummary(role *Role) *continuo.Entry {
	switch role.Kind {
	case Memory:
		return b.summary(role.Notes)
	case Summary:
		var best *continuo.Entry
		for _, e := range b.summaries {
			if best == nil || e.Summary.Through > best.Summary.Through {
				best = e
			}
		}
		return best
	}
	return nil
}

// catchUp is the newest catch-up on messages that the role was not shown; nil for none.
func (b *backlog) catchUp(role *Role) *continuo.Entry {
	for _, e := range b.summaries {
		if IsCatchUp(e, role.Name) && e.Summary.Through > role.Cursor {
			return e
		}
	}
	return nil
}

// covers reports whether a summary covers an entry; a nil summary covers none.
func covers(summary *continuo.Entry, seq int64) bool {
	return summary != nil && summary.Summary.From <= seq && seq <= summary.Summary.Through
}
