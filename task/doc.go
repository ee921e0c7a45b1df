// Package task implements work that is delegated together with the history that explains it. A request is checked
// ([Parse], [Check]), the conversation that led to it is reduced to what a reader needs ([Draft.Shape]: users' messages
// nearly whole, the others' beginnings, or summaries), and the result is stored as JSON ([Task]) and written as the
// prompt of the agent that takes the task on ([Prompt]). The package has no side effects: the time is a parameter, and
// only the caller's parameters may do more than compute: a [Summarizer], and the entries that [Draft.Read] reads.
//
// # What is decided here where the format leaves it open
//
//   - conversation_history is a list of messages, the id or key of a conversation of the log, or an object
//     {"conversation_id", "from", "to"}; see [Source]. null, "" and an empty list are no history.
//   - Of a conversation of the log no more is read than the history keeps, so its total number of messages is
//     not known: the warning says more than 50, and counts entries. With relevance the newest 5 000 entries are read,
//     and a warning names those that were not.
//   - With relevance, what the cut-off leaves out is a low warning. When more than 50 messages pass it, the most
//     relevant are kept and not the newest, and a medium warning says so.
//   - Content that is no string: null is an empty text, a list of parts is the text of its parts on lines of their
//     own with placeholders such as [image] for the others, and everything else is its compact JSON.
//   - Images and files among the parts are attachments by their address, in a caller's list those that have one (on
//     the web, or a provider's id), after the attachments that the caller gave and up to the limit.
//   - A timestamp that is missing, null or empty is now. One that is a number or cannot be parsed stays as text: the
//     prompt shows it, but the oldest and newest message are found without it.
//   - Characters are Unicode characters (code points): limits and lengths count them, and truncation never splits one.
//     What a reader sees as one character (a family emoji, a flag, a letter with marks) may be several of them and is
//     split where a limit falls into it: the limits are exact, and the truncation mark begins with a space,
//     which joins with nothing. Invalid UTF-8, lone surrogates and NUL become U+FFFD; an API may refuse them before.
//   - Of a list with too many messages, only those that are kept are checked. Errors name a message by its
//     index in the caller's list, counted from 0.
//   - Of a duplicate key in an object, the last value counts.
//
// Pitfalls: stored messages are permanently truncated; the whole ones are in the log, if anywhere. Prompt trusts no
// text of a stored task: no content can look like a header, a message or a footer.
package task
