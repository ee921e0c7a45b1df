package maintenance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
)

// walk is the check of one conversation.
type walk struct {
	*Checker
	ctx     context.Context
	checked *Checked
	emit    func(Finding)

	record0     *ConversationRecord
	last        int64 // seq of the newest own entry
	gapReported bool  // a gap in the sequence, or at its end, was reported already
	// unreadable is the newest error of an unreadable record; "" if all can be read.
	unreadable string
	runs       runs // as the entries record them
	group      continuo.Group
	needs      map[string]need // objects, by id
	running    string          // id of the running turn
	fences     map[int64]string
}

// need is an entry that refers to an object.
type need struct {
	seq   int64
	bytes int64
}

// restoreAdvice is how to fix what a program cannot reconstruct.
const restoreAdvice = "restore it from a backup of the store; what is there can be saved with continuo export"

func (w *walk) record(r *Record) error {
	switch {
	case r.Conversation != nil:
		w.record0, w.last = r.Conversation, r.Conversation.ForkSeq
		return w.lineage()
	case w.record0 == nil && w.unreadable != "":
		w.record0 = &ConversationRecord{Conversation: continuo.Conversation{ID: recordOwner(r), LastSeq: math.MaxInt64}}
	case w.record0 == nil:
		w.report(0, BadReference, "it has entries, receipts or turns, but no record of its own", restoreAdvice)
		w.record0 = &ConversationRecord{}
	}
	switch {
	case r.Entry != nil:
		w.checked.Entries++
		if r.Damaged {
			w.report(r.Entry.Seq, Damaged, "the stored entry does not match its checksum", restoreAdvice)
		}
		return w.entry(r.Entry)
	case r.Receipt != nil:
		w.checked.Receipts++
		w.receipt(r.Receipt)
	case r.Turn != nil:
		w.checked.Turns++
		w.turn(&r.Turn.Turn)
	}
	return nil
}

// damaged reports an unreadable record, once if several pages fail for the same reason.
func (w *walk) damaged(err error) {
	if w.gapReported = true; w.unreadable != err.Error() {
		w.unreadable = err.Error()
		w.report(0, Unreadable, w.unreadable, restoreAdvice)
	}
}

// recordOwner is the id of the conversation in a record.
func recordOwner(r *Record) string {
	if r.Entry != nil {
		return r.Entry.ConversationID
	}
	return ""
}

func (w *walk) report(seq int64, kind Kind, what, fix string) {
	w.emit(Finding{Seq: seq, Kind: kind, What: what, Fix: fix})
}

// lineage checks that the entries which the conversation begins with exist.
func (w *walk) lineage() error {
	c := w.record0
	through := int64(0)
	for _, segment := range c.Lineage {
		if segment.Through <= through {
			w.report(0, BadReference, fmt.Sprintf("its lineage goes back from %d to %d", through, segment.Through), restoreAdvice)
		}
		above, err := w.Store.Records(w.ctx, segment.ConversationID, RecordPosition{}, 1)
		if err != nil {
			return err
		}
		if len(above) == 0 || above[0].Conversation == nil || above[0].Conversation.LastSeq < segment.Through {
			w.report(0, BadReference, fmt.Sprintf("it begins with entries up to %d of conversation %s, which are not there", segment.Through, segment.ConversationID), restoreAdvice)
		}
		through = segment.Through
	}
	if through != c.ForkSeq && !c.Deleted { // a deleted one no longer has a lineage
		w.report(0, BadCount, fmt.Sprintf("its fork_seq is %d, and its lineage ends at %d", c.ForkSeq, through), restoreAdvice)
	}
	return nil
}

// entry checks an entry's position, its shape, its references and its counts.
func (w *walk) entry(e *continuo.Entry) error {
	if e.Seq != w.last+1 && !w.gapReported {
		w.report(e.Seq, BadSequence, fmt.Sprintf("entry %d follows entry %d", e.Seq, w.last), restoreAdvice)
		w.gapReported = true
	}
	w.last = e.Seq
	if e.ConversationID != w.record0.ID {
		w.report(e.Seq, BadSequence, fmt.Sprintf("the entry says that it belongs to conversation %s", e.ConversationID), restoreAdvice)
	}
	if err := w.group.Accept(e); err != nil {
		w.report(e.Seq, BadGroup, err.Error(), "fork the conversation before it (continuo conversations fork --at) and continue there")
		w.group = continuo.Group{}
	}
	if e.Output != nil {
		w.needs[e.Output.ID] = need{e.Seq, e.Output.Bytes}
	}
	for _, attachment := range e.Attachments {
		w.needs[attachment.ID] = need{e.Seq, attachment.Bytes}
	}
	w.counts(e)
	w.runs.take(e)
	if e.Round != nil && e.Round.Envelope != "" {
		return w.envelope(e.Seq, e.Round.Envelope)
	}
	return nil
}

// counts counts characters and, with the same tokenizer, tokens again. Those of content outside of the entry are not
// known.
func (w *walk) counts(e *continuo.Entry) {
	const fix = "nothing is lost: budgets are slightly inaccurate; export and import the conversation to count again"
	chars := utf8.RuneCountInString(e.Content.String())
	for _, call := range e.ToolCalls {
		chars += utf8.RuneCountInString(call.Name) + utf8.RuneCountInString(call.Arguments)
	}
	if !e.Content.IsParts() && chars != e.Chars {
		w.report(e.Seq, BadCount, fmt.Sprintf("it has %d characters and says %d", chars, e.Chars), fix)
	}
	if w.Counter == nil || w.Counter.Name() != e.Tokenizer || e.Content.IsParts() {
		return
	}
	if tokens := continuo.Measure(e.Content, e.ToolCalls, w.Counter).Tokens; tokens != e.Tokens {
		w.report(e.Seq, BadCount, fmt.Sprintf("it has %d tokens and says %d", tokens, e.Tokens), fix)
	}
}

