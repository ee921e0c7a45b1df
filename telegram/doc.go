// Package telegram is a crew's front end in one Telegram chat. A listener bot receives what people write there and
// passes it to a [Crew]; each answer of a role is sent by the role's own bot, or by the listener where the role has
// none. The package makes no decisions about crews, and stores nothing: a received message is in the log under the
// update's key, and the position of what was sent is the crew's [Delivery].
//
// An update is confirmed after its message is in the log, so that no restart loses it; its key is
// "telegram/BOT/UPDATE", so that a repeated update is recorded once. Answers are sent one part after the other, in the
// order of the log, and each part is noted after Telegram has accepted it.
//
// Pitfalls: a part without a response from Telegram (the connection broke, or the program was killed before the part
// was noted) is sent again, and may then appear twice in the chat: the Bot API has no idempotency key for a message.
// Replies to commands may be repeated likewise; a command's effect happens once. Limits are counted in UTF-16 code
// units, as Telegram does.
package telegram
