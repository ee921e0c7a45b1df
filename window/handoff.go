package window

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	continuo "github.com/continuo-log/continuo"
)

// HandoffView makes a view what a hand-off tells of the log: messages in words, each group as one, cut to the limits.
// Nothing of a call is left that could be answered, so that no turn can build its requests by it.
type HandoffView struct {
	UserMaxChars      int `json:"user_max_chars"`      // characters of a user's message
	AssistantMaxChars int `json:"assistant_max_chars"` // characters of every other message
	// Tell tells of an entry, with the results of its calls, within these limits. It reports false where they say
	// nothing, and must be a pure function.
	Tell func(entries []continuo.Entry) (told Told, ok bool) `json:"-"`
}

// Told is what a hand-off tells of a message or a group.
type Told struct {
	Role    continuo.Role
	Content string
	Cut     bool // Content is longer than the limit and was cut
}

// ReasonMessageChars is the reason of what a hand-off's limits on characters have cut.
const ReasonMessageChars = "over_message_chars"

// The other reasons that only hand-offs have for not showing an entry as it stands.
const (
	reasonOneLine  = "in_one_line"
	reasonTextOnly = "text_only"
)

// check refuses a hand-off without words. Nil is a view of another kind.
func (v *HandoffView) check(view string) error {
	if v != nil && v.Tell == nil {
		return fmt.Errorf("view %s: %w: nothing says how a hand-off tells of entries; only its own settings make this view", view, continuo.ErrInvalid)
	}
	return nil
}

// buildHandoff is Build for a hand-off. It has no window: what fits is shown, the newest first. The newest user message
// and a group that stands last are always shown.
func buildHandoff(source Source, view View, in Input) (*continuo.Plan, error) {
	h := &handoffBuild{build: newBuild(source, view, in)}
	if err := h.read(); err != nil {
		return nil, fmt.Errorf("build view %s: %w", view.Name, err)
	}
	if err := h.fit(); err != nil {
		return nil, err
	}
	return h.plan(), nil
}

// handoffBuild is the state of one buildHandoff.
type handoffBuild struct {
	*build
	told  []*toldUnit // what was read and says something, newest first
	user  *toldUnit   // the newest user message; nil for none
	shown []*toldUnit // in order
}

// toldUnit is a unit as a hand-off shows it.
type toldUnit struct {
	*Unit
	message continuo.Message
	cut     bool
}

// read reads for as long as what it finds may fit, and finds the newest user message if it stands further up.
func (h *handoffBuild) read() error {
	assemble := NewAssembler(h.view)
	var size, needed continuo.Size
	full, read := false, h.in.At+1
	for entry, err := range h.source.Backward(h.in.At) {
		if err != nil {
			return err
		}
		h.rowsRead++
		read = entry.Seq
		h.Learn(&entry)
		t := h.tell(assemble.Add(&entry))
		if t == nil {
			continue
		}
		h.told = append(h.told, t)
		if h.user == nil && t.IsUser() {
			h.user = t
		}
		if t == h.user || t == h.told[0] && t.Group {
			needed = needed.Add(t.message.Size)
		}
		size = size.Add(t.message.Size)
		if full = h.around(needed).Exceeded(size) != ""; full {
			break
		}
	}
	h.excluded = append(h.excluded, assemble.Finish()...)
	if h.user != nil || !full {
		return nil
	}
	return h.findUser(read)
}

