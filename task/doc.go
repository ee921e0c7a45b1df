// Package task is work that is given away together with the history that explains it. A request is checked
// ([Parse], [Check]), the conversation that led to it is shaped to what a reader needs ([Draft.Shape]: users'
// messages nearly whole, the others' beginnings, or summaries), and what comes out is stored as JSON ([Task]) and
// written out for the agent that takes the task on ([Prompt]). Everything is pure: the time is a parameter, and
// only what others bring may do more than compute: a [Summarizer], and the entries that [Draft.Read] reads.
//
// # What is decided here where the format leaves it open
//
//   - conversation_history is a list of messages, the id or key of a conversation of the log, or an object
//     {"conversation_id", "from", "to"}; see [Source]. null, "" and an empty list are no history.
//   - Of a conversation of the log no more is read than the history keeps, so that how many messages it has in all is
//     not known: the warning says more than 50, and counts entries. With relevance the newest 5 000 entries are read,
//     and a warning says which were not.
//   - With relevance, what the cut-off leaves out is a low warning. When more than 50 messages pass it, the most
//     relevant are kept and not the newest, and a medium warning says so.
//   - Content that is no string: null is an empty text, a list of parts is the text of its parts on lines of their
//     own with placeholders such as [image] for the others, and everything else is its compact JSON.
//   - Images and files among the parts are attachments by their address, in a caller's list those that have one (on
//     the web, or a provider's id), behind the attachments that the caller gave and as far as there may be more.
//   - A timestamp that is missing, null or empty is now. One that is a number or cannot be read stays as text: the
//     prompt shows it, but neither the oldest nor the newest message is found by it.
//   - Characters are Unicode characters (code points): limits and lengths count them, and no cut divides one.
//     What a reader sees as one sign (a family emoji, a flag, a letter with marks) may be several of them and is
//     divided where a limit falls into it: the limits are exact, and the mark of the cut begins with a space,
//     which nothing joins. Invalid UTF-8, lone surrogates and NUL become U+FFFD; a face may refuse them before.
//   - Of a list with too many messages, only those that are kept are checked. Errors name a message by its
//     place in the caller's list, counted from 0.
//   - Of a key that stands in an object twice, the last value counts.
//
// Pitfalls: stored messages are as short as they will ever be; the whole ones are in the log, if anywhere. Prompt
// trusts nothing of a stored task: whatever stands in it, no content reads as a header, a message or a footer.
package task
