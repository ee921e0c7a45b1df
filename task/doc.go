// Package task is work that is given away together with the history that explains it. A request is checked
// ([Parse], [Check]), the conversation that led to it is shaped to what a reader needs ([Draft.Shape]: users'
// messages nearly whole, the others' beginnings, or summaries), and what comes out is stored as JSON ([Task]) and
// written out for the agent that takes the task on ([Prompt]). Everything is pure: the time is a parameter, and
// only a [Summarizer] that others bring may do more than compute.
//
// # What is decided here where the format leaves it open
//
//   - conversation_history is a list of messages, the id of a conversation of the log, or an object
//     {"conversation_id", "from", "to"}; see [Source]. null, "" and an empty list are no history.
//   - Content that is no string: null is an empty text, a list of parts is the text of its parts on lines of their
//     own with placeholders such as [image_url] for the others, and everything else is its compact JSON.
//   - A timestamp that is missing, null or empty is now. One that is a number or cannot be read stays as text: the
//     prompt shows it, but neither the oldest nor the newest message is found by it.
//   - Characters are Unicode characters (code points): limits and lengths count them, and no cut divides one.
//     What a reader sees as one sign (a family emoji, a flag, a letter with marks) may be several of them and is
//     divided where a limit falls into it: the limits are exact, and the mark of the cut begins with a space,
//     which nothing joins. Invalid UTF-8, lone surrogates and NUL become U+FFFD.
//   - Of a list with too many messages, only those that are kept are checked. Errors name a message by its
//     place in the caller's list, counted from 0.
//   - Of a key that stands in an object twice, the last value counts.
//
// Pitfalls: stored messages are as short as they will ever be; the whole ones are in the log, if anywhere. Prompt
// trusts nothing of a stored task: whatever stands in it, no content reads as a header, a message or a footer.
package task
