package continuo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// A conversation lists the other conversations whose recalls show its entries, so that a redaction here reaches them. The
// list is receipts that no client can name: "mark quoted N" has the id of the Nth conversation, "mark quoted by ID" says
// that one is listed.
const quoted = "quoted "

func quoteReceipt(name, id string) Receipt {
	return Receipt{Key: markKey(quoted + name), Fingerprint: markFingerprint + " " + id}
}

// NoteRecall prepares a recall that is to be appended to a conversation and that shows entries of other ones: these list the
// conversation from then on. It refuses, with ErrInvalid, entries of another project or of another user. It must be called
// before the append, so that no recall is in the log that a redaction does not find.
func (l *Log) NoteRecall(ctx context.Context, conversation Conversation, entry *Entry) error {
	if !entry.HoldsRecall() {
		return nil
	}
	for _, id := range entry.Recall.others() {
		source, err := l.Conversation(ctx, id)
		if err == nil {
			err = mayQuote(conversation, source)
		}
		if err == nil {
			err = l.listQuote(ctx, id, conversation.ID)
		}
		if err != nil {
			return fmt.Errorf("recall entries of conversation %s: %w", id, err)
		}
		entry.Recall.UserID = conversation.UserID
	}
	return nil
}

// mayQuote refuses a recall of what another user said.
func mayQuote(by, source Conversation) error {
	if by.ProjectID != source.ProjectID || source.UserID != "" && source.UserID != by.UserID {
		return fmt.Errorf("%w: it is of another project or user", ErrInvalid)
	}
	return nil
}

// listQuote lists a conversation that quotes another one.
func (l *Log) listQuote(ctx context.Context, source, by string) error {
	listed := quoteReceipt("by "+by, "")
	if _, err := l.store.Receipt(ctx, source, listed.Key); !errors.Is(err, ErrNotFound) {
		return err
	}
	for n := 1; ; n++ {
		entry := quoteReceipt(strconv.Itoa(n), by)
		kept, err := l.store.Receipt(ctx, source, entry.Key)
		if errors.Is(err, ErrNotFound) {
			kept, err = l.store.AdvanceReceipt(ctx, source, entry)
		}
		if err != nil {
			return err
		}
		if kept.Fingerprint == entry.Fingerprint {
			break
		}
	}
	_, err := l.store.AdvanceReceipt(ctx, source, listed)
	return err
}

// quoting lists the conversations whose recalls show, or have shown, entries of a conversation.
func (l *Log) quoting(ctx context.Context, id string) (ids []string, err error) {
	for n := 1; ; n++ {
		kept, err := l.store.Receipt(ctx, id, quoteReceipt(strconv.Itoa(n), "").Key)
		if errors.Is(err, ErrNotFound) {
			return ids, nil
		}
		if err != nil {
			return nil, err
		}
		ids = append(ids, kept.Fingerprint[len(markFingerprint)+1:])
	}
}

// others lists the other conversations of which a recall shows entries.
func (r *Recall) others() (ids []string) {
	for _, item := range r.Items {
		if item.ConversationID != "" && !slices.Contains(ids, item.ConversationID) {
			ids = append(ids, item.ConversationID)
		}
	}
	return ids
}

// quotesOf finds the recalls in other conversations, not redacted, that show an entry of one of some conversations. Those
// in archived ones are redacted at once: nothing else can be done with them.
func (l *Log) quotesOf(ctx context.Context, owners []string, shows func(RecallItem) bool) ([]Entry, error) {
	var found []Entry
	var read []string
	for _, owner := range owners {
		ids, err := l.quoting(ctx, owner)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if slices.Contains(read, id) {
				continue
			}
			read = append(read, id)
			blocks, err := l.recallsIn(ctx, id, func(e *Entry) bool { return slices.ContainsFunc(e.Recall.Items, shows) })
			if err != nil {
				return nil, fmt.Errorf("conversation %s, which recalled entries: %w", id, err)
			}
			found = append(found, blocks...)
		}
	}
	return found, nil
}

// recallsIn finds the recalls that were written in a conversation and are not redacted; none where it was deleted. In an
// archived one it redacts them.
func (l *Log) recallsIn(ctx context.Context, id string, has func(*Entry) bool) ([]Entry, error) {
	conversation, err := l.Conversation(ctx, id)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	isRecall := func(e *Entry) bool { return e.HoldsRecall() && has(e) }
	if !conversation.ArchivedAt.IsZero() {
		return nil, l.redactArchived(ctx, conversation, isRecall)
	}
	var found []Entry
	for entry, err := range l.ReadShared(ctx, conversation, Range{From: conversation.ForkSeq + 1, isRaw: true}) {
		if err != nil {
			return nil, err
		}
		if entry.Redacted == nil && isRecall(entry) {
			found = append(found, *entry)
		}
	}
	return found, nil
}

