// Package fulltext decides what a search over conversations finds: what a word is, which entries match a query,
// how well, and what is shown of them. A store only finds candidates: it keeps the Terms of each entry's texts,
// looks for those that have all of Query.Terms, and asks Query.Match about the real text. So every store gives the
// same results in the same order, whatever its own idea of words is.
//
// Words are runs of letters, digits and marks; everything else parts them, also _ . - / and the apostrophe
// (file_read is file and read), while fileRead is one. They are compared without case, diacritics and forms of
// presentation: Müller is muller, Ａ is a, ﬁ is fi, İ and ı are i, ß is ss, ٣ is 3. Emoji, symbols and the
// colours of terminals are no words.
// Scripts without spaces between words (Han, kana, Thai, Lao, Khmer, Burmese and others) have one token per
// character, with its marks, and are searched as stretches of characters. Korean has spaces, but puts particles
// after its nouns: its words are words, and one that is looked for is found at the beginning of others.
//
// Pitfalls. What a text and a query are folded to depends on this package and on the Unicode tables of the Go
// release; whoever keeps terms keeps Version with them and makes them anew when it differs. Only the first 64
// characters of a word count, so that a blob of base64 is one short term; Match follows the same rule. An entry has
// a limit of terms, and what stands behind it is not found. There is no stemming, no synonyms, no simplified for
// traditional characters. Everything here is pure, and safe for concurrent use.
package fulltext

// Version is the number of the rules by which terms are made; it grows when the terms of a text change.
const Version = 1

// What is bounded, so that no entry is too large for an index and no query too large for a database.
const (
	MaxWord       = 64        // characters of a word that count
	MaxTerms      = 20_000    // distinct terms of an entry
	MaxTermBytes  = 512 << 10 // bytes of an entry's terms together
	MaxQueryChars = 1_000     // characters of a query
	MaxQueryWords = 32        // words and phrases of a query, and terms that it looks up in an index
)
