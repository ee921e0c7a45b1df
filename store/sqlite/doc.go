// Package sqlite keeps conversations in one SQLite file: the default store, with no set-up. Writers that
// come at the same time share one commit, so that they share the wait for the disk; readers never wait
// for writers.
//
// The file can be opened with the sqlite3 tool. An entry is one row of the table entries: its body is
// the entry's JSON, and the other columns repeat what queries look for. docs/schema.sql has the tables.
// The tables entries and blobs have row ids, because their rows are large: measured against WITHOUT
// ROWID, appending to many conversations is 1.8 times as fast, reading rows of mixed sizes about the
// same, and the file 13 % smaller.
//
// Pitfalls: the file lives with two others beside it, NAME-wal and NAME-shm; copy it only with sqlite3's
// .backup or after Close. It must not be on a network file system. No other code of this process may
// open the file, since closing it would drop SQLite's locks (a property of POSIX locks).
package sqlite
