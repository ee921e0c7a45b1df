// Package durable drives runs: it executes their steps, in any process and any number of times, so that each takes
// effect once. It is independent of the kind of run. A [Machine] says which steps are due and how one is executed;
// workflows and the cycles of crews are two kinds of machines.
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
// (continuo.RunEvent). Only a running run has steps. One step, an attempt at a node of a workflow or at the answer of
// a crew's role, goes through:
//
//	Begin ──▶ Attend: its turn runs, then has ended ──┬──▶ concluded, by events in the log
//	            ▲                                     ├──▶ Wait, until a time ──┐
//	            └─────────── next attempt ────────────┴─────────────────────────┘
//
// # Who owns a run
//
// No process owns a run: the steps that are due follow from the log, and any number of processes may drive one run.
// In one process a run has at most one worker ([Driver.Resume]); Resume for a run with a worker asks the worker to
// read the run again. Two rules make each step count once:
//
//   - A turn is owned. It has an id made of run, step, visit and attempt, and begins only once; its process holds the
//     lease of the conversation with a fencing token (package turn), so that a process that was considered
//     dead cannot write any more. Other processes wait for the turn's end.
//   - Everything else is appended on the condition that the log still ends where it was read ([History.Append]). Of
//     several processes that decide on the same state the first one's append succeeds; the others read on and decide
//     again.
//
// # What is durable when
//
// The log contains all of a run. The event of a step's beginning is in one commit with the turn's first entry, the
// answer in one commit with the event that concludes it. A step that runs in parallel with others has a conversation
// of its own, a branch: its beginning is recorded in the run's conversation before its turn begins, and its answer is
// copied there in one commit with the event that concludes it. The table of runs is an index that the log commits
// with the events.
//
// # What happens at a kill
//
// The running turn loses its lease; any process that reads it closes it as interrupted
// ([turn.Keeper.RecoverIfAbandoned]). The run stays "running" in the index, and a process that finds it there without
// a turn and without recent events ([Driver.ResumeAbandoned]) gives it a worker. The worker reads the log from the
// run's first entry and continues: an attempt whose turn has ended without a conclusion is concluded or followed by
// the next attempt, as the machine decides; an attempt whose turn never began is started. A program that shuts down in
// an orderly way stops between steps ([Options.Draining]), and interrupts turns that take too long
// ([Options.Closing]).
package durable
