// Package fulltext defines what a search over conversations finds: what a word is, which entries match a
// query, with which score, and the snippets. A store only finds candidates: it keeps the Terms of each
// entry's texts, looks for entries that have all of Query.Terms, and Query.Match checks the real text. So
// every store gives the same results in the same order, whatever its own tokenizer does.
//
// Words are runs of letters, digits and marks; everything else separates them, also _ . - / and the
// apostrophe (file_read is file and read), while fileRead is one. They are compared without case, diacritics
// and forms of presentation: Müller is muller, Ａ is a, ﬁ is fi, İ and ı are i, ß is ss, ٣ is 3. Emoji,
// symbols and terminal colour codes are not words. Scripts without spaces between words (Han, kana, Thai,
// Lao, Khmer, Burmese and others) have one token per character, with its marks, and are searched as sequences
// of characters. Korean has spaces, but puts particles after its nouns: a word in a query also matches longer
// words that begin with it.
//
// Pitfalls. The folded form of texts and queries depends on this package and on the Unicode tables of the Go
// release; a store of terms also stores Version and rebuilds its terms when it differs. Only the first 64
// characters of a word count, so that a blob of base64 is one short term; Match follows the same rule. An
// entry's number of terms is limited, and text beyond the limit is not found. A query finds no other forms of its words
// (package recall does, by Stem), there are no synonyms, and simplified and traditional characters are not matched. All functions are pure, and safe
// for concurrent use.
package fulltext

// Version is the number of the rules by which terms are made; it is increased when the terms of a text
// change.
const Version = 2

// The limits, so that no entry is too large for an index and no query too large for a database.
const (
	MaxWord       = 64        // characters of a word that count
	MaxTerms      = 20_000    // distinct terms of an entry
	MaxTermBytes  = 512 << 10 // bytes of an entry's terms together
	MaxQueryChars = 1_000     // characters of a query
	MaxQueryWords = 32        // words and phrases of a query, and the terms that it looks up in an index
)
