// Package index searches conversations by their words. Package fulltext decides what matches; the store's
// continuo.IndexStore finds candidates fast; this package brings the index up to the log (Indexer), reads the
// candidates, looks at each again, and ranks and cuts what is shown (Search).
//
// The index runs behind the log. Whoever searches has what is missing indexed first, for a bounded time; in one
// conversation what is still missing then is read from the log instead, so that a search right after an append
// finds it whatever waits. So are the entries of a parent that is deleted or archived, which the index has
// not, but its forks still begin with.
//
// A document has the terms of one entry, at the time when the entry was made, or that of an entry before it if that
// is later: within a conversation documents stand in the order of seqs. Document 0 is the title. An entry whose
// output is kept beside the log has the term largeOutput besides, which no text has.
//
// Pitfalls. Several indexers may race: the store takes the batch of one, and the others see a
// *continuo.ConflictError and look again. An index does not know by which fulltext.Version it was made: a release
// that changes the version brings a migration of every store that empties the index (indexed_seq to fork_seq,
// indexed_title to NULL, no documents); a test reminds of it.
package index

import "strings"

// largeOutput is a term of entries that have only a preview of what a tool returned. It is longer than a word may
// be, so that it is none.
var largeOutput = "largeoutput" + strings.Repeat("0", 64)
