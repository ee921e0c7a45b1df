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
	// what the provider reported asks for it.
	Limits Size       `json:"limits"`
	Items  []PlanItem `json:"items"`
	// Role says what a crew's role gets to see, of the view of a role; nil for every other view.
	Role *RolePlan `json:"role,omitempty"`
	// Missing are the attachments that were to be shown and could not be read; a text stands in their places.
	Missing []MissingPart `json:"missing,omitempty"`
	// Messages are what is shown, in order, already shaped.
	Messages []Message `json:"-"`
}

// RolePlan is what a plan means for the role that it is shown to.
type RolePlan struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // delta, full, window, summary or memory
	// Cursor is where the role's cursor stood, Through where it moves when the role answers: everything up to there
	// was shown, but for what is never shown to it.
	Cursor  int64 `json:"cursor"`
	Through int64 `json:"through"`
	// News counts the entries behind Cursor that are shown to the role for the first time, Waiting those that do
	// not fit and are shown in its next turns; of a long backlog, which is not read whole, every entry counts.
	News    int `json:"news"`
	Waiting int `json:"waiting"`
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
	RowsRead   int64 `json:"rows_read"`
	PromptSize Size  `json:"prompt"`
	// SharedBytes is how many leading bytes the rendering has in common with the previous request of this
	// view, -1 when that was not asked for or there is none.
	SharedBytes int64 `json:"shared_bytes"`
}

// PlanItem is the verdict on one entry, or on a run of entries that share it.
type PlanItem struct {
	Seq     int64   `json:"seq"`
	Through int64   `json:"through,omitempty"` // last seq of a run; 0 for a single entry
	Role    Role    `json:"role,omitempty"`
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason"`
	Before  *Size   `json:"before,omitempty"`
	After   *Size   `json:"after,omitempty"`
}

// MissingPart names an attachment that a request had to go without.
type MissingPart struct {
	Seq     int64       `json:"seq"`
	Part    int         `json:"part"`   // its place in the content, from 0
	Object  string      `json:"object"` // its id
	Problem PartProblem `json:"problem"`
	Err     error       `json:"-"` // for the program's own log; nil where the request is made again
}

// PartProblem says why an attachment is missing from a request.
type PartProblem string

// The problems: the object is not there or not whole, or it is another one or could not be read.
const (
	PartGone       PartProblem = "gone"
	PartUnreadable PartProblem = "unreadable"
)

// Verdict says what became of an entry in a request.
type Verdict string

// The verdicts.
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
}
