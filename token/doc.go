// Package token counts tokens offline and exactly as OpenAI's encodings o200k_base and cl100k_base do. A text
// is first cut into pieces by the encoding's split pattern, then the bytes of each piece are merged pair by
// pair, lowest rank first; a token's id is its rank. The scanners are written by hand and the merge of a long
// piece runs on a heap, so that the work grows no faster than n log n, whatever the text.
//
// Both vocabularies are embedded (see vocab/README.md) and unpacked on first use; an [Encoding] is immutable
// afterwards, but for a bounded cache, and safe for concurrent use.
//
// Pitfalls:
//
//   - Special tokens do not exist here: "<|endoftext|>" is ordinary text of several tokens, as a message that
//     quotes it is for the API.
//   - Counts are of text alone. Tokens that an API adds for messages, tools and images are not included.
//   - Other vendors publish no tokenizer. [ForModel] returns o200k for them and reports that it is an estimate.
//   - Bytes that are not valid UTF-8 are kept: see [Encoding.Count].
//   - Which characters are letters is pinned to Unicode 16, as in the reference (OpenAI's tiktoken), where Go's
//     own tables may be older.
package token
