package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	_ "github.com/continuo-log/continuo/internal/rapidseed" // the same values in every run
	"github.com/continuo-log/continuo/maintenance"
	"pgregory.net/rapid"
)

// testModel runs random operations on an engine and on the store in memory, and expects the same
// answers of both. All runs share one database, each in a project of its own.
func testModel(t *testing.T, opener Opener) {
	fewerRuns(t)
	engine := opener(t)
	defer func() { closeStore(t, engine) }()
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		m := &model{engine: engine, reference: NewMemory(), project: fmt.Sprint("run", run), archives: map[string][]maintenance.Record{}}
		rt.Repeat(map[string]func(*rapid.T){
			"create":  m.create,
			"append":  m.append,
			"update":  m.update,
			"advance": m.advance,
			"fork":    m.fork,
			"delete":  m.delete,
			"read":    m.read,
			"entries": m.places,
			"prefix":  m.prefixes,
			"list":    m.list,
			"blob":    m.blob,
			"take":    m.take,
			"turn":    m.turn,
			"signal":  m.signal,
			"turns":   m.turns,
			"runs":    m.runs,

			"redact":   m.redact,
			"archive":  m.archive,
			"restore":  m.restore,
			"records":  m.records,
			"discards": m.discards,
			"index":    m.index,
			"forget":   m.forget,
			"places":   m.searchHits,
			"reopen": func(rt *rapid.T) {
				if rapid.IntRange(0, 9).Draw(rt, "not now") > 0 {
					rt.Skip("this takes long")
				}
				closeStore(t, engine)
				engine = opener(t)
				m.engine = engine
			},
			"": m.check,
		})
	})
}

// fewerRuns keeps the suite short, unless CONTINUO_LONG or a flag requests more runs.
func fewerRuns(t *testing.T) {
	t.Helper()
	checks := flag.Lookup("rapid.checks")
	if os.Getenv("CONTINUO_LONG") != "" || checks == nil || checks.Value.String() != checks.DefValue {
		return
	}
	noError(t, flag.Set(checks.Name, "40"))
	t.Cleanup(func() { noError(t, flag.Set(checks.Name, checks.DefValue)) })
}

type model struct {
	engine, reference maintenance.Store
	project           string
	made              []continuo.Conversation // all that were ever made, with their original lineage
	clock             int
	archives          map[string][]maintenance.Record // the records archived from each conversation
	added             int                             // documents, each a second after the one before
}

// both runs an operation on the engine and on the reference.
func both[T any](rt *rapid.T, m *model, what string, operation func(maintenance.Store) (T, error)) (T, error) {
	rt.Helper()
	got, gotErr := operation(m.engine)
	want, wantErr := operation(m.reference)
	if verdict(gotErr) != verdict(wantErr) {
		rt.Fatalf("%s: got %v, want %v", what, gotErr, wantErr)
	}
	if !reflect.DeepEqual(unrevised(got), unrevised(want)) {
		rt.Fatalf("%s: got\n\t%+v\nwant\n\t%+v", what, got, want)
	}
	return want, wantErr
}

// unrevised returns an answer without revisions: an engine chooses those of records that are put back by its clock.
func unrevised(answer any) any {
	switch answer := answer.(type) {
	case map[string]index.Unindexed:
		answer = maps.Clone(answer)
		for id, u := range answer {
			u.Conversation.Revision = 0
			answer[id] = u
		}
		return answer
	case continuo.Conversation:
		answer.Revision = 0
		return answer
	case []continuo.Conversation:
		answer = slices.Clone(answer)
		for i := range answer {
			answer[i].Revision = 0
		}
		return answer
	}
	return answer
}

// verdict reduces an error to what callers distinguish.
func verdict(err error) string {
	var conflict *continuo.ConflictError
	var busy *continuo.BusyError
	var large *continuo.LargeEntryError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &large):
		return large.Error()
	case errors.As(err, &conflict):
		return conflict.Error()
	case errors.Is(err, continuo.ErrNotFound):
		return "not found"
	case errors.Is(err, continuo.ErrExists):
		return "exists"
	case errors.Is(err, continuo.ErrInvalid):
		return "invalid"
	case errors.Is(err, continuo.ErrArchived):
		return "archived"
	case errors.Is(err, continuo.ErrLeaseLost):
		return "lease lost"
	case errors.Is(err, continuo.ErrNotRunning):
		return "not running"
	case errors.As(err, &busy):
		return "busy with " + busy.Turn.ID
	}
	return "other: " + err.Error()
}