// showsAny returns what reports whether an item of a recall in another conversation is one of some entries.
func showsAny(entries []Entry) func(RecallItem) bool {
	return func(item RecallItem) bool {
		return slices.ContainsFunc(entries, func(e Entry) bool { return e.ConversationID == item.ConversationID && e.Seq == item.Seq })
	}
}

// withQuotes adds the recalls in other conversations that show one of the entries, before them.
func (l *Log) withQuotes(ctx context.Context, said []Entry) ([]Entry, error) {
	quotes, err := l.quotesOf(ctx, owners(said), showsAny(said))
	if err != nil {
		return nil, err
	}
	quotes = slices.DeleteFunc(quotes, func(e Entry) bool { return containsEntry(said, &e) })
	return append(quotes, said...), nil
}

// redactQuotes redacts the recalls in other conversations that show an entry.
func (l *Log) redactQuotes(ctx context.Context, owners []string, shows func(RecallItem) bool) error {
	quotes, err := l.quotesOf(ctx, owners, shows)
	if err == nil && len(quotes) > 0 {
		err = l.redactQuoting(ctx, quotes)
	}
	return err
}

func (l *Log) redactQuoting(ctx context.Context, quotes []Entry) error {
	redacted := make([]Entry, len(quotes))
	for i := range quotes {
		redacted[i] = l.redact(&quotes[i], RedactRequest{Reason: retracted})
	}
	_, err := l.storeRedacted(ctx, redacted)
	return err
}

// settleRecall redacts a recall that was appended while an entry that it shows, or that it was made for, was redacted, deleted or
// given to another user: such a redaction has not found the recall. Known is how the conversation was before the recall was made,
// nil where that is not known.
func (l *Log) settleRecall(ctx context.Context, block *Entry, known *Snapshot) error {
	conversation, err := l.Conversation(ctx, block.ConversationID)
	if err != nil {
		return err
	}
	isSame := known != nil && len(conversation.Lineage) == 0 && known.Conversation.Revision == conversation.Revision
	items := block.Recall.Items
	for _, seq := range block.Recall.For {
		items = append(items[:len(items):len(items)], RecallItem{Seq: seq})
	}
	for _, item := range items {
		if isSame && item.ConversationID == "" {
			continue // nothing of the conversation was redacted
		}
		gone, err := l.isGone(ctx, &conversation, item)
		if err != nil {
			return err
		}
		if gone {
			*block = l.redact(block, RedactRequest{Reason: retracted})
			_, err := l.storeRedacted(ctx, []Entry{*block})
			return err
		}
	}
	return nil
}

// isGone reports whether a conversation may not show an entry again: it is redacted or deleted, or another user's.
func (l *Log) isGone(ctx context.Context, conversation *Conversation, item RecallItem) (bool, error) {
	id := item.ConversationID
	if id == "" {
		id = segmentOf(conversation, item.Seq).id
	} else if source, err := l.Conversation(ctx, id); errors.Is(err, ErrNotFound) || err == nil && mayQuote(*conversation, source) != nil {
		return true, nil
	} else if err != nil {
		return false, err
	}
	found, err := l.store.Entries(ctx, id, EntryQuery{From: item.Seq, To: item.Seq, Limit: 1})
	return err == nil && (len(found) == 0 || found[0].Redacted != nil), err
}

// isForAnother reports whether a recall shows words of another user than a conversation's: the conversation is a fork for
// that one, or was given to it.
func (e *Entry) isForAnother(conversation *Conversation) bool {
	return e.Recall != nil && e.Recall.UserID != conversation.UserID && len(e.Recall.others()) > 0
}

// redactedFor is such a recall as the conversation shows it.
func (l *Log) redactedFor(conversation *Conversation, e *Entry) *Entry {
	shown := l.redact(e, RedactRequest{Reason: "it shows words of another user"})
	shown.Redacted.At = conversation.UpdatedAt // not before the answers to which it was shown
	return &shown
}

// redactForOthers redacts the recalls of a conversation that has another user now, which show words of the one before.
func (l *Log) redactForOthers(ctx context.Context, conversation Conversation) error {
	blocks, err := l.recallsIn(ctx, conversation.ID, func(e *Entry) bool {
		return e.Recall.UserID != conversation.UserID && len(e.Recall.others()) > 0
	})
	if err == nil && len(blocks) > 0 {
		err = l.redactQuoting(ctx, blocks)
	}
	return err
}
