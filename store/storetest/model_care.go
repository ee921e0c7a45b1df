package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/maintenance"
	"pgregory.net/rapid"
)

// Redactions, archives, records and the index in the test of random operations.

func (m *model) redact(rt *rapid.T) {
	id := m.pick(rt).ID
	found, err := m.reference.Records(context.Background(), id, maintenance.RecordPosition{}, 1000)
	if err != nil {
		rt.Fatal(err)
	}
	var chosen []continuo.Entry
	for _, r := range found {
		if r.Entry != nil && rapid.IntRange(0, 3).Draw(rt, "chosen") == 0 {
			e := redacted(*r.Entry)
			if rapid.IntRange(0, 2).Draw(rt, "output?") == 0 {
				e = withObject(e, rapid.SampledFrom([]string{"o1", "o2"}).Draw(rt, "object"))
			}
			if rapid.IntRange(0, 9).Draw(rt, "another id") == 0 {
				e.ID = "another"
			}
			chosen = append(chosen, e)
		}
	}
	_, _ = both(rt, m, "redact", func(s maintenance.Store) (any, error) { return nil, s.Redact(context.Background(), id, chosen) })
}

func (m *model) archive(rt *rapid.T) {
	id, ctx := m.pick(rt).ID, context.Background()
	whole, err := m.reference.Records(ctx, id, maintenance.RecordPosition{}, 1000)
	if err != nil {
		rt.Fatal(err)
	}
	when := m.time(rt)
	seen, err := m.reference.Conversation(ctx, id)
	if seen.ID = id; err != nil || rapid.IntRange(0, 4).Draw(rt, "right seq") == 0 {
		seen.LastSeq = rapid.Int64Range(0, 12).Draw(rt, "last seq, when wrong")
	}
	if _, err := both(rt, m, "archive", func(s maintenance.Store) (any, error) { return nil, s.Archive(ctx, seen, when) }); err == nil {
		m.archives[id] = whole[1:]
	}
}

// restore first tries without the last records.
func (m *model) restore(rt *rapid.T) {
	id, ctx := m.pick(rt).ID, context.Background()
	whole := m.archives[id]
	restore := func() error {
		_, err := both(rt, m, "restore", func(s maintenance.Store) (any, error) { return nil, s.Restore(ctx, id) })
		return err
	}
	if restore() == nil || len(whole) == 0 {
		return
	}
	if now, err := m.reference.Conversation(ctx, id); err != nil || now.ArchivedAt.IsZero() {
		return
	}
	cut := rapid.IntRange(0, len(whole)).Draw(rt, "records that come first")
	for _, part := range [][]maintenance.Record{whole[:cut], whole[cut:]} {
		_, _ = both(rt, m, "put records", func(s maintenance.Store) (any, error) { return nil, s.PutRecords(ctx, id, part) })
		_ = restore()
	}
}

// records compares all records of a conversation.
func (m *model) records(rt *rapid.T) {
	id, limit := m.pick(rt).ID, rapid.IntRange(1, 5).Draw(rt, "limit")
	_, _ = both(rt, m, "records", func(s maintenance.Store) (string, error) {
		all, after := []maintenance.Record{}, maintenance.RecordPosition{}
		for {
			page, err := s.Records(context.Background(), id, after, limit)
			if err != nil || len(page) == 0 {
				text, marshalErr := json.Marshal(all)
				return string(text), errors.Join(err, marshalErr)
			}
			for i := range page {
				if page[i].Turn != nil {
					page[i].Turn.Turn = timeless(page[i].Turn.Turn)
				}
			}
			all, after = append(all, page...), page[len(page)-1].Position()
		}
	})
}

