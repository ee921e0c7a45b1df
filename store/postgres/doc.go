// Package postgres keeps conversations in a PostgreSQL database, for any number of processes on any number of
// machines. Concurrent changes share one commit and one round trip. Each is one statement that names one
// conversation; the conversation's id leads every key, so that tables can be partitioned by it. After a lost
// connection the store looks up whether the change was committed before it retries: no change is lost or made
// twice.
//
// The tables are in the schema continuo, beside the schemas of other programs; docs/schema-postgres.sql has
// them. An entry is one row of the table entries: its body is the entry's JSON, and the other columns repeat
// what queries look for. There are no extensions, no procedures and no foreign keys.
//
// Leases and the times of turns are measured by the database's clock. Other processes are notified of changes
// by NOTIFY, outside of the commits (see Store.WatchChanges); they see changes without a notification later,
// when they next read.
//
// Pitfalls: a pooler that gives each transaction another connection of the server has to support prepared
// statements, or the URL needs default_query_exec_mode=exec; such a pooler drops the notifications and the
// timeouts. The server must not be set to synchronous_commit=off, which acknowledges commits that a crash may
// lose.
package postgres
