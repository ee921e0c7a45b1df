// Package window decides which part of a conversation a reader is shown: it turns entries, a view and a
// budget into a plan.
//
// The log is read backward from the newest entry, in units that are never split: one message, or an assistant
// message together with the results of its calls. A plan shows the range from [continuo.Window].Start to the
// newest entry, before it up to two pinned entries (the opener, the newest user message of a long cycle), and
// a marker in each gap. While the range fits the view's limits, the window keeps the start of the view's last
// request, so that requests only grow at the end. When the range no longer fits, the window moves and is
// reduced to the low-water mark: as many of the newest units are kept as fit with every tool output in one line,
// older ones are dropped, and then only as much is cut as the limits require: first what is needed least
// (see View.ByUse), then the oldest outputs become previews, and if that is not enough, one line. A first window fills to
// the limits instead. A view whose strategy is [Summarize] shows a summary of the dropped units instead of the marker: an
// entry of the log, chosen when the window moves.
//
// The window's position is read from the rounds that turns record on assistant entries: a plan requests a
// move, and the turn applies it by recording it. So a plan depends only on the log, the view and the input.
//
// Other packages build other kinds of views from this package's parts: units ([Assembler], [Unit]), their
// shapes and the effective limits ([Request], [Limits]), and the verdicts of a plan ([NewItem], [Fold],
// [Totals]). Package crew/view has the views of a crew's roles, package task the view of a hand-off.
//
// Pitfalls: a Source must show a log that the rules of the root package accept; an entry that breaks them (a
// result without its call) is left out with a reason. Sizes count what is shown, not what is stored.
package window
