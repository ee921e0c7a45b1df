package maintenance_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/store/storetest"
)

// fixture is a store with its objects and its log.
type fixture struct {
	*testing.T
	store   maintenance.Store
	objects continuo.ObjectStore
	log     *continuo.Log
}

func newFixture(t *testing.T, store maintenance.Store) *fixture {
	p := &fixture{T: t, store: store, objects: storetest.NewObjects()}
	p.log = continuo.NewLog(store, continuo.LogOptions{Objects: p.objects, MaxInlineOutput: 100})
	return p
}

func (p *fixture) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// addConversation makes a conversation with a group, a large output, a receipt and n more entries.
func (p *fixture) addConversation(n int) continuo.Conversation {
	p.Helper()
	conversation, err := p.log.Import(p.Context(), continuo.Conversation{Title: "a talk", Key: p.log.NewID("key")}, []continuo.Entry{
		{Role: continuo.User, Content: continuo.Text("look")},
		{Role: continuo.Assistant, Content: continuo.Null(), ToolCalls: []continuo.ToolCall{continuo.FunctionCall("c1", "f", "{}")}},
		{Role: continuo.Tool, ToolCallID: "c1", Content: continuo.Text(strings.Repeat("a large output\n", 100))},
	})
	p.must(err)
	for i := range n {
		_, err := p.log.Append(p.Context(), conversation.ID, []continuo.Entry{{Role: continuo.User, Content: continuo.Text(fmt.Sprint("more ", i))}}, continuo.AppendOptions{Key: fmt.Sprint("k", i)})
		p.must(err)
	}
	return p.now(conversation.ID)
}

func (p *fixture) now(id string) continuo.Conversation {
	p.Helper()
	conversation, err := p.log.Conversation(p.Context(), id)
	p.must(err)
	return conversation
}

func (p *fixture) fork(id string, at int64) continuo.Conversation {
	p.Helper()
	fork, err := p.log.Fork(p.Context(), id, at, continuo.Conversation{})
	p.must(err)
	_, err = p.log.Append(p.Context(), fork.ID, []continuo.Entry{{Role: continuo.Assistant, Content: continuo.Text("of the fork")}}, continuo.AppendOptions{})
	p.must(err)
	return p.now(fork.ID)
}

// turn runs one and leaves it, ended or running.
func (p *fixture) turn(conversation continuo.Conversation, id string, ended bool) {
	p.Helper()
	begun, err := storetest.BeginTurn(p.Context(), p.store, continuo.Turn{ID: id, ConversationID: conversation.ID, Owner: "o"}, time.Hour)
	p.must(err)
	update := continuo.TurnUpdate{ConversationID: conversation.ID, TurnID: id, Fence: begun.Fence, Events: []continuo.TurnEvent{{ID: 1, Data: []byte(`{"a":1}`)}, {ID: 7, Data: []byte(`{"b":2}`)}}}
	p.must(p.store.SignalTurn(p.Context(), conversation.ID, id, continuo.TurnSignal{Kind: continuo.SignalCancel}))
	if ended {
		update.State = continuo.TurnFinished
	}
	_, err = p.store.UpdateTurn(p.Context(), update)
	p.must(err)
}

// kept is all that is kept of a conversation.
func (p *fixture) kept(id string) []maintenance.Record {
	p.Helper()
	var all []maintenance.Record
	for after := (maintenance.RecordPosition{}); ; {
		page, err := p.store.Records(p.Context(), id, after, 200)
		p.must(err)
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
		after = page[len(page)-1].Position()
	}
}

func (p *fixture) archivist() maintenance.Archivist {
	return maintenance.Archivist{Store: p.store, Objects: p.objects}
}

