// Package window decides what a reader of a conversation gets to see: it turns entries, a view and a
// budget into a plan.
//
// The log is read backward from the newest entry, in units that are never split: one message, or an
// assistant message together with the results of its calls. A plan shows the stretch from
// [continuo.Window].Start to the newest entry, before it perhaps a few pinned entries (the opener, the
// newest user message of a long cycle), and a marker in each gap. While the stretch fits the view's
// limits, the window stays where the view's last request had it, so that requests only grow at the
// end; when it does not fit, the window moves and makes room down to the low-water mark: tool outputs
// become previews, previews one line, and then the oldest units go. A view whose strategy is [Summarize]
// shows a summary of them in the place of the marker: an entry of the log, chosen when the window moves.
//
// Where the window stood is read from the rounds that turns record on assistant entries: the plan asks
// for a move, the turn carries it out by recording it. So a plan is a function of the log, the view and
// the input alone.
//
// Views of other kinds are made by other packages of this package's parts: units ([Assembler], [Unit]), their shapes and
// the limits in force ([Request], [Limits]), and the verdicts of a plan ([NewItem], [Fold], [Totals]). Package crew/view
// has those of a crew's roles, package task that of a hand-off.
//
// Pitfalls: a Source must show a log that the rules of the root package accept; what breaks them all
// the same (a result without its call) is left out with a reason. Sizes count what is shown, not what
// is stored.
package window
