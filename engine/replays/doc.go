// Package replays answers recorded messages again, in other variants (another model, view or budget), and compares the answers
// with the recorded ones.
//
// Each answer is asked for with the recorded history before it, and with the recorded results of tools: no tool runs, and nothing
// is written to the conversation. Requests are built by package contexts from the log, as those of turns are; within a variant,
// the window continues from request to request as if the conversation had been held in that variant. The requests of a
// conversation are sent one after another, so that providers' caches work as they would have.
//
// Pitfall: a recorded history leads each answer back to the recorded path. A replay says how a model answers in the recorded
// situations, not where it would have led the conversation.
package replays
