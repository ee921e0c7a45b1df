package continuo

import "slices"

// Recall says which earlier entries a hidden entry shows again, because the input after it may need them. The entry's content
// is the block that a request shows: it stays the same when the ranking changes.
type Recall struct {
	// Query is what was looked for: the beginning of the input's text.
	Query string `json:"query,omitempty"`
	// Scope is what was searched: conversation, user or project.
	Scope string `json:"scope"`
	// UserID is the conversation's user when the recall was made, where an item is of another conversation: with another user
	// the conversation shows the entry as redacted.
	UserID string `json:"user_id,omitempty"`
	// Role is the crew's role whose request alone shows the block, of the crew of the entry's WorkflowID. "": the block is part of
	// what the next message is shown with.
	Role string `json:"role,omitempty"`
	// For are the seqs of the messages that were new to the role and that the entries were recalled for. Without a role it is the
	// entry after the recall.
	For []int64 `json:"for,omitempty"`
	// Items are the entries, in the order of the block.
	Items []RecallItem `json:"items"`
	// Ranker identifies the ranking and the weights that it used, and the reranker's model, or that it failed.
	Ranker string `json:"ranker"`
}

// RecallItem is one entry that is shown again.
type RecallItem struct {
	// ConversationID is the conversation in which the entry was written, another one of the user or of its memory. "": the
	// recall's own, or one that it was forked from.
	ConversationID string `json:"conversation_id,omitempty"`
	Seq            int64  `json:"seq"`
	// Passage says that only a part of the entry's text is shown.
	Passage bool `json:"passage,omitempty"`
	// Score is the estimated probability that the entry is needed, in millionths.
	Score int `json:"score"`
	// Words are the words of the query that the entry has, in some form.
	Words []string `json:"words,omitempty"`
}

// PartRecall is the PartType of an entry with a Recall.
const PartRecall = "recall"

// HoldsRecall reports whether an entry shows earlier entries again. A redacted one is shown as such.
func (e *Entry) HoldsRecall() bool {
	return e.Recall != nil && e.PartType == PartRecall && e.Role == System && e.Hidden
}

// isFor reports whether a recall at a seq was made for an entry.
func (r *Recall) isFor(seq, at int64) bool {
	if r.Role == "" {
		return seq == at+1
	}
	return slices.Contains(r.For, seq)
}

// recallsAny reports whether an entry that a conversation shows repeats one of some entries, or looked for what one says.
func recallsAny(e *Entry, in Conversation, entries []Entry) bool {
	if !e.HoldsRecall() {
		return false
	}
	return slices.ContainsFunc(e.Recall.Items, showsAny(entries)) || slices.ContainsFunc(entries, func(said Entry) bool {
		if segmentOf(&in, said.Seq).id != said.ConversationID {
			return false
		}
		return e.Recall.isFor(said.Seq, e.Seq) || slices.ContainsFunc(e.Recall.Items, func(item RecallItem) bool { return item.ConversationID == "" && item.Seq == said.Seq })
	})
}
