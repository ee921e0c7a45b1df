// Package telegram is a crew's front end in one chat of Telegram. A listener bot takes what people write there and
// hands it to a [Crew]; each answer of a role is sent by the role's own bot, or by the listener where it has none.
// It decides nothing about crews, and keeps nothing: what was taken stands in the log under the update's key, and
// what was sent in the crew's [Delivery].
//
// An update is confirmed after its message stands in the log, so that it is lost by no restart; its key is
// "telegram/BOT/UPDATE", so that it is taken once however often it comes. Answers are sent one part after the other, in
// the order of the log, and each part is noted after Telegram has taken it.
//
// Pitfalls: a part whose sending was not answered (the connection broke, or the program was killed before the part
// was noted) is sent again, and may then stand twice in the chat: the Bot API has no key for a message. Replies to
// commands may come twice likewise; what a command does is done once. Limits are counted in UTF-16 code units, as
// Telegram does.
package telegram