// maxBlobs bounds how many envelopes are remembered.
const maxBlobs = 100_000

func (w *walk) envelope(seq int64, hash string) error {
	there, looked := w.blobs[hash]
	if !looked {
		_, err := w.Store.Blob(w.ctx, hash)
		if err != nil && isOfTheStore(w.ctx, err) {
			return err
		}
		if err != nil && !errors.Is(err, continuo.ErrNotFound) {
			w.report(seq, Unreadable, "the envelope "+hash+" of its request: "+err.Error(), restoreAdvice)
			return nil
		}
		if len(w.blobs) >= maxBlobs {
			clear(w.blobs)
		}
		there = err == nil
		w.blobs[hash] = there
	}
	if !there {
		w.report(seq, BadReference, "the envelope "+hash+" of its request is not there", "the conversation can be continued, but this request cannot be rebuilt; "+restoreAdvice)
	}
	return nil
}

func (w *walk) receipt(r *continuo.Receipt) {
	if r.IsMark() {
		return
	}
	if r.First < 1 || r.Last < r.First || r.Last > w.record0.LastSeq {
		w.report(0, BadReference, fmt.Sprintf("the receipt of the key %q names entries %d to %d", r.Key, r.First, r.Last), restoreAdvice)
	}
}

func (w *walk) turn(t *continuo.Turn) {
	if other, taken := w.fences[t.Fence]; taken {
		w.report(0, BadTurn, fmt.Sprintf("turns %s and %s have the same fence %d", other, t.ID, t.Fence), restoreAdvice)
	}
	w.fences[t.Fence] = t.ID
	if t.State != continuo.TurnRunning {
		return
	}
	if w.running != "" {
		w.report(0, BadTurn, fmt.Sprintf("turns %s and %s both run", w.running, t.ID), "restart the programs that use the store: the first one that looks closes them")
	}
	w.running = t.ID
}

// end performs the checks that need all records.
func (w *walk) end() error {
	c := w.record0
	if !c.ArchivedAt.IsZero() {
		return w.archive()
	}
	if c.LastSeq == w.last {
		return nil
	}
	now, err := w.Store.Conversation(w.ctx, c.ID) // it may have grown in the meantime
	switch {
	case errors.Is(err, continuo.ErrNotFound) && !c.Deleted:
		return nil
	case err != nil && !errors.Is(err, continuo.ErrNotFound):
		return err
	case err == nil && now.LastSeq != c.LastSeq && w.last <= now.LastSeq && w.last >= c.LastSeq:
		return nil
	}
	w.gapReported = true
	w.report(0, BadCount, fmt.Sprintf("its last_seq is %d, and its newest entry is %d", c.LastSeq, w.last), restoreAdvice)
	return nil
}

// archive checks that an archived conversation can be restored.
func (w *walk) archive() error {
	if w.Objects == nil {
		return nil
	}
	w.needs[ArchiveObject(w.record0.ArchivedAt)] = need{bytes: -1}
	err := Archivist{Store: w.Store, Objects: w.Objects}.verify(w.ctx, w.record0.Conversation)
	if err != nil && w.ctx.Err() == nil {
		w.report(0, BadReference, "it is archived, and its archive cannot be read: "+err.Error(), "put the object back from a backup of the object store")
		return nil
	}
	return err
}

// objects compares the entries' references with the existing objects.
func (w *walk) objects() error {
	if w.Objects == nil {
		return nil
	}
	for object, err := range w.Objects.Objects(w.ctx, continuo.ObjectName(w.record0.ID, "")) {
		if err != nil {
			return fmt.Errorf("list objects: %w", err)
		}
		w.checked.Objects++
		_, id := cutName(object.Name)
		need, named := w.needs[id]
		delete(w.needs, id)
		switch {
		case named && need.bytes >= 0 && need.bytes != object.Size:
			w.report(need.seq, BadReference, fmt.Sprintf("the object %s has %d bytes and should have %d", object.Name, object.Size, need.bytes), "put the object back from a backup of the object store")
		case named || !w.record0.ArchivedAt.IsZero() && !IsArchiveObject(id): // the references of an archived conversation are in its archive
		case w.Now().Sub(object.ModifiedAt) >= w.Loose:
			w.loose(object, w.record0.ID)
		}
	}
	for id, need := range w.needs {
		if IsArchiveObject(id) {
			continue // reported already
		}
		w.missing++
		w.report(need.seq, BadReference, "the object "+continuo.ObjectName(w.record0.ID, id)+" is missing; requests have a line of text instead", "put it back from a backup of the object store")
	}
	return nil
}

// index checks that the index of text is not ahead of the log.
func (w *walk) index() error {
	unindexed, err := w.Store.Unindexed(w.ctx, index.UnindexedQuery{ConversationID: w.record0.ID, Limit: 1})
	if err != nil || len(unindexed) == 0 || unindexed[0].Indexed <= unindexed[0].Conversation.LastSeq {
		return err
	}
	finding := Finding{
		Kind: BadIndex, What: fmt.Sprintf("the index has terms of entries up to %d, and the newest entry is %d", unindexed[0].Indexed, unindexed[0].Conversation.LastSeq),
		Fix: "rebuild it: continuo store check --repair",
	}
	if w.Repair {
		if err := w.Store.ForgetIndex(w.ctx, w.record0.ID); err != nil {
			return err
		}
		finding.Repaired = true
	}
	w.emit(finding)
	return nil
}

func cutName(name string) (conversationID, id string) {
	conversationID, id, _ = strings.Cut(name, "/")
	return conversationID, id
}
