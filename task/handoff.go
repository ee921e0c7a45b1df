package task

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// HandoffView is the name of the view that [Limits.View] returns.
const HandoffView = "handoff"

// View shows a conversation as the history of a task does: the newest messages as text, each group as one, truncated to
// the limits. It has no window. It shows no call in a form that could be answered.
type View struct {
	window.View
	Handoff MessageLimits `json:"handoff"`
}

// MessageLimits bound, in characters, what a View shows of one message.
type MessageLimits struct {
	UserMaxChars      int `json:"user_max_chars"`      // of a user's message
	AssistantMaxChars int `json:"assistant_max_chars"` // of every other message
}

// View is the view of a conversation that a task's history would be made from.
func (l Limits) View() View {
	l = l.orDefaults()
	return View{
		View:    window.View{Name: HandoffView, Limits: window.Limits{Messages: l.MaxMessages}, LowWater: 1, SkipSystem: true},
		Handoff: MessageLimits{UserMaxChars: l.UserMaxChars, AssistantMaxChars: l.AssistantMaxChars},
	}
}

// Hash identifies the view's definition, without its name.
func (v View) Hash() string {
	v.Name = ""
	return window.HashOf(v)
}

// CheckFits returns nil: the view truncates what is too long.
func (v View) CheckFits(window.Input, continuo.Content) error { return nil }

// Build decides what the view shows of a log: the newest messages that fit. The newest user message and a group at the
// end of the log are always shown.
func (v View) Build(source window.Source, in window.Input) (*window.Plan, error) {
	if err := v.Check(); err != nil {
		return nil, err
	}
	source, in, err := window.Begin(source, in)
	if err != nil {
		return nil, fmt.Errorf("build view %s: %w", v.Name, err)
	}
	r := &handoffReader{view: v, in: in, request: window.NewRequest(v.View, v.Hash(), in), source: source}
	if err := r.read(); err != nil {
		return nil, fmt.Errorf("build view %s: %w", v.Name, err)
	}
	shown, err := r.fit()
	if err != nil {
		return nil, err
	}
	return r.plan(shown), nil
}

// handoffReader reads the entries that a hand-off may show, the newest first.
type handoffReader struct {
	view    View
	in      window.Input
	request *window.Request
	source  window.Source

	rows     int64
	excluded []window.Exclusion
	messages []*handoffMessage // those with a text, newest first
	user     *handoffMessage   // the newest user message; nil for none
}

// handoffMessage is a unit in the form that a hand-off shows.
type handoffMessage struct {
	unit  *window.Unit
	shown window.Message
	cut   bool
}

// handoffShown is what fits.
type handoffShown struct {
	messages []*handoffMessage // in order
	window   continuo.Window
}

// read reads while the next message may fit, and finds the newest user message if it is further back.
func (r *handoffReader) read() error {
	assemble := window.NewAssembler(r.view.View)
	var size, needed continuo.Size
	full, read := false, r.in.At+1
	for entry, err := range r.source.Backward(r.in.At) {
		if err != nil {
			return err
		}
		r.rows++
		read = entry.Seq
		r.request.Learn(entry)
		m := r.message(assemble.Add(entry))
		if m == nil {
			continue
		}
		r.messages = append(r.messages, m)
		if r.user == nil && m.unit.IsUser() {
			r.user = m
		}
		if m == r.user || m == r.messages[0] && m.unit.Group {
			needed = needed.Add(m.shown.Size)
		}
		size = size.Add(m.shown.Size)
		if full = r.request.Around(needed).Exceeded(size) != ""; full {
			break
		}
	}
	r.excluded = append(r.excluded, assemble.Finish()...)
	if r.user != nil || !full {
		return nil
	}
	return r.findUser(read)
}

