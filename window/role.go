package window

import (
	"fmt"
	"slices"

	continuo "github.com/continuo-log/continuo"
)

// buildRole is Build for a role of a crew: one text with the talk that the role is shown, and behind it the role's
// own turn, if one is under way, as messages.
//
// The text depends on nothing that the turn has brought, so that the requests of a turn only grow at the end, and the
// role's cursor moves to the same place whichever of them is the last. It is filled up to the low-water mark: what is
// above it is left to the turn's own tool outputs.
func buildRole(source Source, view View, in Input) (*continuo.Plan, error) {
	hash := view.Hash()
	view.SkipSystem, view.Limits.Messages = true, 0
	r := &roleBuild{
		build: &build{
			source: source, view: view, in: in, hash: hash, correction: 1, window: continuo.Window{Epoch: 1, Start: 1},
			shaper: shaper{view: view, counter: in.Counter, provider: in.Provider},
		},
		role: view.Role, kind: view.Role.Kind,
	}
	r.words = assembler{view: view}
	if err := r.read(); err != nil {
		return nil, fmt.Errorf("build view %s: %w", view.Name, err)
	}
	r.sort()
	if err := r.arrange(); err != nil {
		return nil, err
	}
	return r.plan(), nil
}

// check refuses what is no view of a role. Nil is one of nobody's.
func (v *RoleView) check(view string) error {
	switch {
	case v == nil:
		return nil
	case v.Name == "":
		return fmt.Errorf("view %s: %w: the role has no name", view, continuo.ErrInvalid)
	case v.Newest < 0 || v.Since < 0 || v.Cursor < 0 || v.Notes < 0:
		return fmt.Errorf("view %s: %w: the role's newest, since, cursor and notes must not be negative", view, continuo.ErrInvalid)
	}
	switch v.Kind {
	case RoleDelta, RoleFull, RoleWindow, RoleSummary, RoleMemory:
		return nil
	}
	return fmt.Errorf("view %s: %w: the kind %q is not known; use delta, full, window, summary or memory", view, continuo.ErrInvalid, v.Kind)
}

// roleBuild is the state of one buildRole.
type roleBuild struct {
	*build // its units are those of the role's own turn
	role   *RoleView
	kind   RoleKind // the role's, or what it comes to where it lost its memory or there is nothing to stand for the old

	ask            *continuo.Entry // what the role's turn began with; nil where none is under way
	end            int64           // the newest seq of the talk
	later          int64           // that of what waits behind it because it was not read; 0 for none
	openCorrection float64         // of estimated tokens, by what the turn's own requests reported

	words    assembler
	again    map[string]bool // roles that were asked again, on the way back to where they had failed
	talk     []*talk         // what was read, oldest first
	top      int64           // the seq from which on everything was read
	newest   *talk           // the newest user message; nil for none
	original *talk           // the first user message behind the newest reset; nil for none
	notes    *continuo.Entry
	summary  *continuo.Entry

	seenSize continuo.Size // of the talk up to sized, as far as it is not new
	sized    int
	rowsFull int64 // how many rows were read when the limits were full; 0 while they are not

	fresh    []*talk
	optional []*talk
	held     *talk // a group that is still open: it waits

	arranged layout
	text     continuo.Message
	open     []piece
	openOver string // the limit for which the turn's own messages were cut down
}

// The reasons of verdicts in views of roles.
const (
	reasonNew         = "new"
	reasonSeen        = "seen"
	reasonOriginal    = "original_request"
	reasonLatestUser  = "latest_user"
	reasonOwnWords    = "own_words"
	reasonPlaceholder = "placeholder"
	reasonFailed      = "failed_answer"
	reasonBeforeReset = "before_reset"
	reasonAfterAsk    = "after_ask"
	reasonNextTurn    = "next_turn"
	reasonNotes       = "notes"
)

// sort decides which part each message plays.
func (r *roleBuild) sort() {
	for i, t := range r.talk {
		t.order = r.orderOf(t, len(r.talk)-i)
		if i == len(r.talk)-1 && t.isNew && len(t.unit.missing) > 0 {
			r.held, t.order = t, aside
		}
	}
	if t := r.newest; t != nil && t.order != fresh && r.needsNewest() {
		t.order = pinned
		if t.seq() < r.top {
			r.talk = slices.Insert(r.talk, 0, t)
		}
	}
	for _, t := range r.talk {
		switch t.order {
		case fresh:
			r.fresh = append(r.fresh, t)
		case optional:
			r.optional = append(r.optional, t)
		}
	}
}

// orderOf is the part of a message by the kind of view; fromEnd counts the messages from the newest, which is 1.
func (r *roleBuild) orderOf(t *talk, fromEnd int) order {
	may := func(shown bool) order {
		if shown {
			return optional
		}
		return aside
	}
	behind := t.seq() > r.role.Cursor
	switch {
	case r.kind == RoleSummary && r.covered(t.seq()):
		return may(fromEnd <= r.role.Newest)
	case t.isNew:
		return fresh
	case r.kind == RoleDelta:
		return may(behind)
	case r.kind == RoleWindow:
		return may(behind || fromEnd <= r.role.Newest)
	case r.kind == RoleMemory:
		return may(t.seq() > r.noted())
	case r.kind == RoleSummary:
		return may(t.seq() > r.summary.Summary.Through)
	}
	return optional
}

// covered reports whether the summary that is shown stands for an entry.
func (r *roleBuild) covered(seq int64) bool {
	return r.kind == RoleSummary && r.summary.Summary.From <= seq && seq <= r.summary.Summary.Through
}

// needsNewest reports whether the newest user message is shown although the role has seen it: unless it is shown what
// is new only, and remembers the rest.
func (r *roleBuild) needsNewest() bool {
	return !r.role.Remembers || r.kind != RoleDelta && r.kind != RoleMemory
}