func TestAnArchivedConversationIsRestoredUnchanged(t *testing.T) {
	p := newFixture(t, storetest.NewMemory())
	parent := p.addConversation(20)
	p.turn(parent, "turn_1", true)
	fork := p.fork(parent.ID, 5)
	for _, conversation := range []continuo.Conversation{fork, parent} {
		before := p.kept(conversation.ID)
		archived, err := p.archivist().Archive(t.Context(), conversation.ID)
		p.must(err)
		if archived.ArchivedAt.IsZero() {
			t.Error("it is not marked as archived")
		}
		if _, err := p.log.Append(t.Context(), conversation.ID, []continuo.Entry{{Role: continuo.User, Content: continuo.Text("x")}}, continuo.AppendOptions{}); !errors.Is(err, continuo.ErrArchived) {
			t.Errorf("an append to it: %v", err)
		}
		if _, err := p.archivist().Archive(t.Context(), conversation.ID); !errors.Is(err, continuo.ErrArchived) {
			t.Errorf("archived twice: %v", err)
		}
		if conversation.ID == parent.ID {
			p.readable(fork) // it begins with entries of the archived one
		}
		_, err = p.archivist().Restore(t.Context(), conversation.ID)
		p.must(err)
		if after := p.kept(conversation.ID); !reflect.DeepEqual(before, after) {
			t.Errorf("before\n%+v\nafter\n%+v", before, after)
		}
		p.readable(conversation)
	}
	for object := range p.objects.Objects(t.Context(), "") {
		if strings.Contains(object.Name, "/archive") {
			t.Errorf("the archive %s is left", object.Name)
		}
	}
}

func (p *fixture) readable(conversation continuo.Conversation) {
	p.Helper()
	read := int64(0)
	for entry, err := range p.log.Read(p.Context(), conversation, continuo.Range{}) {
		p.must(err)
		_, err = p.log.WholeContent(p.Context(), &entry)
		p.must(err)
		read++
	}
	if read != conversation.LastSeq {
		p.Errorf("read %d entries of %d", read, conversation.LastSeq)
	}
}

func TestADamagedArchiveChangesNothing(t *testing.T) {
	p := newFixture(t, storetest.NewMemory())
	conversation := p.addConversation(50)
	archived, err := p.archivist().Archive(t.Context(), conversation.ID)
	p.must(err)
	name := continuo.ObjectName(conversation.ID, maintenance.ArchiveObject(archived.ArchivedAt))
	object, err := p.objects.ReadObject(t.Context(), name, 0, -1)
	p.must(err)
	whole, err := io.ReadAll(object)
	p.must(err)
	marked := p.kept(conversation.ID)
	otherSum := bytes.Clone(whole) // another bit may be one that packs the same text in another way
	otherSum[len(otherSum)-8] ^= 1
	for what, damaged := range map[string]string{
		"empty": "", "no archive": "hello", "cut": string(whole[:len(whole)-40]), "cut in the middle": string(whole[:len(whole)/2]),
		"with another checksum": string(otherSum), "with another word": changedArchive(t, whole, "more 7", "more 8"),
	} {
		p.must(p.objects.PutObject(t.Context(), name, strings.NewReader(damaged)))
		if _, err := p.archivist().Restore(t.Context(), conversation.ID); err == nil {
			t.Errorf("%s: it was restored", what)
		}
		if after := p.kept(conversation.ID); !reflect.DeepEqual(marked, after) {
			t.Errorf("%s: something was changed: %d records", what, len(after))
		}
	}
	p.must(p.objects.DeleteObject(t.Context(), name))
	if _, err := p.archivist().Restore(t.Context(), conversation.ID); !errors.Is(err, continuo.ErrObjectGone) {
		t.Errorf("a missing archive: %v", err)
	}
	p.must(p.objects.PutObject(t.Context(), name, strings.NewReader(string(whole))))
	_, err = p.archivist().Restore(t.Context(), conversation.ID)
	p.must(err)
	p.readable(conversation)
}

