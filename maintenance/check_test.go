package maintenance_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/token"
)

// checks runs a check and returns the kinds of what it finds.
func (p *fixture) checks(change ...func(*maintenance.Checker)) (kinds []maintenance.Kind, found []maintenance.Finding) {
	p.Helper()
	checker := &maintenance.Checker{Store: p.store, Objects: p.objects, Counter: token.O200k(), Now: func() time.Time { return time.Now().Add(48 * time.Hour) }}
	for _, c := range change {
		c(checker)
	}
	_, err := checker.Check(p.Context(), func(f maintenance.Finding) { found = append(found, f) })
	p.must(err)
	for _, f := range found {
		kinds = append(kinds, f.Kind)
		if f.What == "" || f.Fix == "" {
			p.Errorf("a finding without words: %+v", f)
		}
	}
	return kinds, found
}

func TestASoundStoreHasNoFindings(t *testing.T) {
	for name, store := range map[string]maintenance.Store{"memory": storetest.NewMemory(), "file": openFile(t)} {
		p := furnished(t, store)
		// A mark is a position, and need not name entries.
		_, err := p.log.AdvanceMark(t.Context(), p.addConversation(1).ID, "reader", continuo.Mark{Seq: 1 << 40})
		p.must(err)
		if _, found := p.checks(); len(found) > 0 {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// bent is a store that shows records other than they are.
type bent struct {
	maintenance.Store
	bend func(records []maintenance.Record) []maintenance.Record
}

func (b bent) Records(ctx context.Context, id string, after maintenance.RecordPosition, limit int) ([]maintenance.Record, error) {
	records, err := b.Store.Records(ctx, id, after, limit)
	return b.bend(records), err
}

// TestErrorsOfAStoreAreFound bends one thing at a time.
func TestErrorsOfAStoreAreFound(t *testing.T) {
	entry := func(seq int64, change func(*continuo.Entry)) func([]maintenance.Record) []maintenance.Record {
		return func(records []maintenance.Record) []maintenance.Record {
			for i := range records {
				if e := records[i].Entry; e != nil && e.Seq == seq {
					changed := *e
					change(&changed)
					records[i].Entry = &changed
				}
			}
			return records
		}
	}
	without := func(gone func(maintenance.Record) bool) func([]maintenance.Record) []maintenance.Record {
		return func(records []maintenance.Record) []maintenance.Record { return slices.DeleteFunc(records, gone) }
	}
	cases := map[string]struct {
		bend func([]maintenance.Record) []maintenance.Record
		want maintenance.Kind
	}{
		"a gap":         {without(func(r maintenance.Record) bool { return r.Entry != nil && r.Entry.Seq == 4 }), maintenance.BadSequence},
		"a lost result": {without(func(r maintenance.Record) bool { return r.Entry != nil && r.Entry.Seq == 3 }), maintenance.BadGroup},
		"a lost end":    {without(func(r maintenance.Record) bool { return r.Entry != nil && r.Entry.Seq > 4 }), maintenance.BadCount},
		"a stranger":    {entry(1, func(e *continuo.Entry) { e.ConversationID = "conv_x" }), maintenance.BadSequence},
		"another call":  {entry(3, func(e *continuo.Entry) { e.ToolCallID = "c9" }), maintenance.BadGroup},
		"characters":    {entry(1, func(e *continuo.Entry) { e.Chars++ }), maintenance.BadCount},
		"tokens": {entry(1, func(e *continuo.Entry) {
			e.Tokens, e.Tokenizer = e.Tokens+100, token.O200k().Name()
		}), maintenance.BadCount},
		"an envelope": {entry(4, func(e *continuo.Entry) { e.Round = &continuo.Round{Envelope: "none"} }), maintenance.BadReference},
		"an object":   {entry(3, func(e *continuo.Entry) { o := *e.Output; o.ID = "out_x"; e.Output = &o }), maintenance.BadReference},
		"its size":    {entry(3, func(e *continuo.Entry) { o := *e.Output; o.Bytes++; e.Output = &o }), maintenance.BadReference},
		"a receipt": {func(records []maintenance.Record) []maintenance.Record {
			for i := range records {
				if records[i].Receipt != nil {
					records[i].Receipt = &continuo.Receipt{Key: records[i].Receipt.Key, First: 1, Last: 99}
				}
			}
			return records
		}, maintenance.BadReference},
		"two turns": {func(records []maintenance.Record) []maintenance.Record {
			for i := range records {
				if records[i].Turn != nil {
					turn := *records[i].Turn
					turn.State, turn.Fence = continuo.TurnRunning, 7
					records[i].Turn = &turn
				}
			}
			return records
		}, maintenance.BadTurn},
		"a lineage": {func(records []maintenance.Record) []maintenance.Record {
			for i := range records {
				if records[i].Conversation != nil {
					bent := *records[i].Conversation
					bent.Lineage = []continuo.Segment{{ConversationID: "conv_x", Through: 3}}
					records[i].Conversation = &bent
				}
			}
			return records
		}, maintenance.BadReference},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := newFixture(t, storetest.NewMemory())
			conversation := p.addConversation(3)
			p.turn(conversation, "turn_1", true)
			p.turn(conversation, "turn_2", true)
			p.store = bent{p.store, c.bend}
			if kinds, found := p.checks(); !slices.Contains(kinds, c.want) {
				t.Errorf("found %+v, want one of %s", found, c.want)
			}
		})
	}
}

func TestObjectsThatNothingNamesAreRepaired(t *testing.T) {
	p := newFixture(t, storetest.NewMemory())
	conversation := p.addConversation(1)
	archived := p.addConversation(1)
	_, err := p.archivist().Archive(t.Context(), archived.ID)
	p.must(err)
	for _, name := range []string{continuo.ObjectName(conversation.ID, "out_lost"), continuo.ObjectName("conv_gone", "out_lost")} {
		p.must(p.objects.PutObject(t.Context(), name, strings.NewReader("x")))
	}
	young := func(c *maintenance.Checker) { c.Now = time.Now }
	if _, found := p.checks(young); len(found) > 0 {
		t.Errorf("objects that were just written are told: %+v", found)
	}
	if kinds, found := p.checks(); !slices.Equal(kinds, []maintenance.Kind{maintenance.LooseObject, maintenance.LooseObject}) || found[0].Repaired {
		t.Errorf("found %+v", found)
	}
	if kinds, found := p.checks(func(c *maintenance.Checker) { c.Repair = true }); len(kinds) != 2 || !found[0].Repaired || !found[1].Repaired {
		t.Errorf("repaired %+v", found)
	}
	if _, found := p.checks(); len(found) > 0 {
		t.Errorf("after the repair: %+v", found)
	}
	p.readable(conversation)
	_, err = p.archivist().Restore(t.Context(), archived.ID)
	p.must(err)
	p.readable(archived)
}

// TestNothingIsRemovedWhereNamedObjectsAreMissing: it may be the wrong object store.
func TestNothingIsRemovedWhereNamedObjectsAreMissing(t *testing.T) {
	p, other := newFixture(t, storetest.NewMemory()), newFixture(t, storetest.NewMemory())
	p.addConversation(1)
	theirs := other.addConversation(1)
	p.objects = other.objects
	kinds, found := p.checks(func(c *maintenance.Checker) { c.Repair = true })
	if !slices.Equal(kinds, []maintenance.Kind{maintenance.BadReference, maintenance.LooseObject}) || found[1].Repaired {
		t.Errorf("found %+v", found)
	}
	other.readable(theirs)
}

// broken is a store that cannot decode the records of one conversation.
type broken struct {
	maintenance.Store
	id string
}

func (b broken) Records(ctx context.Context, id string, after maintenance.RecordPosition, limit int) ([]maintenance.Record, error) {
	if id == b.id && after != (maintenance.RecordPosition{}) {
		return nil, errors.New("entry: invalid character")
	}
	return b.Store.Records(ctx, id, after, min(limit, 2))
}

func TestARowThatCannotBeReadIsOneFinding(t *testing.T) {
	p := newFixture(t, storetest.NewMemory())
	damaged := p.addConversation(1)
	p.addConversation(1)
	p.store = broken{p.store, damaged.ID}
	if kinds, found := p.checks(); !slices.Contains(kinds, maintenance.Unreadable) || found[0].ConversationID != damaged.ID {
		t.Errorf("found %+v", found)
	}
	checker := &maintenance.Checker{Store: p.store}
	if checked, err := checker.Check(t.Context(), func(maintenance.Finding) {}); err != nil || checked.Conversations != 2 {
		t.Errorf("%+v, %v", checked, err)
	}
}

func TestALostArchiveIsFound(t *testing.T) {
	p := newFixture(t, storetest.NewMemory())
	conversation := p.addConversation(1)
	_, err := p.archivist().Archive(t.Context(), conversation.ID)
	p.must(err)
	p.must(p.objects.DeleteObject(t.Context(), continuo.ObjectName(conversation.ID, maintenance.ArchiveObject(p.now(conversation.ID).ArchivedAt))))
	if kinds, found := p.checks(); !slices.Equal(kinds, []maintenance.Kind{maintenance.BadReference}) {
		t.Errorf("found %+v", found)
	}
}
