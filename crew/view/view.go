package view

import (
	"fmt"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// View is the view of a role. It uses the definition's limits except Limits.Messages (Role.Newest bounds the
// messages), its shapes of tool outputs, and its low-water mark.
type View struct {
	window.View
	Role Role `json:"role"`
}

// Role configures what a role of a crew is shown. Some fields change from turn to turn; each request's envelope
// stores all of them.
type Role struct {
	Name string `json:"name"` // of the role; in the log, Author.RoleName and NodeID
	// Crew is the id of its crew: a role of the same name in another crew of the conversation is a different role.
	// Default "": any.
	Crew string `json:"crew,omitempty"`
	Kind Kind   `json:"kind"`
	// Messages says that the role is shown a list of messages, with its own answers as the assistant's, instead of one
	// text.
	Messages bool `json:"messages,omitempty"`
	// Newest is the maximum number of messages in a window (0: those that are new), and the minimum number that are
	// shown whole after a summary.
	Newest int `json:"newest,omitempty"`
	// Since and Cursor are the crew's and the role's: see crew.Snapshot. Notes is the seq of its newest notes.
	Since  int64 `json:"since,omitempty"`
	Cursor int64 `json:"cursor,omitempty"`
	Notes  int64 `json:"notes,omitempty"`
	// Remembers says that the role's agent remembers what it was shown and its own answers: these are not shown again.
	// Whole says that it has lost this memory, or never had it: it is shown the whole history, once.
	Remembers bool `json:"remembers,omitempty"`
	Whole     bool `json:"whole,omitempty"`
	// Reminder is the role's system prompt if this turn repeats it, at the end of the text; "" if not.
	Reminder string `json:"reminder,omitempty"`
}

// Kind is how much of the conversation a role is shown.
type Kind string

// The kinds of views.
const (
	Delta   Kind = "delta"   // what is new since its cursor
	Full    Kind = "full"    // everything
	Window  Kind = "window"  // the newest messages
	Summary Kind = "summary" // a summary of the old, and the newest messages whole
	Memory  Kind = "memory"  // its own notes, and the messages since
)

// Build decides what the view shows of a log, as [window.View.Build] does. The plan's Role is the effect on the
// role's cursor.
func (v View) Build(source window.Source, in window.Input) (*window.Plan, error) {
	if err := v.Check(); err != nil {
		return nil, err
	}
	source, in, err := window.Begin(source, in)
	if err != nil {
		return nil, fmt.Errorf("build view %s: %w", v.Name, err)
	}
	p := newPlanner(v, in)
	b, err := read(source, p.sizer)
	if err != nil {
		return nil, fmt.Errorf("build view %s: %w", v.Name, err)
	}
	p.backlog = b
	a, err := p.arrange()
	if err != nil {
		return nil, err
	}
	return p.report(a), nil
}

// CheckFits returns the error of Build for a new user message that is too large even if everything else is left out.
func (v View) CheckFits(in window.Input, content continuo.Content) error {
	if err := v.Check(); err != nil {
		return err
	}
	s := newSizer(v, in.WithDefaults())
	u := window.MessageUnit(content)
	m := newMessage(u, &s.role)
	if m == nil {
		return nil
	}
	limits := s.request.Limits()
	if limits.Exceeded(s.measure(m, true).Add(leastShown(limits))) != "" {
		return s.request.Overflow(limits, continuo.OverflowError{NewestUser: s.request.Shape(u, window.Whole).Size})
	}
	return nil
}

// Hash identifies the view's definition, without its name and the fields that change from turn to turn: two requests
// with the same hash share an epoch.
func (v View) Hash() string {
	v.Name = ""
	v.Role.Cursor, v.Role.Notes, v.Role.Whole, v.Role.Reminder = 0, 0, false, ""
	return window.HashOf(v)
}

// Check refuses a view that cannot show anything.
func (v View) Check() error {
	if err := v.View.Check(); err != nil {
		return err
	}
	switch r := v.Role; {
	case r.Name == "":
		return fmt.Errorf("view %s: %w: the role has no name", v.Name, continuo.ErrInvalid)
	case r.Newest < 0 || r.Since < 0 || r.Cursor < 0 || r.Notes < 0:
		return fmt.Errorf("view %s: %w: the role's newest, since, cursor and notes must not be negative", v.Name, continuo.ErrInvalid)
	}
	switch v.Role.Kind {
	case Delta, Full, Window, Summary, Memory:
		return nil
	}
	return fmt.Errorf("view %s: %w: the kind %q is not known; use delta, full, window, summary or memory", v.Name, continuo.ErrInvalid, v.Role.Kind)
}

// hasEpochs reports whether requests of the view extend each other. They do not where the agent remembers what it was
// shown, or where only new messages are shown.
func (r *Role) hasEpochs() bool { return !r.Remembers && r.Kind != Delta }

// onlyNew reports whether the role is shown only messages that are new to it. Summary covers older messages; nil for
// none.
func (r *Role) onlyNew(summary *continuo.Entry) bool {
	return !r.Whole && (r.Kind == Delta || r.Kind == Memory && r.Remembers && summary == nil)
}

// isOwn reports whether an entry is a message of the role itself.
func (r *Role) isOwn(e *continuo.Entry) bool {
	return e.Role != continuo.User && e.Author != nil && e.Author.RoleName == r.Name && r.isOf(e)
}

// isOf reports whether an entry is of the role's crew, or of none.
func (r *Role) isOf(e *continuo.Entry) bool {
	id, ok := continuo.CrewOf(e.WorkflowID)
	return !ok || r.Crew == "" || id == r.Crew
}

// ownsRecall reports whether an entry is a block of entries that were recalled for the role.
func (r *Role) ownsRecall(e *continuo.Entry) bool {
	return e.HoldsRecall() && r.Name != "" && e.Recall.Role == r.Name && r.isOf(e)
}

// windowGrowth is how many messages a window with a summary or notes grows by before it moves. It is large enough
// that most bytes of a request are equal to the previous request's.
const windowGrowth = 120

// rememberedGrowth is windowGrowth for an agent that remembers: it gains nothing from equal bytes.
const rememberedGrowth = 10

// growth is how many messages the window grows by before a newer summary or notes are requested.
func (r *Role) growth() int {
	if r.Remembers {
		return rememberedGrowth
	}
	return windowGrowth
}

// IsNotes reports whether an entry is notes of a role that may be shown.
func IsNotes(e *continuo.Entry, role string) bool {
	return e.PartType == continuo.PartNotes && window.HoldsSummary(e) && e.Summary.Role == role
}

// IsCatchUp reports whether an entry is a summary of messages that a role was not shown because too many were new at
// once.
func IsCatchUp(e *continuo.Entry, role string) bool {
	return e.PartType == continuo.PartCatchUp && role != "" && window.HoldsSummary(e) && e.Summary.Role == role
}

// mayShow reports whether the role may be shown a summary instead of the entries that it covers: its notes, a summary
// of the conversation, or a catch-up of its own, by the kind of its view.
func (r *Role) mayShow(e *continuo.Entry) bool {
	if e.Summary == nil || e.Summary.From <= r.Since {
		return false
	}
	switch r.Kind {
	case Memory:
		return IsNotes(e, r.Name) && e.Seq <= r.Notes
	case Summary:
		return window.IsSummary(e)
	}
	return IsCatchUp(e, r.Name)
}
