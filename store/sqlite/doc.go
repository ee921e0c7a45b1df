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
// The index of words is an FTS5 table over the table documents, whose row ids are times: so the newest
// places of a word are read without sorting, however many there are. See place.go.
//
// What is deleted or redacted is overwritten in the file, in pages that become free too. A removed document
// is found no more at once. Its words leave the index with the redaction that removed it; those of a deleted
// or archived conversation, and of more than 64 entries that are redacted together, do so afterwards, two
// documents at a time between other writes, since that takes some milliseconds each. The write-ahead log (NAME-wal), which may hold older forms of pages, is emptied after each redaction and
// deletion; while a reader holds it, that is tried again every second, and HasResidue says so. Backups, snapshots of the file system and worn blocks of the disk are beyond it.
//
// Pitfalls: the file lives with two others beside it, NAME-wal and NAME-shm; copy it only with sqlite3's
// .backup or after Close. It must not be on a network file system. No other code of this process may
// open the file, since closing it would drop SQLite's locks (a property of POSIX locks).
package sqlite
