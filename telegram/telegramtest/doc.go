// Package telegramtest is a Bot API for tests that refuses what Telegram would refuse: it checks tokens, parameters,
// the offset of updates, the reserved characters of MarkdownV2 and the length of messages. What a client should never
// do is a problem that [Server.Problems] lists. A test can make any call fail ([Fault]).
//
// A [Server] is an [net/http.Handler]; [Server.Client] calls it without a network, so that it works within a bubble of
// testing/synctest too.
package telegramtest
