// Package historytest checks histories of concurrent operations on a conversation, for tests: clients record each
// operation with the times of its call and its answer, and [Check] asks whether there is one order of all operations
// that respects these times and the rules of a log (linearizability, checked by porcupine).
//
// The rules: entries have seqs without gaps and never change; expect_seq is a compare-and-set; an idempotency key
// appends once and is answered with the same seq each time; a read shows the whole log as it is at one moment between
// its call and its answer; one turn at a time runs, and only the running turn adds entries of a turn.
package historytest
