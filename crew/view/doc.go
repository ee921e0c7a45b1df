// Package view decides what a role of a crew is shown of its conversation: it turns the log, a [View] and a budget into a
// plan, on the units, shapes and limits of package window.
//
// A role is shown a list of messages, or one text. Every message begins with a label, and nothing in a message can be
// mistaken for a label or for a line of the structure (escape.go). The text, of which each part is a message of its
// own in a list:
//
//	[ORIGINAL REQUEST]                                  the user's first message since the reset, where
//	User: Build a shop.                                 it is not among the messages below
//	[END REQUEST]
//
//	[MORE] 24 earlier messages are left out.            where no summary covers them
//
//	[NOTES]                                             the role's own notes (memory), or between
//	The shop sells tea.                                 [CONTEXT SUMMARY] and [RECENT] a summary
//	[END NOTES]                                         (summary) or a catch-up (the other kinds)
//
//	User (Ann): And coffee?                             the messages of the window, oldest first
//
//	Assistant (Builder): I add a page for it.
//
//	[RECALLED] Earlier messages that ...        entries that were recalled for the role, after
//	4 User: The shop is closed on Mondays.      the messages that were new then
//	[END RECALLED]
//
//	[MORE] 1 newer message follows in your next turn.   a group whose calls have no results yet
//
//	[CURRENT REQUEST]                                   the user's newest message, where it is not
//	User (Ann): Hurry up.                               among the messages above
//	[END REQUEST]
//
//	[SYSTEM REMINDER]                                   the role's system prompt, now and then
//	You build.
//	[END REMINDER]
//
// After it follow the calls and results of the role's own open turn, as messages. Everything before the messages
// stays the same until the window moves, so that requests only grow at the end of the messages. The previous position
// of the window is read from the rounds that are recorded on the role's own answers.
//
// A plan is made in three steps. read.go reads the log backward into a backlog: the messages, which of them are new
// to the role, the group that is held back, the role's own open turn, and the number of earlier messages. layout.go
// decides, by the backlog and the limits alone, which messages are shown whole and what replaces the others.
// report.go writes the plan: its messages, a verdict for each entry, and its effect on the role's cursor.
//
// Messages that are new to the role are shown as long as they fit. Where they do not fit, the plan names the range
// that a summary should cover ([window.RolePlan].Lacks); [window.RolePlan].Through, up to which the role's cursor
// may move, never passes a message that was neither shown nor summarized. The role's open turn affects what is shown
// only by its size, so that the cursor moves to the same seq whichever request of a turn is the last.
//
// Pitfall: a new field of [Role] that changes from turn to turn must be excluded from [View.Hash], else each turn
// begins an epoch of its own.
package view
