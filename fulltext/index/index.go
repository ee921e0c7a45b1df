// Package index searches conversations by their words. Package fulltext decides what matches; the store's
// Store finds candidates fast; this package indexes the log (Indexer), reads and checks the
// candidates, ranks the matches and makes snippets (Search).
//
// The index lags behind the log. A search first indexes missing entries, for a bounded time. In one
// conversation the search then reads the entries that are still not indexed from the log, so that it finds an
// entry right after its append, however many entries wait. It also reads from the log the entries of a
// deleted or archived parent, which are not indexed, but with which forks begin.
//
// A document has the terms of one entry, at the time when the entry was made, or at the time of an earlier
// entry if that is later: within a conversation documents are in the order of seqs. Document 0 is the title.
// An entry whose output is stored beside the log also has the term largeOutput, which no text has.
//
// Pitfalls. Several indexers may race: the store accepts the batch of one, and the others get a
// *continuo.ConflictError and read again. An index does not store its fulltext.Version: a release that
// changes the version needs a migration of every store that empties the index (indexed_seq to fork_seq,
// indexed_title to NULL, no documents); a test checks this.
package index

import "strings"

// largeOutput is a term of entries that have only a preview of a tool's output. It is longer than any word.
var largeOutput = "largeoutput" + strings.Repeat("0", 64)