func (m *model) pick(rt *rapid.T) continuo.Conversation {
	if len(m.made) == 0 {
		rt.Skip("there is no conversation yet")
	}
	return rapid.SampledFrom(m.made).Draw(rt, "conversation")
}

func (m *model) create(rt *rapid.T) {
	c := continuo.Conversation{
		ID: fmt.Sprintf("%s_c%d", m.project, len(m.made)), ProjectID: m.project, ActiveMode: continuo.ModeChat,
		Key: rapid.SampledFrom([]string{"", "", "k1", "k2"}).Draw(rt, "key"), Kind: m.kind(rt), CreatedAt: day, UpdatedAt: m.time(rt),
	}
	c.LastSeq = rapid.Int64Range(0, 3).Draw(rt, "entries")
	m.add(rt, c, entries(c.ID, 1, c.LastSeq))
}

// kind returns mostly the kind of users' conversations.
func (m *model) kind(rt *rapid.T) continuo.Kind {
	return rapid.SampledFrom([]continuo.Kind{continuo.KindUser, continuo.KindUser, continuo.KindTask}).Draw(rt, "kind")
}

func (m *model) add(rt *rapid.T, c continuo.Conversation, first []continuo.Entry) {
	_, err := both(rt, m, "create", func(s maintenance.Store) (any, error) { return nil, s.Create(context.Background(), c, first) })
	if err == nil {
		m.made = append(m.made, c)
	}
}

// time returns times that are often equal, and sometimes go back.
func (m *model) time(rt *rapid.T) time.Time {
	m.clock += rapid.IntRange(-1, 2).Draw(rt, "seconds")
	return at(m.clock)
}

// fork branches off at some seq, as continuo.Log does.
func (m *model) fork(rt *rapid.T) {
	parent, err := m.engine.Conversation(context.Background(), m.pick(rt).ID)
	if err != nil {
		rt.Skip("the parent is deleted")
	}
	c := continuo.Conversation{
		ID: fmt.Sprintf("%s_c%d", m.project, len(m.made)), ProjectID: m.project, ActiveMode: continuo.ModeChat,
		ParentID: parent.ID, ForkSeq: rapid.Int64Range(0, parent.LastSeq).Draw(rt, "fork seq"), CreatedAt: day, UpdatedAt: m.time(rt),
	}
	c.LastSeq = c.ForkSeq
	for _, segment := range append(slices.Clip(parent.Lineage), continuo.Segment{ConversationID: parent.ID, Through: parent.LastSeq}) {
		segment.Through = min(segment.Through, c.ForkSeq)
		c.Lineage = append(c.Lineage, segment)
		if segment.Through == c.ForkSeq {
			break
		}
	}
	m.add(rt, c, nil)
}

func (m *model) append(rt *rapid.T) {
	c := m.pick(rt)
	batch := continuo.Batch{ConversationID: c.ID, After: rapid.Int64Range(0, 12).Draw(rt, "after, when wrong")}
	if now, err := m.reference.Conversation(context.Background(), c.ID); err == nil && rapid.IntRange(0, 4).Draw(rt, "right place") > 0 {
		batch.After = now.LastSeq
	}
	batch.Entries = entries(c.ID, batch.After+1, batch.After+rapid.Int64Range(1, 4).Draw(rt, "entries"))
	for i := range batch.Entries {
		batch.Entries[i].CreatedAt = m.time(rt)
		batch.Entries[i].Hidden = rapid.Bool().Draw(rt, "hidden")
		if rapid.IntRange(0, 2).Draw(rt, "output?") == 0 {
			batch.Entries[i] = withObject(batch.Entries[i], rapid.SampledFrom([]string{"o1", "o2"}).Draw(rt, "object"))
		}
	}
	m.drawRunEvents(rt, &batch)
	if key := rapid.SampledFrom([]string{"", "", "r1", "r2"}).Draw(rt, "receipt"); key != "" {
		batch.Receipts = []continuo.Receipt{{Key: key, Fingerprint: "f", First: batch.After + 1, Last: batch.After + 1}}
		_, _ = both(rt, m, "receipt", func(s maintenance.Store) (continuo.Receipt, error) { return s.Receipt(context.Background(), c.ID, key) })
		if _, err := m.reference.Receipt(context.Background(), c.ID, key); err == nil {
			batch.Receipts = nil // engines may use any error for this refusal
		}
	}
	batch.Prefixes = m.drawPrefixes(rt, batch)
	if rapid.IntRange(0, 2).Draw(rt, "begins a turn") == 0 {
		m.begin(rt, &batch)
	} else {
		for range rapid.IntRange(0, 2).Draw(rt, "updates of turns") {
			batch.Turns = append(batch.Turns, m.turnUpdate(rt, c.ID))
		}
	}
	_, _ = both(rt, m, "append", func(s maintenance.Store) (continuo.Turn, error) { return appendTo(s, batch) })
}

