package window

import continuo "github.com/continuo-log/continuo"

// Plan is the result of a build: the messages to show, a verdict for every entry, and the totals.
type Plan struct {
	View     string `json:"view"`
	ViewHash string `json:"view_hash"`
	// At is the newest seq that the build considered.
	At     int64           `json:"at"`
	Window continuo.Window `json:"epoch"`
	// Moved says that this request gives the window its position. It is false while the position is that of the view's
	// last request, and for a first request that shows the whole log.
	Moved bool `json:"moved"`
	// Cycle is the seq of the user message that began a cycle which is still open; 0 when none is open, because the
	// newest entry is a user message or a final answer.
	Cycle  int64      `json:"cycle,omitempty"`
	Totals PlanTotals `json:"totals"`
	// Limits are the effective limits, 0 for none: the view's, with fewer tokens where the model's context window or
	// the provider's reported usage requires it. Where the newest user message and the open group alone exceed a limit,
	// it bounds the messages shown around them.
	Limits continuo.Size `json:"limits"`
	// Correction is what the model's reports on earlier requests say about the estimated tokens; nil where there was none.
	// The limits on tokens are in estimated tokens: the provider is expected to count as many as the view allows.
	Correction *continuo.Correction `json:"correction,omitempty"`
	Items      []PlanItem           `json:"items"`
	// Ranker identifies the ranking of the view recall, and the reranker's model, or that it failed; "" in other views.
	Ranker string `json:"ranker,omitempty"`
	// Role describes what the view of a crew's role shows to it; nil for every other view.
	Role *RolePlan `json:"role,omitempty"`
	// Profile is what the request shows of what is known of the user, among the system messages; nil where the view or the
	// window has none.
	Profile *PlanProfile `json:"profile,omitempty"`
	// Prices are those by which the window was moved; zero where it was not, or has a fixed mark.
	Prices continuo.CachePrices `json:"-"`
	// Missing are the parts of shown messages that the request leaves out: attachments that could not be read, and
	// parts that its format cannot represent. A text replaces each.
	Missing []continuo.MissingPart `json:"missing,omitempty"`
	// Withheld are the blocks of shown messages that are returned only to the provider that made them, and that this
	// request leaves out because it goes to another provider.
	Withheld []WithheldBlocks `json:"withheld,omitempty"`
	// Messages are the messages to show, in order, in their final shape.
	Messages []Message `json:"-"`
}

// Partial reports whether the plan leaves out or shortens an entry that its reader could look up.
func (p *Plan) Partial() bool {
	t := &p.Totals
	return t.Previewed+t.Truncated+t.Summarized+t.Recalled+t.Dropped > 0
}

// RolePlan describes a plan for one role of a crew.
type RolePlan struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // delta, full, window, summary or memory
	// Cursor is the role's cursor before the request, Through its cursor after the role's answer: everything up to
	// Through is shown, directly or by a summary, except entries that are never shown to the role.
	Cursor  int64 `json:"cursor"`
	Through int64 `json:"through"`
	// News counts the unread messages (after Cursor) that are shown to the role, directly or by a summary. Waiting
	// counts those that do not fit and that no summary covers yet: a summary is made before the role's next turn. In a
	// long backlog not all are counted.
	News    int `json:"news"`
	Waiting int `json:"waiting"`
	// Summarized counts those of News that are shown by a summary only.
	Summarized int `json:"summarized,omitempty"`
	// Remembers says that the role's agent remembers what it was shown.
	Remembers bool `json:"-"`
	// Before is how many of the plan's messages precede those of the role's own open turn.
	Before int `json:"-"`
	// Entries are those that the messages before the role's own open turn show, in any form, in order.
	Entries []*continuo.Entry `json:"-"`
	// Lacks says which entries must be summarized before the role is asked; nil for none.
	Lacks *RoleLack `json:"-"`
}

// RoleLack describes a missing summary, notes or catch-up.
type RoleLack struct {
	From, Through int64
	Messages      int   // for a catch-up; 0 for more than the counting limit
	Known         int64 // the seq of the summary or notes that are shown at present; 0 for none
}

