// Package telegramtest is a Bot API for tests that takes nothing that Telegram would refuse: tokens, parameters, the
// offset of updates, the reserved characters of MarkdownV2 and the length of messages are checked, and what a client
// should never do is a problem that [Server.Problems] lists. A test makes calls fail as it likes ([Fault]).
//
// A [Server] is an [net/http.Handler]; [Server.Client] calls it without a network, so that it works within a bubble of
// testing/synctest too.
package telegramtest
