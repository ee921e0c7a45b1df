// Package interchange imports conversations of other formats as entries that a log accepts, and exports
// conversations. No data of a source are lost: known fields become an entry's fields, unknown ones its Extra,
// and anything that an entry cannot represent stays in a small record on it. Messages that violate the log's
// rules (a result without its call, a call without its result) are repaired, and each repair is reported with
// the index of its message and the rule.
//
// # Forms
//
// Read takes a JSON value or many (JSON lines, also gzip-packed): a list of messages, an object with them
// under "messages", or a list of such objects. Known protocols are OpenAI chat, its older form with
// function_call, Anthropic messages, the unified log's predecessor (index.json and <id>/messages.json, see
// ReadFolder), the pipeline's chat_<id>.json, and Continuo's own export: a header line, one line per entry,
// and an end line that distinguishes a complete file from a truncated one.
//
// # Where things are kept
//
// Conversation.Metadata has {"source": {"format", "list", "fields"}}: the protocol, the name of the field
// that held the messages (none for a bare list), and the conversation's other fields unchanged.
// Entry.Vendor["interchange"] has the record described at type record, of which usually only {"index": N},
// the message's index in the source, is set. Entry.Vendor["anthropic"] has the original content blocks when
// the entry's own fields cannot reproduce them, in the form that package render documents.
//
// Pitfalls: the records can contain text (an original that a repair replaced), so a redaction must remove
// Vendor and Extra as well as Content. Message indexes count from 0 and refer to the source, not the log.
package interchange