// findUser finds the newest message of the user that says anything, before a seq.
func (h *handoffBuild) findUser(before int64) error {
	for h.user == nil && before > 1 {
		entry, err := h.source.LatestUser(before - 1)
		if errors.Is(err, continuo.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		h.rowsRead++
		h.user = h.tell(&Unit{Entries: []*continuo.Entry{&entry}})
		before = entry.Seq
	}
	return nil
}

// tell puts a unit into words; nil where it says nothing.
func (h *handoffBuild) tell(u *Unit) *toldUnit {
	if u == nil {
		return nil
	}
	entries := make([]continuo.Entry, len(u.Entries))
	for i, e := range u.Entries {
		entries[i] = *e
	}
	told, ok := h.view.Handoff.Tell(entries)
	if !ok {
		for _, e := range u.Entries {
			h.excluded = append(h.excluded, Exclusion{e, silence(e)})
		}
		return nil
	}
	e := u.Entries[0]
	message := continuo.Message{Seq: e.Seq, Role: told.Role, Content: continuo.Text(told.Content), Entry: plainEntry(e)}
	message.Size = h.shaper.size(&message, !u.Group && e.Content.IsText() && told.Content == e.Content.String())
	return &toldUnit{u, message, told.Cut}
}

// silence says why nothing is told of an entry.
func silence(e *continuo.Entry) string {
	switch {
	case e.Role == continuo.System:
		return ReasonSystem
	case e.IsPlaceholder():
		return ReasonPlaceholder
	}
	return ReasonEmpty
}

// plainEntry is an entry without what belongs to its own form only, such as a vendor's data: no rendering may put that
// to the words of a hand-off.
func plainEntry(e *continuo.Entry) *continuo.Entry {
	plain := *e
	plain.Vendor, plain.Extra, plain.Reasoning = nil, nil, nil
	return &plain
}

// fit decides what is shown: what must be, and of the rest the newest that fits.
func (h *handoffBuild) fit() error {
	var open *toldUnit
	if len(h.told) > 0 && h.told[0].Group {
		open = h.told[0]
	}
	var user, group continuo.Size
	if h.user != nil {
		user = h.user.message.Size
	}
	if open != nil {
		group = open.message.Size
	}
	size := user.Add(group)
	if h.overWindow(size) {
		return h.overflowOf(h.Limits(), continuo.OverflowError{NewestUser: user, OpenGroup: group})
	}
	limits := h.around(size)
	for _, t := range h.told {
		if t != h.user && t != open {
			size = size.Add(t.message.Size)
			if h.window.Limit = limits.Exceeded(size); h.window.Limit != "" {
				break
			}
		}
		h.shown = append(h.shown, t)
	}
	h.window.Epoch, h.window.Start = 1, 1
	if h.window.Limit != "" {
		h.window.Start = h.in.At + 1
		if n := len(h.shown); n > 0 {
			h.window.Start = h.shown[n-1].First()
		}
	}
	if h.user != nil && !slices.Contains(h.shown, h.user) {
		h.shown = append(h.shown, h.user)
		h.window.Pins = []int64{h.user.First()}
	}
	slices.Reverse(h.shown)
	return nil
}

// plan writes down what was decided. It has no cycle to go on with: whoever takes the work over begins one.
func (h *handoffBuild) plan() *continuo.Plan {
	p := &continuo.Plan{View: h.view.Name, ViewHash: h.hash, At: h.in.At, Window: h.window}
	for _, t := range h.shown {
		p.Messages = append(p.Messages, t.message)
	}
	p.Items = fold(h.items(), h.in.At, DropReason(h.window.Limit))
	p.Totals = Totals(p)
	p.Limits = continuo.Size(h.Limits())
	p.Totals.RowsRead, p.Totals.PromptSize = h.rowsRead, h.in.Prompt
	return p
}

// items returns the verdicts on all entries that were read, by seq.
func (h *handoffBuild) items() []continuo.PlanItem {
	var items []continuo.PlanItem
	put := func(e *continuo.Entry, verdict continuo.Verdict, reason string, after *continuo.Size) {
		items = append(items, NewItem(e, verdict, reason, after))
	}
	for _, e := range h.excluded {
		put(e.Entry, continuo.Excluded, e.Reason, nil)
	}
	for _, t := range h.shown {
		verdict, reason := h.verdict(t)
		put(t.Entries[0], verdict, reason, &t.message.Size)
		for _, result := range t.Entries[1:] { // they stand in the line of their calls
			put(result, continuo.Truncated, reasonOneLine, &continuo.Size{})
		}
	}
	for _, t := range h.told {
		if slices.Contains(h.shown, t) {
			continue
		}
		for _, e := range t.Entries {
			put(e, continuo.Dropped, DropReason(h.window.Limit), nil)
		}
	}
	slices.SortFunc(items, func(x, y continuo.PlanItem) int { return cmp.Compare(x.Seq, y.Seq) })
	return items
}

// verdict says how a message is shown, of a group its first entry, and why.
func (h *handoffBuild) verdict(t *toldUnit) (continuo.Verdict, string) {
	switch {
	case t.cut:
		return continuo.Truncated, ReasonMessageChars
	case t.Group:
		return continuo.Truncated, reasonOneLine
	case hasMedia(t.Entries[0].Content):
		return continuo.Truncated, reasonTextOnly
	case t == h.user:
		return continuo.Kept, ReasonLatestUser
	}
	return continuo.Kept, "in_window"
}
