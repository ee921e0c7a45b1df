package window

// The reasons of verdicts, in all views. The table in docs/api.md has the same ones, in the same order; a test
// compares them. The settings named here bound the views of conversations; an agent's budget, a model's context
// window and a crew's file can lower them.

// Why an entry is shown with its content in the log.
const (
	// ReasonLatestUser: kept. The newest message of a user, which every request holds. No setting changes it.
	ReasonLatestUser = "latest_user"
	// ReasonOpenGroup: kept. The newest message is a call of tools and has all its results: the model has not yet
	// answered them. Every request holds it. No setting changes it.
	ReasonOpenGroup = "open_group"
	// ReasonUnanswered: kept, or previewed where its arguments are cut. A call that has no result yet; the request
	// has a text in the result's place. No setting changes it.
	ReasonUnanswered = "unanswered_call"
	// ReasonInWindow: kept. The entry is at or after the window's start, and fits.
	ReasonInWindow = "in_window"
	// ReasonOpener: kept. The first message of the log, or its first system message, which the view pins before the
	// window. The view decides, see [Opener].
	ReasonOpener = "opener"
	// ReasonPinned: kept. It was the newest message of a user, or the opener, when the window moved to its position,
	// and stays until the window moves again.
	ReasonPinned = "pinned"
	// ReasonProfile: kept. What is known of the user when the window took its position, as one of the system messages
	// (memory.profile).
	ReasonProfile = "profile"
	// ReasonClient: client. The request was made by a client and sent as it came, and has the message.
	ReasonClient = "client"
)

// Why an entry is shown, but not whole.
const (
	// ReasonOutputLimit: previewed. A tool's output, or the arguments of a call, are longer than the view shows of any
	// one (context.tool_output_chars, context.preview_chars), or too large for the log (objects.inline_output_bytes).
	ReasonOutputLimit = "over_output_limit"
	// ReasonResultsOff: truncated. The view shows each result as one line (context.include_tool_results).
	ReasonResultsOff = "tool_results_off"
)

// Why an entry is dropped, or a tool's output cut.
const (
	// ReasonOverMessages: dropped. The limit on messages determined the window's start (context.max_messages,
	// chat.max_history_messages, transcript.history_messages, handoff.max_messages).
	ReasonOverMessages = "over_messages"
	// ReasonOverChars: dropped, or previewed or truncated. The limit on characters determined the window's start, or
	// how far tool outputs are cut (context.max_chars).
	ReasonOverChars = "over_chars"
	// ReasonOverTokens: dropped, or previewed or truncated. The same for the limit on tokens (context.max_tokens,
	// chat.max_context_tokens, chat.reserved_tokens, a model's context_window).
	ReasonOverTokens = "over_tokens"
	// ReasonReadAgain: truncated. Later results have nine tenths of the result again, line by line.
	ReasonReadAgain = "read_again"
	// ReasonFailedCall: previewed. The call failed, and a later call of the same tool succeeded.
	ReasonFailedCall = "failed_call"
	// ReasonDescribed: truncated. The model answered after the image, so that its answer says what it needed of it.
	ReasonDescribed = "image_described"
	// ReasonBeforeWindow: dropped. The entry is before the window's start, and the window has no limit recorded.
	ReasonBeforeWindow = "before_window"
	// ReasonRecall: recalled. An earlier entry that a block shows again, because a message may need it, or the block itself
	// (recall.share).
	ReasonRecall = "recall"
	// ReasonNotRecalled: dropped. In the view recall: other entries are worth more of its tokens.
	ReasonNotRecalled = "not_recalled"
	// ReasonSummary: summarized. A summary that is shown covers the entry (context.strategy, chat.strategy). In the view
	// of a role, also the verdict kept or truncated on the summary itself.
	ReasonSummary = "summary"
)

// Why an entry is excluded regardless of limits.
const (
	// ReasonUIOnly: excluded. The entry is hidden: it is for people and programs, such as an event or a summary.
	ReasonUIOnly = "ui_only"
	// ReasonDeleted: excluded. A client deleted an item of the entry, of another one of its group, or of one that it recalls.
	ReasonDeleted = "deleted"
	// ReasonDroppedByClient: excluded. The client keeps its history itself, and does not have the entry in it: a turn that
	// failed.
	ReasonDroppedByClient = "dropped_by_client"
	// ReasonProfileOff: excluded. The profile of the window, in a turn whose client asked for no memory.
	ReasonProfileOff = "memory_off"
	// ReasonProfileRemoved: excluded. The profile of the window was redacted or deleted, or the conversation is another user's
	// now. The next request has the newest one.
	ReasonProfileRemoved = "profile_removed"
	// ReasonEmpty: excluded. The entry has no content.
	ReasonEmpty = "empty"
	// ReasonThinking: excluded. An answer that has reasoning only.
	ReasonThinking = "thinking"
	// ReasonSystem: excluded. A system entry, in the views replay and handoff and in those of roles.
	ReasonSystem = "system_prompt"
	// ReasonCollapsed: excluded. A system entry that user interfaces collapse (context.include_collapsed).
	ReasonCollapsed = "collapsed"
	// ReasonPlaceholder: excluded. A text that an import put in the place of a missing one.
	ReasonPlaceholder = "placeholder"
	// ReasonOrphan: excluded. A tool result without its call.
	ReasonOrphan = "orphan_tool_result"
	// ReasonAttempt: excluded. An answer that failed without text, or the message before it where the next repeats it.
	ReasonAttempt = "failed_attempt"
)

// In the view handoff only.
const (
	// ReasonMessageChars: truncated. The text is longer than handoff.user_max_chars or handoff.assistant_max_chars.
	ReasonMessageChars = "over_message_chars"
	// ReasonOneLine: truncated. A call and its results are one line.
	ReasonOneLine = "in_one_line"
	// ReasonTextOnly: truncated. Of a message with other parts, such as images, the text is shown.
	ReasonTextOnly = "text_only"
)

// In the views of a crew's roles only. The crew's file decides.
const (
	// ReasonNew: kept, or truncated. The role has not been shown the message before.
	ReasonNew = "new"
	// ReasonSeen: kept, or truncated. The role has been shown the message before. Excluded where an agent remembers it, or the view shows only what is new.
	ReasonSeen = "seen"
	// ReasonOriginal: kept, or truncated. The request that the crew works on, shown before the other messages.
	ReasonOriginal = "original_request"
	// ReasonOwnMessage: excluded. A message of the role itself, which its agent remembers.
	ReasonOwnMessage = "own_message"
	// ReasonFailedAnswer: excluded. An answer that failed and has nothing to show, or that another attempt replaced.
	ReasonFailedAnswer = "failed_answer"
	// ReasonBeforeReset: excluded. The crew was reset after it.
	ReasonBeforeReset = "before_reset"
	// ReasonAfterCue: excluded. The entry came after the role was asked.
	ReasonAfterCue = "after_ask"
	// ReasonNextTurn: dropped. It does not fit, and the role is shown it in its next turn.
	ReasonNextTurn = "next_turn"
	// ReasonNotes: summarized. The role's notes cover the entry; kept or truncated for the notes themselves.
	ReasonNotes = "notes"
	// ReasonCatchUp: summarized. A catch-up covers the entry; kept or truncated for the catch-up itself.
	ReasonCatchUp = "catch_up"
)

// DropReason returns the reason for which entries are left out, or tool outputs cut, because of a limit; "" for
// none.
func DropReason(limit string) string {
	if limit == "" {
		return ReasonBeforeWindow
	}
	return "over_" + limit
}