// changedArchive is an archive that says something else and is packed as it must be.
func changedArchive(t *testing.T, whole []byte, before, after string) string {
	t.Helper()
	unpacked, err := gzip.NewReader(bytes.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(unpacked)
	if err != nil || !bytes.Contains(text, []byte(before)) {
		t.Fatalf("the archive does not say %q: %v", before, err)
	}
	var changed bytes.Buffer
	packed := gzip.NewWriter(&changed)
	if _, err := packed.Write(bytes.Replace(text, []byte(before), []byte(after), 1)); err != nil {
		t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	return changed.String()
}

// meddler is a store and an object store in which something happens before a page of records is read, or
// after one or an object was put.
type meddler struct {
	maintenance.Store
	continuo.ObjectStore
	beforeRead, afterPut, afterObject func()
}

func once(f *func()) {
	if now := *f; now != nil {
		*f = nil
		now()
	}
}

func (m *meddler) Records(ctx context.Context, id string, after maintenance.RecordPosition, limit int) ([]maintenance.Record, error) {
	once(&m.beforeRead)
	return m.Store.Records(ctx, id, after, limit)
}

func (m *meddler) PutArchived(ctx context.Context, id string, since time.Time, records []maintenance.Record) error {
	err := m.Store.PutArchived(ctx, id, since, records)
	once(&m.afterPut)
	return err
}

func (m *meddler) PutObject(ctx context.Context, name string, data io.Reader) error {
	err := m.ObjectStore.PutObject(ctx, name, data)
	once(&m.afterObject)
	return err
}

// TestTwoArchivingsAtOnceKeepOneWholeArchive has a second one come at the worst moments of the first.
func TestTwoArchivingsAtOnceKeepOneWholeArchive(t *testing.T) {
	other := func(p *fixture, id string) {
		_, err := p.archivist().Archive(t.Context(), id)
		p.must(err)
	}
	for what, test := range map[string]struct {
		meddle func(p *fixture, m *meddler, id string)
		want   error
	}{
		"before the entries are read": {func(p *fixture, m *meddler, id string) { m.beforeRead = func() { other(p, id) } }, continuo.ErrArchived},
		"when they are written":       {func(p *fixture, m *meddler, id string) { m.afterObject = func() { other(p, id) } }, continuo.ErrArchived},
		"while a turn runs, which comes to nothing": {func(p *fixture, m *meddler, id string) {
			m.afterObject = func() {
				begun, err := storetest.BeginTurn(t.Context(), p.store, continuo.Turn{ID: "turn_1", ConversationID: id, Owner: "o"}, time.Hour)
				p.must(err)
				if _, err := p.archivist().Archive(t.Context(), id); !errors.Is(err, continuo.ErrBusy) {
					t.Errorf("archived while a turn runs: %v", err)
				}
				_, err = p.store.UpdateTurn(t.Context(), continuo.TurnUpdate{ConversationID: id, TurnID: "turn_1", Fence: begun.Fence, State: continuo.TurnVoid})
				p.must(err)
			}
		}, nil},
	} {
		t.Run(what, func(t *testing.T) {
			p := newFixture(t, storetest.NewMemory())
			conversation := p.addConversation(20)
			m := &meddler{Store: p.store, ObjectStore: p.objects}
			test.meddle(p, m, conversation.ID)
			if _, err := (maintenance.Archivist{Store: m, Objects: m}).Archive(t.Context(), conversation.ID); !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
			_, err := p.archivist().Restore(t.Context(), conversation.ID)
			p.must(err)
			p.readable(conversation)
			for object := range p.objects.Objects(t.Context(), "") {
				if strings.Contains(object.Name, "/archive") {
					t.Errorf("the archive %s is left", object.Name)
				}
			}
		})
	}
}

// TestASlowRestoreWritesOverNothing restores a conversation that another process restores first, and in which
// a person redacts everything then.
func TestASlowRestoreWritesOverNothing(t *testing.T) {
	p := newFixture(t, storetest.NewMemory())
	conversation := p.addConversation(300)
	_, err := p.archivist().Archive(t.Context(), conversation.ID)
	p.must(err)
	m := &meddler{Store: p.store, afterPut: func() {
		_, err := p.archivist().Restore(t.Context(), conversation.ID)
		p.must(err)
		_, err = p.log.Redact(t.Context(), conversation, 1, 0, "a wish")
		p.must(err)
	}}
	if found, err := (maintenance.Archivist{Store: m, Objects: p.objects}).Restore(t.Context(), conversation.ID); err != nil || !found.ArchivedAt.IsZero() {
		t.Errorf("%+v, %v", found, err)
	}
	for entry, err := range p.log.Read(t.Context(), conversation, continuo.Range{}) {
		p.must(err)
		if entry.Redacted == nil {
			t.Errorf("entry %d says again what was redacted", entry.Seq)
		}
	}
}
