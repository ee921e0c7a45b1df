// Package interchange reads conversations of foreign forms into entries that a log accepts, and writes
// conversations out again. What a source holds is kept whole: known fields become an entry's fields,
// unknown ones its Extra, and whatever an entry cannot say stays in a small record beside it. What no
// log could show (a result without its call, a call without its result) is repaired, and each repair is
// reported with the index of its message and the rule.
//
// # Forms
//
// Read takes a JSON value or many (JSON lines, also gzip-packed): a list of messages, an object with
// them under "messages", or a list of such objects. Known protocols are OpenAI chat, its older form with
// function_call, Anthropic messages, the unified log's predecessor (index.json and <id>/messages.json,
// see ReadFolder), the pipeline's chat_<id>.json, and Continuo's own export: a header line, one line per
// entry, and an end line that tells a whole file from a cut one.
//
// # Where things are kept
//
// Conversation.Metadata has {"source": {"format", "list", "fields"}}: the protocol, the name of the field
// that held the messages (none for a bare list), and the conversation's other fields as they came.
// Entry.Vendor["interchange"] has the record described at type record, of which usually only
// {"index": N}, the message's place in the source, is set. Entry.Vendor["anthropic"] has the content
// blocks as they came when the entry's own fields cannot give them back, in the form that package render
// documents.
//
// Pitfalls: the records can hold text (an original that a repair replaced), so a redaction must remove
// Vendor and Extra as well as Content. Message indexes count from 0 and mean the source, not the log.
package interchange