// PlanTotals are the totals of a plan.
type PlanTotals struct {
	Entries    int64 `json:"entries"` // in the log up to At
	Kept       int64 `json:"kept"`    // shown, in any shape
	Previewed  int64 `json:"previewed"`
	Truncated  int64 `json:"truncated"`
	Summarized int64 `json:"summarized,omitempty"` // not shown, but covered by a summary that is shown
	Recalled   int64 `json:"recalled,omitempty"`   // shown again by a block of recalled entries, and such blocks
	Dropped    int64 `json:"dropped"`
	Excluded   int64 `json:"excluded"`
	Messages   int   `json:"messages"`         // rendered, markers included
	Chars      int   `json:"chars"`            // Unicode characters in the messages
	Tokens     int   `json:"estimated_tokens"` // in the messages, with a protocol overhead for each
	// CorrectedTokens is how many tokens the provider will probably count for the messages and the prompt together, by its
	// reports on earlier requests; 0 where there was none.
	CorrectedTokens int           `json:"corrected_tokens,omitempty"`
	RowsRead        int64         `json:"rows_read"` // entries that the build read, from the store or from memory; the last page that was fetched may have more
	PromptSize      continuo.Size `json:"prompt"`
	// SharedBytes is how many leading bytes this rendering (for a recorded request, its body) shares with the previous
	// request of this view; -1 when that was not computed or there is none.
	SharedBytes int64 `json:"shared_bytes"`
}

// PlanItem is the verdict on one entry, or on a range of entries that share it.
type PlanItem struct {
	Seq     int64         `json:"seq"`
	Through int64         `json:"through,omitempty"` // last seq of a range; 0 for a single entry
	Role    continuo.Role `json:"role,omitempty"`
	Verdict Verdict       `json:"verdict"`
	// Reason explains the verdict. docs/api.md, "What the model is shown", lists all reasons; in Go, they are the
	// constants of window/reason.go.
	Reason string `json:"reason"`
	// Before and After are the sizes in the log and in the request, summed over a range. Before is missing where the
	// entries were not read.
	Before *continuo.Size `json:"before,omitempty"`
	After  *continuo.Size `json:"after,omitempty"`
	// Recall says why the entry was recalled; nil where it was not.
	Recall *RecallMatch `json:"recall,omitempty"`
}

// RecallMatch says why an entry was recalled.
type RecallMatch struct {
	// By is the seq of the entry with the block that shows it; 0 in the view recall.
	By int64 `json:"by,omitempty"`
	// ConversationID names the entry's conversation where it is not the one of the plan.
	ConversationID string `json:"conversation_id,omitempty"`
	// Score is the estimated probability that the entry is needed, in millionths.
	Score int `json:"score"`
	// Words are the words of the query that the entry has, in some form.
	Words []string `json:"words,omitempty"`
	// Passage says that only a part of the entry is shown.
	Passage bool `json:"passage,omitempty"`
}

// WithheldBlocks names the blocks of one message that belong to another provider than the request's.
type WithheldBlocks struct {
	Seq      int64    `json:"seq"`
	Provider string   `json:"provider"`
	Types    []string `json:"types"` // such as thinking or server_tool_use
}

// Verdict is the treatment of an entry in a request.
type Verdict string

// The verdicts. Recalled is that of entries outside of the window that are shown again, and of the blocks that show them.
const (
	Kept       Verdict = "kept"
	Previewed  Verdict = "previewed"
	Truncated  Verdict = "truncated"
	Summarized Verdict = "summarized"
	Recalled   Verdict = "recalled"
	Dropped    Verdict = "dropped"
	Excluded   Verdict = "excluded"
	Client     Verdict = "client"
)

// Message is one message of a plan: an entry in the shape in which it is shown or, with Seq 0, a summary or a marker
// that replaces a gap.
type Message struct {
	Seq        int64
	Role       continuo.Role
	Content    continuo.Content
	ToolCalls  []continuo.ToolCall
	ToolCallID string
	Name       string
	// Entry is the entry that the message was made from, also for a summary; nil for markers and for results that the
	// plan generated for a call without one. It must not be changed.
	Entry *continuo.Entry
	Size  continuo.Size
	// Passing says that the view's next request will have another message in this position.
	Passing bool
}
