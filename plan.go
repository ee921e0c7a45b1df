package continuo

// Plan is what a build decided: what the reader sees, a verdict for every entry, and the totals.
type Plan struct {
	View     string `json:"view"`
	ViewHash string `json:"view_hash"`
	// At is the newest seq that the build considered.
	At     int64  `json:"at"`
	Window Window `json:"epoch"`
	Moved  bool   `json:"moved"` // the window stands elsewhere than at the last request of this view
	// Cycle is the seq of the user message that began a cycle which is still open, 0 when there is none:
	// when the newest entry is a user message or a final answer.
	Cycle  int64      `json:"cycle,omitempty"`
	Totals PlanTotals `json:"totals"`
	// Limits are those in force, 0 for none: the view's, its tokens tightened where the model's window or
	// what the provider reported asks for it. Where the newest user message and the open group alone are over one, it
	// bounds what is shown around them.
	Limits Size       `json:"limits"`
	Items  []PlanItem `json:"items"`
	// Role says what a crew's role gets to see, of the view of a role; nil for every other view.
	Role *RolePlan `json:"role,omitempty"`
	// Missing are the parts of shown messages that the request goes without: attachments that could not be read, and what
	// its format has no place for. A text stands in the place of each.
	Missing []MissingPart `json:"missing,omitempty"`
	// Withheld are blocks of shown messages that go back to the provider that made them only, and the request goes to
	// another one.
	Withheld []WithheldBlocks `json:"withheld,omitempty"`
	// Messages are what is shown, in order, already shaped.
	Messages []Message `json:"-"`
}

// Partial reports whether the plan leaves out or shortens something that its reader could look up.
func (p *Plan) Partial() bool {
	t := &p.Totals
	return t.Previewed+t.Truncated+t.Summarized+t.Dropped > 0
}

// RolePlan is what a plan means for the role that it is shown to.
type RolePlan struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // delta, full, window, summary or memory
	// Cursor is where the role's cursor stood, Through where it moves when the role answers: everything up to there
	// was shown, if only by a summary, but for what is never shown to it.
	Cursor  int64 `json:"cursor"`
	Through int64 `json:"through"`
	// News counts the messages behind Cursor that are shown to the role for the first time, or by a summary; Waiting those
	// that do not fit and for which no summary stands yet: one is made before its next turn. Of a long backlog not all are
	// counted.
	News    int `json:"news"`
	Waiting int `json:"waiting"`
	// Summarized counts those of News that are shown by a summary alone.
	Summarized int `json:"summarized,omitempty"`
	// Before is how many of the plan's messages stand before those of the role's own open turn.
	Before int `json:"-"`
	// Lacks says which entries a summary should stand for before the role is asked; nil for none.
	Lacks *RoleLack `json:"-"`
}

// RoleLack is what a summary, notes or a catch-up should stand for.
type RoleLack struct {
	From, Through int64
	Messages      int   // of a catch-up; 0 for more than were counted
	Known         int64 // the seq of the summary or notes that are shown now; 0 for none
}

// PlanTotals sums a plan up.
type PlanTotals struct {
	Entries    int64 `json:"entries"` // in the log up to At
	Kept       int64 `json:"kept"`    // shown, in whatever shape
	Previewed  int64 `json:"previewed"`
	Truncated  int64 `json:"truncated"`
	Summarized int64 `json:"summarized,omitempty"` // not shown, and a summary that is shown stands for them
	Dropped    int64 `json:"dropped"`
	Excluded   int64 `json:"excluded"`
	Messages   int   `json:"messages"`         // rendered, markers included
	Chars      int   `json:"chars"`            // Unicode characters of the messages
	Tokens     int   `json:"estimated_tokens"` // of the messages, with a protocol overhead for each
	RowsRead   int64 `json:"rows_read"`        // entries that the build looked at; stores fetch them in pages
	PromptSize Size  `json:"prompt"`
	// SharedBytes is how many leading bytes the rendering, or of a request of the past the body, has in common with the
	// previous request of this view, -1 when that was not asked for or there is none.
	SharedBytes int64 `json:"shared_bytes"`
}

// PlanItem is the verdict on one entry, or on a run of entries that share it.
type PlanItem struct {
	Seq     int64   `json:"seq"`
	Through int64   `json:"through,omitempty"` // last seq of a run; 0 for a single entry
	Role    Role    `json:"role,omitempty"`
	Verdict Verdict `json:"verdict"`
	// Reason says why. Shown are latest_user, open_group (calls without all results), in_window, opener and pinned; cut
	// over_output_limit and tool_results_off; left out over_messages, over_chars and over_tokens, by the limit that the
	// window moved for, before_window, where none did, and entries that are for people only (ui_only), empty, or otherwise
	// nothing that a model could be shown. Views of crews have more.
	Reason string `json:"reason"`
	// Before and After are sizes in the log and in the request, of a run their sums. Before is missing where the entries
	// were not read.
	Before *Size `json:"before,omitempty"`
	After  *Size `json:"after,omitempty"`
}

// MissingPart names a part that a request had to go without.
type MissingPart struct {
	Seq     int64       `json:"seq"`
	Part    int         `json:"part"`             // its place in the content, from 0
	Object  string      `json:"object,omitempty"` // the id of an attachment that could not be read
	Type    string      `json:"type,omitempty"`   // of a part that the format has no place for
	Problem PartProblem `json:"problem"`
	Err     error       `json:"-"` // for the program's own log; nil where the request is made again
}

// WithheldBlocks names the blocks of one message that belong to a provider which the request does not go to.
type WithheldBlocks struct {
	Seq      int64    `json:"seq"`
	Provider string   `json:"provider"`
	Types    []string `json:"types"` // such as thinking or server_tool_use
}

// PartProblem says why a part is missing from a request.
type PartProblem string

// The problems: the object is not there or not whole; it is another one or could not be read; the request's format has no
// place for such a part.
const (
	PartGone        PartProblem = "gone"
	PartUnreadable  PartProblem = "unreadable"
	PartUnsupported PartProblem = "unsupported"
)

// Verdict says what became of an entry in a request.
type Verdict string

// The verdicts. No view gives Recalled yet: it is for entries that stand outside of the window and are shown again.
const (
	Kept       Verdict = "kept"
	Previewed  Verdict = "previewed"
	Truncated  Verdict = "truncated"
	Summarized Verdict = "summarized"
	Recalled   Verdict = "recalled"
	Dropped    Verdict = "dropped"
	Excluded   Verdict = "excluded"
)

// Size measures what is shown of something.
type Size struct {
	Messages int `json:"messages"`
	Chars    int `json:"chars"`
	Tokens   int `json:"tokens"`
}

// Add returns the sum of two sizes.
func (s Size) Add(other Size) Size {
	return Size{s.Messages + other.Messages, s.Chars + other.Chars, s.Tokens + other.Tokens}
}

// Less returns the difference of two sizes.
func (s Size) Less(other Size) Size {
	return Size{s.Messages - other.Messages, s.Chars - other.Chars, s.Tokens - other.Tokens}
}

// Message is one message of a plan: an entry in the shape in which it is shown, or, with Seq 0, a
// summary or a marker that stands for a gap.
type Message struct {
	Seq        int64
	Role       Role
	Content    Content
	ToolCalls  []ToolCall
	ToolCallID string
	Name       string
	// Entry is what the message was made from, of a summary too; nil for markers and for results that the plan made up for
	// a call that has none. It must not be changed.
	Entry *Entry
	Size  Size
	// Passing says that the view's next request has something else in the message's place.
	Passing bool
}