// findUser finds the user's newest non-empty message before a seq.
func (r *handoffReader) findUser(before int64) error {
	for r.user == nil && before > 1 {
		entry, err := r.source.LatestUser(before - 1)
		if errors.Is(err, continuo.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		r.rows++
		r.user = r.message(&window.Unit{Entries: []*continuo.Entry{entry}})
		before = entry.Seq
	}
	return nil
}

// message converts a unit to text; nil if it has none.
func (r *handoffReader) message(u *window.Unit) *handoffMessage {
	if u == nil {
		return nil
	}
	limits := Limits{UserMaxChars: r.view.Handoff.UserMaxChars, AssistantMaxChars: r.view.Handoff.AssistantMaxChars}
	history := limits.history(entriesOf(u))
	if len(history.Messages) == 0 {
		for _, e := range u.Entries {
			r.excluded = append(r.excluded, window.Exclusion{Entry: e, Reason: silence(e)})
		}
		return nil
	}
	shaped, e := history.Messages[0], u.Entries[0]
	shown := window.Message{Seq: e.Seq, Role: continuo.Assistant, Content: continuo.Text(shaped.Content), Entry: plainEntry(e)}
	if shaped.Role == User {
		shown.Role = continuo.User
	}
	shown.Size = r.request.Measure(&shown, !u.Group && e.Content.IsText() && shaped.Content == e.Content.String())
	return &handoffMessage{unit: u, shown: shown, cut: shaped.Truncated}
}

func entriesOf(u *window.Unit) []continuo.Entry {
	entries := make([]continuo.Entry, len(u.Entries))
	for i, e := range u.Entries {
		entries[i] = *e
	}
	return entries
}

// silence returns why an entry has no text to show.
func silence(e *continuo.Entry) string {
	switch {
	case e.Role == continuo.System:
		return window.ReasonSystem
	case e.IsPlaceholder():
		return window.ReasonPlaceholder
	}
	return window.ReasonEmpty
}

// plainEntry is an entry without the data that belongs to its original form only, such as a vendor's: no rendering may
// add that to the text of a hand-off.
func plainEntry(e *continuo.Entry) *continuo.Entry {
	plain := *e
	plain.Vendor, plain.Extra, plain.Reasoning = nil, nil, nil
	return &plain
}

// fit decides what is shown: the mandatory messages, and the newest others that fit.
func (r *handoffReader) fit() (shown handoffShown, err error) {
	var open *handoffMessage
	var parts continuo.OverflowError
	if len(r.messages) > 0 && r.messages[0].unit.Group {
		open = r.messages[0]
		parts.OpenGroup = open.shown.Size
	}
	if r.user != nil {
		parts.NewestUser = r.user.shown.Size
	}
	size := parts.NewestUser.Add(parts.OpenGroup)
	if r.request.OverWindow(size) {
		return shown, r.request.Overflow(r.request.Limits(), parts)
	}
	limits := r.request.Around(size)
	shown.window = continuo.Window{Epoch: 1, Start: 1}
	for _, m := range r.messages {
		if m != r.user && m != open {
			size = size.Add(m.shown.Size)
			if shown.window.Limit = limits.Exceeded(size); shown.window.Limit != "" {
				break
			}
		}
		shown.messages = append(shown.messages, m)
	}
	if shown.window.Limit != "" {
		shown.window.Start = r.in.At + 1
		if n := len(shown.messages); n > 0 {
			shown.window.Start = shown.messages[n-1].unit.First()
		}
	}
	if r.user != nil && !slices.Contains(shown.messages, r.user) {
		shown.messages = append(shown.messages, r.user)
		shown.window.Pins = []int64{r.user.unit.First()}
	}
	slices.Reverse(shown.messages)
	return shown, nil
}

// plan records the decision. It has no open cycle: the agent that takes the work over begins one.
func (r *handoffReader) plan(shown handoffShown) *window.Plan {
	p := &window.Plan{View: r.view.Name, ViewHash: r.view.Hash(), At: r.in.At, Window: shown.window}
	for _, m := range shown.messages {
		p.Messages = append(p.Messages, m.shown)
	}
	p.Items = window.Fold(r.items(shown), r.in.At, window.DropReason(shown.window.Limit))
	p.Totals = window.Totals(p)
	p.Limits = continuo.Size(r.request.Limits())
	p.Totals.RowsRead, p.Totals.PromptSize = r.rows, r.in.Prompt
	r.request.SetEstimate(p)
	return p
}

// items returns the verdicts on all entries that were read, by seq.
func (r *handoffReader) items(shown handoffShown) []window.PlanItem {
	var items []window.PlanItem
	put := func(e *continuo.Entry, verdict window.Verdict, reason string, after *continuo.Size) {
		items = append(items, window.NewItem(e, verdict, reason, after))
	}
	for _, e := range r.excluded {
		put(e.Entry, window.Excluded, e.Reason, nil)
	}
	for _, m := range shown.messages {
		verdict, reason := r.verdict(m)
		put(m.unit.Entries[0], verdict, reason, &m.shown.Size)
		for _, result := range m.unit.Entries[1:] { // the line of their calls includes them
			put(result, window.Truncated, window.ReasonOneLine, &continuo.Size{})
		}
	}
	for _, m := range r.messages {
		if slices.Contains(shown.messages, m) {
			continue
		}
		for _, e := range m.unit.Entries {
			put(e, window.Dropped, window.DropReason(shown.window.Limit), nil)
		}
	}
	slices.SortFunc(items, func(x, y window.PlanItem) int { return cmp.Compare(x.Seq, y.Seq) })
	return items
}

// verdict returns how a message is shown, of a group its first entry, and why.
func (r *handoffReader) verdict(m *handoffMessage) (window.Verdict, string) {
	switch {
	case m.cut:
		return window.Truncated, window.ReasonMessageChars
	case m.unit.Group:
		return window.Truncated, window.ReasonOneLine
	case slices.ContainsFunc(m.unit.Entries[0].Content.Parts(), func(part continuo.Part) bool { return !part.IsText() }):
		return window.Truncated, window.ReasonTextOnly
	case m == r.user:
		return window.Kept, window.ReasonLatestUser
	}
	return window.Kept, window.ReasonInWindow
}
