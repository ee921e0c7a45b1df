// Package durable carries runs on: it takes their steps, in any process and any number of times, so that each has its
// effect once. It does not know what a run is made of. A [Machine] says what the next steps are and how one is carried
// out; workflows and the cycles of crews are two kinds of machines.
//
// # The life of a run
//
//	         RunBegan              nothing is left to do
//	(none) ────────────▶ running ─────────────────────────▶ finished
//	                     │     ▲
//	  a step fails, a    │     │ a person resumes it,
//	  person stops it,   ▼     │ or decides
//	  or it asks one    failed, stopped, waiting
//
// A person can cancel a run in each of these states but finished. The states are those of the run's events in the log
// (continuo.RunEvent). Only a running run has steps. One step, an attempt at a node of a workflow or at the answer of a
// crew's role, goes through:
//
//	Begin ──▶ Attend: its turn runs, then has ended ──┬──▶ concluded, by events in the log
//	            ▲                                     ├──▶ Wait, until a time ──┐
//	            └─────────── next attempt ────────────┴─────────────────────────┘
//
// # Who owns a run
//
// No process owns a run: what is to be done follows from the log, and any number of processes may carry one run on. In one
// process a run has at most one worker ([Driver.Resume]); a call for a run that has a worker asks it to look again. Two
// rules let each step count once:
//
//   - A turn is owned. It has an id made of run, step, visit and attempt, and begins only once; its process holds the
//     lease of the conversation with a fencing token (package turn), so that a process that was taken for dead writes
//     nothing more. Other processes wait for the turn's end.
//   - Everything else is appended on the condition that the log still ends where it was read ([History.Append]). Of several
//     processes that decide on the same state the first counts; the others read on and decide again.
//
// # What is durable when
//
// The log is all that a run is. The event that a step has begun is in one commit with the turn's first entry, the answer
// with the event that concludes it. A step that runs beside others has a conversation of its own, a branch: its beginning
// is recorded in the run's conversation before its turn begins, and its answer is copied there with the event that
// concludes it, in one commit. The table of runs is an index that the log commits with the events.
//
// # What happens at a kill
//
// The turn under way loses its lease; any process that looks at it closes it as interrupted ([turn.Keeper.RecoverIfAbandoned]). The
// run stays "running" in the index, and a process that finds it there without events for a while and without a turn
// ([Driver.ResumeAbandoned]) gives it a worker. That reads the log from the run's first entry and goes on: an attempt whose
// turn has ended without a conclusion is concluded or followed by the next attempt, as the machine decides; one whose turn
// never began is begun. A program that ends in an orderly way stops between steps ([Options.Draining]), and interrupts
// turns that take too long ([Options.Closing]).
package durable
