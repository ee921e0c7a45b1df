// Package postgres keeps conversations in a PostgreSQL database, for any number of processes on any number of
// machines. Changes that come at the same time share one commit and one round trip; each is one statement
// that names one conversation, whose id leads every key, so that tables can be divided by it. What a lost
// connection leaves open is looked up before anything is done again: no change is lost or made twice.
//
// The tables stand in the schema continuo, beside those of others; docs/schema-postgres.sql has them. An
// entry is one row of the table entries: its body is the entry's JSON, and the other columns repeat what
// queries look for. There are no extensions, no procedures and no foreign keys.
//
// Leases and the times of turns are measured by the database's clock. Other processes are told of changes by
// NOTIFY, outside of the commits (see Store.WatchChanges); what is not told is seen later.
//
// Pitfalls: a pooler that gives each transaction another connection of the server's has to support prepared
// statements, or the URL needs default_query_exec_mode=exec; it drops the hints and the timeouts. The server
// must not be set to synchronous_commit=off, which acknowledges what it may lose.
package postgres
