package window

import (
	"fmt"

	continuo "github.com/continuo-log/continuo"
)

// buildRole is Build for a role of a crew. It reads the log (roleReader), decides where the window stands (rolePlanner)
// and writes the result down. What is shown depends on nothing that the role's open turn has brought but its size, so
// that the role's cursor moves to the same place whichever request of a turn is the last.
func buildRole(source Source, view View, in Input) (*continuo.Plan, error) {
	p := newRolePlanner(view, in)
	read, err := readRole(source, p)
	if err != nil {
		return nil, fmt.Errorf("build view %s: %w", view.Name, err)
	}
	p.log = read
	if err := p.arrange(); err != nil {
		return nil, err
	}
	return p.plan(), nil
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

// epochs reports whether requests of the view extend each other: not where the agent remembers what it was shown, nor
// where it is shown nothing but what is new.
func (v *RoleView) epochs() bool { return !v.Remembers && v.Kind != RoleDelta }

// lasting is the part of a role's view that stays the same from turn to turn: two requests with an equal one share an
// epoch.
func (v *RoleView) lasting() *RoleView {
	lasting := *v
	lasting.Cursor, lasting.Notes, lasting.Whole, lasting.Reminder = 0, 0, false, ""
	return &lasting
}

// roleGrowth is how many messages a window with a summary or notes grows by before it moves. It is large enough that
// most of a request's bytes are those of the request before.
const roleGrowth = 120

// rememberedGrowth is roleGrowth for an agent that remembers: it gains nothing from equal bytes.
const rememberedGrowth = 10

// growth is how many messages the window grows by before it wants a newer summary or notes.
func (v *RoleView) growth() int {
	if v.Remembers {
		return rememberedGrowth
	}
	return roleGrowth
}

// IsCatchUp reports whether an entry is a summary of what a role of a crew was not shown because too much was new at once.
func IsCatchUp(e *continuo.Entry, role string) bool {
	return e.PartType == continuo.PartCatchUp && role != "" && e.Summary != nil && e.Summary.Role == role && canStandIn(e)
}

// rolePlanner decides what a role is shown of what was read. Its methods read nothing.
type rolePlanner struct {
	base   *build // the limits in force, and the shapes of the role's own turn
	role   *RoleView
	log    *roleLog
	most   int    // messages that a window shows; 0 for any number
	unit   budget // a single message that takes more is cut down to it
	blocks map[blockKey]rolePart
	sums   []continuo.Size // of the messages from each on

	placed  layout
	open    []piece // the role's own turn
	openCut string  // the limit for which it was cut down; "" for none
}

// unitShare is the part of the limits that one message may take; the newest message of the user is shown whole.
const unitShare = 2

func newRolePlanner(view View, in Input) *rolePlanner {
	hash := view.Hash()
	view.SkipSystem, view.Limits.Messages = true, 0
	p := &rolePlanner{
		base: &build{view: view, in: in, hash: hash, correction: 1, shaper: shaper{view: view, counter: in.Counter, provider: in.Provider}},
		role: view.Role, blocks: map[blockKey]rolePart{},
	}
	if view.Role.Kind == RoleWindow && !view.Role.Whole {
		p.most = view.Role.Newest
	}
	fixed := p.base.limitsBy(1)
	p.unit = budget{Limits{Chars: (fixed.Chars + unitShare - 1) / unitShare, Tokens: (fixed.Tokens + unitShare - 1) / unitShare}}
	return p
}