func (m *model) discards(rt *rapid.T) {
	found, _ := both(rt, m, "discards", func(s maintenance.Store) ([]string, error) {
		names, err := s.Discards(context.Background(), 1<<20)
		names = slices.DeleteFunc(append([]string{}, names...), func(name string) bool { return !strings.HasPrefix(name, m.project+"_") })
		// Names of a completely removed conversation may stay or not.
		names = slices.DeleteFunc(names, func(name string) bool {
			id, object, _ := strings.Cut(name, "/")
			return object != "" && slices.Contains(names, id+"/")
		})
		slices.Sort(names)
		return names, err
	})
	if len(found) > 0 {
		done := found[:rapid.IntRange(0, len(found)).Draw(rt, "removed")]
		_, _ = both(rt, m, "discarded", func(s maintenance.Store) (any, error) { return nil, s.Discarded(context.Background(), done) })
	}
}

var modelTerms = []string{"apple", "apples", "pear", "数", "数据"}

func terms(rt *rapid.T) []string {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(modelTerms), 1, 4, rapid.ID).Draw(rt, "terms")
}

func (m *model) index(rt *rapid.T) {
	c := m.pick(rt)
	batch := index.Batch{ConversationID: c.ID, After: rapid.Int64Range(0, 12).Draw(rt, "after, when wrong")}
	found, err := m.reference.Unindexed(context.Background(), index.UnindexedQuery{ConversationID: c.ID, Limit: 1})
	if err != nil {
		rt.Fatal(err)
	}
	batch.Through = batch.After
	if len(found) > 0 && rapid.IntRange(0, 4).Draw(rt, "right place") > 0 {
		batch.After = found[0].Indexed
		batch.Through = rapid.Int64Range(batch.After, found[0].Conversation.LastSeq).Draw(rt, "through")
		if rapid.Bool().Draw(rt, "title?") {
			batch.Title = &found[0].Conversation.Title
		}
	}
	document := func(seq int64) {
		m.added++
		batch.Documents = append(batch.Documents, index.Document{Seq: seq, Added: at(m.added).UnixNano(), Terms: terms(rt)})
	}
	if batch.Title != nil && rapid.Bool().Draw(rt, "a title of words") {
		document(0)
	}
	for seq := batch.After + 1; seq <= batch.Through; seq++ {
		if rapid.IntRange(0, 3).Draw(rt, "has words") > 0 {
			document(seq)
		}
	}
	_, _ = both(rt, m, "index", func(s maintenance.Store) (any, error) { return nil, s.Index(context.Background(), batch) })
}

func (m *model) forget(rt *rapid.T) {
	id := m.pick(rt).ID
	_, _ = both(rt, m, "forget index", func(s maintenance.Store) (any, error) { return nil, s.ForgetIndex(context.Background(), id) })
}

func (m *model) searchHits(rt *rapid.T) {
	query := index.HitQuery{ProjectID: m.project, Limit: rapid.IntRange(1, 5).Draw(rt, "limit")}
	for _, text := range terms(rt)[:1] {
		query.Terms = append(query.Terms, index.Term{Text: text, Prefix: rapid.Bool().Draw(rt, "prefix")})
	}
	if rapid.Bool().Draw(rt, "two terms") {
		query.Terms = append(query.Terms, index.Term{Text: terms(rt)[0]})
	}
	if rapid.Bool().Draw(rt, "in one") {
		query.ConversationID = m.pick(rt).ID
		query.From, query.To = rapid.Int64Range(0, 6).Draw(rt, "from"), rapid.Int64Range(0, 12).Draw(rt, "to")
	}
	_, _ = both(rt, m, "places", func(s maintenance.Store) ([]string, error) {
		all, query := []string{}, query
		for {
			page, err := s.Hits(context.Background(), query)
			for _, p := range page {
				all = append(all, fmt.Sprint(p.ConversationID, " ", p.Seq)) // their order depends on the engine
				query.Before = p
			}
			if err != nil || len(page) < query.Limit {
				return all, err
			}
		}
	})
	_, _ = both(rt, m, "unindexed", func(s maintenance.Store) (map[string]index.Unindexed, error) {
		found, err := s.Unindexed(context.Background(), index.UnindexedQuery{ProjectID: m.project, Limit: 1000})
		byID := map[string]index.Unindexed{}
		for _, u := range found {
			byID[u.Conversation.ID] = u
		}
		return byID, err
	})
}