func (m *model) advance(rt *rapid.T) {
	c := m.pick(rt)
	receipt := continuo.Receipt{
		Key: rapid.SampledFrom([]string{"m1", "r1"}).Draw(rt, "receipt"), Fingerprint: rapid.SampledFrom([]string{"f", "m"}).Draw(rt, "fingerprint"),
		First: rapid.Int64Range(0, 3).Draw(rt, "first"), Last: rapid.Int64Range(0, 3).Draw(rt, "last"),
	}
	_, _ = both(rt, m, "advance a receipt", func(s maintenance.Store) (continuo.Receipt, error) {
		return s.AdvanceReceipt(context.Background(), c.ID, receipt)
	})
}

func (m *model) update(rt *rapid.T) {
	c := m.pick(rt)
	change := continuo.ConversationChange{UpdatedAt: m.time(rt)}
	if rapid.Bool().Draw(rt, "title?") {
		title := rapid.String().Filter(func(s string) bool { return !strings.Contains(s, "\x00") }).Draw(rt, "title")
		change.Title = &title
	}
	if rapid.Bool().Draw(rt, "agent?") {
		agent := rapid.SampledFrom([]string{"", "one", "two"}).Draw(rt, "agent")
		change.ActiveAgent = &agent
	}
	if rapid.Bool().Draw(rt, "metadata?") {
		change.Metadata = json.RawMessage(rapid.SampledFrom([]string{`{}`, `{"b":1.0,"a":2}`, `{"a":"2","b":[1.0]}`}).Draw(rt, "metadata"))
	}
	if rapid.Bool().Draw(rt, "key?") {
		key := rapid.SampledFrom([]string{"", "k1", "k2"}).Draw(rt, "key")
		change.Key = &key
	}
	if rapid.Bool().Draw(rt, "user?") {
		change.UserID = m.user(rt)
	}
	if rapid.Bool().Draw(rt, "claim?") {
		change.Claim = m.user(rt)
	}
	_, _ = both(rt, m, "update", func(s maintenance.Store) (continuo.Conversation, error) {
		return s.Update(context.Background(), c.ID, change)
	})
}

func (m *model) user(rt *rapid.T) *string {
	user := rapid.SampledFrom([]string{"", "ada", "bob"}).Draw(rt, "user")
	return &user
}

func (m *model) delete(rt *rapid.T) {
	c := m.pick(rt)
	_, _ = both(rt, m, "delete", func(s maintenance.Store) (any, error) { return nil, s.Delete(context.Background(), c.ID) })
}

func (m *model) read(rt *rapid.T) {
	c := m.pick(rt)
	now, err := m.reference.Conversation(context.Background(), c.ID)
	if err != nil {
		rt.Skip("it is deleted")
	}
	query := continuo.EntryQuery{
		From: rapid.Int64Range(0, 12).Draw(rt, "from"), To: rapid.Int64Range(0, 14).Draw(rt, "to"),
		Backward: rapid.Bool().Draw(rt, "backward"), Limit: rapid.IntRange(1, 9).Draw(rt, "limit"),
		MaxBytes: rapid.SampledFrom([]int64{0, 0, 1, 400, 1000, 4000}).Draw(rt, "bytes"),
	}
	switch rapid.IntRange(0, 3).Draw(rt, "kind") {
	case 0:
		query.UsersOnly = true
	case 1:
		query.OutputRef = outputRef(rapid.Int64Range(1, 12).Draw(rt, "ref"))
	}
	_, _ = both(rt, m, "entries", func(s maintenance.Store) ([]continuo.Entry, error) { return entriesOf(s, now.ID, query) })
}

