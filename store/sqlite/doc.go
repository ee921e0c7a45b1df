// Package sqlite keeps conversations in one SQLite file: the default store, with no set-up. Concurrent
// writers share one commit and its wait for the disk; readers never wait for writers.
//
// The file can be opened with the sqlite3 tool. An entry is one row of the table entries: its body is the
// entry's JSON, and the other columns repeat what queries look for. docs/schema.sql has the tables. The
// tables entries and blobs have row ids, because their rows are large: measured against WITHOUT ROWID,
// appending to many conversations is 1.8 times as fast, reading rows of mixed sizes about the same, and the
// file 13 % smaller.
//
// The full-text index is an FTS5 table over the table documents, whose row ids are times: so the newest hits
// of a term are read without sorting, however many there are. See place.go.
//
// Deleted and redacted data are overwritten in the file, in freed pages too. Searches stop finding a removed
// document at once. A redaction removes its terms from the index in the same transaction. The terms of a
// deleted or archived conversation, and of the entries after the first 64 in one redaction, are removed
// afterwards, two documents at a time between other writes, since each takes some milliseconds. The
// write-ahead log (NAME-wal), which may hold older versions of pages, is truncated after each redaction and
// deletion; while a reader holds it, this is retried every second, and HasResidue returns true. Copies that
// SQLite has left in pages from which it moved rows are cleared after each removal, between other writes and
// before Close returns: some 4 s of work for each GB of the file, with 19 times as long a rest before the
// next pass (wipe.go). Backups, snapshots of the file system and worn blocks of the disk are not erased.
//
// Pitfalls: two more files belong to the database, NAME-wal and NAME-shm; copy it only with sqlite3's .backup
// or after Close. It must not be on a network file system. No other code of this process may open the file,
// since closing it would drop SQLite's locks (a property of POSIX locks).
package sqlite