// places reads entries of several conversations.
func (m *model) places(rt *rapid.T) {
	places := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) continuo.EntryPlace {
		return continuo.EntryPlace{ConversationID: m.pick(rt).ID, Seq: rapid.Int64Range(-1, 12).Draw(rt, "seq")}
	}), 0, 9).Draw(rt, "places")
	most := rapid.SampledFrom([]int64{1, 400, 1000, 4000, 1 << 40}).Draw(rt, "bytes")
	_, _ = both(rt, m, "entries at", func(s maintenance.Store) ([]continuo.Entry, error) {
		found, err := s.EntriesAt(context.Background(), places, most)
		return append([]continuo.Entry{}, found...), err
	})
	_, _ = both(rt, m, "conversations by id", func(s maintenance.Store) ([]continuo.Conversation, error) {
		var ids []string
		for _, place := range places {
			ids = append(ids, place.ConversationID)
		}
		found, err := s.ConversationsByID(context.Background(), ids)
		slices.SortFunc(found, func(a, b continuo.Conversation) int { return strings.Compare(a.ID, b.ID) })
		return append([]continuo.Conversation{}, found...), err
	})
}

// entriesOf treats nil and empty as equal.
func entriesOf(s maintenance.Store, id string, query continuo.EntryQuery) ([]continuo.Entry, error) {
	found, err := s.Entries(context.Background(), id, query)
	return append([]continuo.Entry{}, found...), err
}

func (m *model) list(rt *rapid.T) {
	query := continuo.ConversationQuery{ProjectID: m.project, Kind: m.kind(rt), Archived: rapid.Bool().Draw(rt, "archived"), Limit: rapid.IntRange(1, 4).Draw(rt, "limit")}
	query.UserID = *m.user(rt)
	if rapid.Bool().Draw(rt, "label?") {
		query.Labels = map[string]string{"a": "2"}
	}
	for {
		page, err := both(rt, m, "list", func(s maintenance.Store) ([]continuo.Conversation, error) {
			found, err := s.Conversations(context.Background(), query)
			return append([]continuo.Conversation{}, found...), err
		})
		if err != nil || len(page) < query.Limit {
			return
		}
		last := page[len(page)-1]
		query.Before = continuo.ConversationCursor{UpdatedAt: last.UpdatedAt, ID: last.ID}
	}
}

func (m *model) blob(rt *rapid.T) {
	hash := m.project + rapid.SampledFrom([]string{"h1", "h2"}).Draw(rt, "hash")
	_, _ = both(rt, m, "blob", func(s maintenance.Store) (string, error) {
		data, err := s.Blob(context.Background(), hash)
		return string(data), err
	})
	data := rapid.SliceOf(rapid.Byte()).Draw(rt, "data")
	_, _ = both(rt, m, "put blob", func(s maintenance.Store) (any, error) { return nil, s.PutBlob(context.Background(), hash, data) })
}

// check compares one whole conversation, and those that it begins with.
func (m *model) check(rt *rapid.T) {
	if len(m.made) == 0 || rapid.IntRange(0, 2).Draw(rt, "not each time") > 0 {
		return
	}
	c := m.made[rapid.IntRange(0, len(m.made)-1).Draw(rt, "checked")]
	now, err := both(rt, m, "conversation", func(s maintenance.Store) (continuo.Conversation, error) {
		return s.Conversation(context.Background(), c.ID)
	})
	if err != nil {
		return
	}
	from := int64(1)
	for _, segment := range append(slices.Clip(now.Lineage), continuo.Segment{ConversationID: now.ID, Through: now.LastSeq}) {
		_, _ = both(rt, m, "entries of "+segment.ConversationID, func(s maintenance.Store) ([]continuo.Entry, error) {
			return entriesOf(s, segment.ConversationID, continuo.EntryQuery{From: from, To: segment.Through, Limit: 1000})
		})
		from = segment.Through + 1
	}
}
