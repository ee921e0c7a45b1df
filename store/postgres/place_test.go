package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/jackc/pgx/v5"
)

// testDocument is a document as the tests know it.
type testDocument struct {
	index.Hit
	project string
	terms   []string
}

// searchDocuments are more documents than are looked at by age, over some days: several have the same age, some terms are
// everywhere, others only where the index of terms finds them.
func searchDocuments() []testDocument {
	const count = 12_000
	var all []testDocument
	for i := range count {
		p := testDocument{project: "p" + fmt.Sprint(i%2), terms: []string{"all", fmt.Sprintf("nr%d", i)}}
		p.ConversationID = fmt.Sprintf("c%d%d", i%2, i%6)
		p.Seq, p.Order = int64(i), int64(i/5)*int64(30*time.Minute)
		for term, in := range map[string]bool{"half": i%4 < 2, "old": i < 300, "middle": 5000 <= i && i < 5040, "rare": i%2000 == 8} {
			if in {
				p.terms = append(p.terms, term)
			}
		}
		all = append(all, p)
	}
	sortDocuments(all)
	return all
}

// sortDocuments puts the newest first.
func sortDocuments(all []testDocument) {
	slices.SortFunc(all, func(a, b testDocument) int {
		return cmp.Or(cmp.Compare(b.Order, a.Order), cmp.Compare(b.ConversationID, a.ConversationID), cmp.Compare(b.Seq, a.Seq))
	})
}

// writeDocuments writes documents without their conversations.
func writeDocuments(t *testing.T, s *Store, all []testDocument) {
	t.Helper()
	err := s.transact(t.Context(), "put documents", func(ctx context.Context, tx pgx.Tx) error {
		batches := map[[2]string]*index.Batch{}
		for _, p := range all {
			key := [2]string{p.ConversationID, p.project}
			if batches[key] == nil {
				batches[key] = &index.Batch{ConversationID: p.ConversationID}
			}
			batches[key].Documents = append(batches[key].Documents, index.Document{Seq: p.Seq, Added: p.Order, Terms: p.terms})
		}
		for key, batch := range batches {
			if err := putDocuments(ctx, tx, *batch, key[1]); err != nil {
				return err
			}
		}
		return nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
}

func TestHitsAreFoundAtAnyAge(t *testing.T) {
	store := openAt(t, newDatabase(t, 0), Options{})
	defer store.Close()
	all := searchDocuments()
	writeDocuments(t, store, all)
	queries := []index.HitQuery{
		{ProjectID: "p0", Terms: []index.Term{{Text: "old"}}, Limit: 40},
		{ProjectID: "p1", Terms: []index.Term{{Text: "rare"}, {Text: "all"}}, Limit: 3},
		{ProjectID: "p0", Terms: []index.Term{{Text: "rare"}, {Text: "all"}}, Limit: 3},
		{ProjectID: "p0", Terms: []index.Term{{Text: "middle"}, {Text: "half"}}, Limit: 7},
		{ProjectID: "p0", Terms: []index.Term{{Text: "half"}}, Limit: 1000},
		{ProjectID: "p0", Terms: []index.Term{{Text: "half"}}, From: 100, To: 200, Limit: 9},
		{ProjectID: "p1", Terms: []index.Term{{Text: "nr1", Prefix: true}}, Limit: 500},
		{ProjectID: "p1", Terms: []index.Term{{Text: "c", Prefix: true}}, Limit: 5},
		{ProjectID: "p0", Terms: []index.Term{{Text: "absent"}, {Text: "all"}}, Limit: 5},
		{ProjectID: "p0", ConversationID: "c02", Terms: []index.Term{{Text: "old"}}, Limit: 11},
		{ProjectID: "p0", ConversationID: "c04", Terms: []index.Term{{Text: "all"}}, From: 50, To: 900, Limit: 50},
		{ProjectID: "p0", ConversationID: "c04", Terms: []index.Term{{Text: "all"}}, To: 12, Limit: 5},
	}
	for _, query := range queries {
		want := hitsOf(all, query)
		if got := pagesOf(t, store, query, len(want)); !slices.Equal(got, want) {
			t.Errorf("%+v: found %d places: %v\nwant %d: %v", query, len(got), got, len(want), want)
		}
	}
}

// Whoever looks through several conversations, page by page, takes the newest of all of them first.
func TestPageOfAConversationStartsAfterAHitOfAnother(t *testing.T) {
	store := openAt(t, newDatabase(t, 0), Options{})
	defer store.Close()
	all := []testDocument{}
	for _, id := range []string{"a", "b", "c"} {
		for seq := range int64(3) {
			all = append(all, testDocument{Hit: index.Hit{ConversationID: id, Seq: seq + 1, Order: 7}, project: "p", terms: []string{"word"}})
		}
	}
	writeDocuments(t, store, all)
	for before, want := range map[index.Hit][]int64{
		{ConversationID: "a", Seq: 2, Order: 7}: nil,
		{ConversationID: "b", Seq: 2, Order: 7}: {1},
		{ConversationID: "c", Seq: 2, Order: 7}: {3, 2, 1},
		{ConversationID: "a", Seq: 2, Order: 8}: {3, 2, 1},
		{ConversationID: "c", Seq: 2, Order: 6}: nil,
	} {
		found, err := store.Hits(t.Context(), index.HitQuery{ProjectID: "p", ConversationID: "b", Terms: []index.Term{{Text: "word"}}, Before: before, Limit: 9})
		var seqs []int64
		for _, p := range found {
			seqs = append(seqs, p.Seq)
		}
		if err != nil || !slices.Equal(seqs, want) {
			t.Errorf("before %+v: found %v, %v; want %v", before, seqs, err, want)
		}
	}
}

func TestAnyHitsAreTheNewestOfEachTerm(t *testing.T) {
	store := openAt(t, newDatabase(t, 0), Options{})
	defer store.Close()
	all := searchDocuments()
	for _, document := range all {
		if document.project == "p0" {
			document.project, document.ConversationID = "p2", "long"
			all = append(all, document)
		}
	}
	sortDocuments(all)
	writeDocuments(t, store, all)
	for i := range 2 * maxNamed { // of one user; the others have no rows of their own
		execute := `INSERT INTO continuo.conversations (id, project_id, user_id, title, active_mode, fork_seq, created_at, updated_at, last_seq, indexed_seq)
VALUES ($1, 'p0', $2, '', 'chat', 0, '', '', 0, 0)`
		_, err := store.pool.Exec(t.Context(), execute, fmt.Sprint("c0", i), []string{"few", "many"}[min(i/3, 1)])
		must(t, err)
	}
	for _, query := range []index.HitQuery{
		{ProjectID: "p0"},
		{ProjectID: "p1", From: 500, To: 11_000},
		{ProjectID: "p0", ConversationID: "c02", Expect: 2_000},
		{ProjectID: "p0", ConversationID: "c02", Expect: 4 * sampleDepth}, // fewer than expected
		{ProjectID: "p2", ConversationID: "long", Expect: 4 * sampleDepth},
		{ProjectID: "p0", UserID: "few"},  // c00 and c02
		{ProjectID: "p0", UserID: "many"}, // c04, of too many to be named
	} {
		for _, text := range []string{"all", "half", "old", "middle", "rare", "nr77", "absent"} {
			query.Terms = append(query.Terms, index.Term{Text: text})
		}
		query.Limit = 150
		lists, err := store.AnyHits(t.Context(), query)
		must(t, err)
		for i, term := range query.Terms {
			one := query
			one.Terms = []index.Term{term}
			want := slices.DeleteFunc(hitsOf(all, one), func(hit index.Hit) bool {
				return query.UserID != "" && (query.UserID == "many") != (hit.ConversationID == "c04")
			})
			if want = want[:min(len(want), query.Limit)]; !slices.Equal(lists[i], want) {
				t.Errorf("%+v, %s: found %d places: %v\nwant %d: %v", query, term.Text, len(lists[i]), lists[i], len(want), want)
			}
		}
	}
}

// TestTheIndexIsMadeAgainWithPeriods opens a database whose documents have no terms for periods.
func TestTheIndexIsMadeAgainWithPeriods(t *testing.T) {
	url := newDatabase(t, 0)
	store := openAt(t, url, Options{})
	createAt(t, store, "a")
	appendAt(t, store, "a", 1)
	title := ""
	must(t, store.Index(t.Context(), index.Batch{ConversationID: "a", Through: 1, Title: &title, Documents: []index.Document{{Seq: 1, Terms: []string{"hello"}}}}))
	must(t, store.Close())
	execute(t, url, `UPDATE continuo.schema_version SET version = 1`)
	store = openAt(t, url, Options{})
	defer store.Close()
	waiting, err := store.Unindexed(t.Context(), index.UnindexedQuery{Limit: 9})
	must(t, err)
	if len(waiting) != 1 || waiting[0].Indexed != 0 || waiting[0].Title {
		t.Errorf("waiting to be indexed: %+v", waiting)
	}
}

// hitsOf finds places by looking at every document.
func hitsOf(all []testDocument, query index.HitQuery) []index.Hit {
	var found []index.Hit
	for _, p := range all {
		in := p.project == query.ProjectID && (query.ConversationID == "" || p.ConversationID == query.ConversationID)
		in = in && p.Seq >= query.From && (query.To == 0 || p.Seq <= query.To)
		for _, want := range query.Terms {
			in = in && slices.ContainsFunc(p.terms, func(term string) bool {
				return term == want.Text || want.Prefix && len(term) > len(want.Text) && term[:len(want.Text)] == want.Text
			})
		}
		if in {
			found = append(found, p.Hit)
		}
	}
	return found
}

// pagesOf reads page after page until one is empty, or there are more than most.
func pagesOf(t *testing.T, s *Store, query index.HitQuery, most int) []index.Hit {
	t.Helper()
	var found []index.Hit
	for {
		page, err := s.Hits(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, page...)
		if len(page) == 0 || len(found) > most {
			return found
		}
		query.Before = page[len(page)-1]
	}
}

// What is found by age must not be sorted, and what is found by its terms not be looked for by age.
func TestHitsAreSearchedByAgeAndThenByTerm(t *testing.T) {
	url := newDatabase(t, 0)
	store := openAt(t, url, Options{StatementTimeout: 5 * time.Minute}) // all documents are one statement
	defer store.Close()
	putRandomDocuments(t, store, 30_000, 5)
	seen := recordStatements(t, store, url)
	terms := []index.Term{{Text: "old"}} // frequent, but not where a search begins
	for _, query := range []index.HitQuery{
		{ProjectID: "p", Terms: terms, Limit: 20},
		{ProjectID: "p", Terms: terms, Limit: 20, Before: index.Hit{ConversationID: "conv_1", Seq: 3, Order: 29_000 * 1_000_000_000}},
	} {
		_, err := store.Hits(t.Context(), query)
		must(t, err)
	}
	ways := map[string]int{}
	for _, s := range seen.statements() {
		plan := s.explain(t, url, false)
		has := func(part string) bool { return strings.Contains(plan, `"`+part+`"`) }
		switch {
		case has("documents_of_project") && !has("documents_by_term") && !has("Sort") && !has("Seq Scan"):
			ways["age"]++
		case has("documents_by_term") && !has("documents_of_project") && has("Sort") && !has("Seq Scan"):
			ways["term"]++
		default:
			t.Errorf("%s\n%s", s.sql, plan)
		}
	}
	if ways["age"] != 3 || ways["term"] != 1 {
		t.Errorf("statements by the way that they go: %v", ways)
	}
}

// A page takes about as long in a million documents as in a thousand: run it with -benchtime 1s and compare.
// The documents are made by the server, of words as common as those of a language.
func BenchmarkHits(b *testing.B) {
	for _, documents := range []int{1_000, 1_000_000} {
		store := openAt(b, newDatabase(b, 0), Options{StatementTimeout: 1 << 40})
		putRandomDocuments(b, store, documents, 60)
		for name, terms := range map[string][]string{
			"rare": {"rare"}, "1_percent": {"percent"}, "1_per_mille": {"mille"}, "common": {"common"}, "2_common": {"common", "usual"},
			"only_old": {"old"}, "2_common_never_together": {"even", "odd"}, "absent": {"absent"}, "common_and_rare": {"common", "rare"},
		} {
			query := index.HitQuery{ProjectID: "p", Limit: 20}
			for _, term := range terms {
				query.Terms = append(query.Terms, index.Term{Text: term})
			}
			b.Run(fmt.Sprintf("%s/%d_documents", name, documents), func(b *testing.B) {
				for b.Loop() {
					if _, err := store.Hits(b.Context(), query); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		if err := store.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

const randomDocuments = `
INSERT INTO continuo.documents (conversation_id, seq, project_id, added, terms)
SELECT 'conv_' || i % 1000, i / 1000 + 1, 'p', i::bigint * 1000000000, array_to_tsvector(
  ARRAY(SELECT 'w' || floor(power(50000, random()))::int FROM generate_series(1, $2::int) AS word WHERE word + i > 0)
  || string_to_array(($3::text[])[i + 1], ' ') || ARRAY[':cconv_' || i % 1000, ':pp', CASE WHEN i % 2 = 0 THEN 'even' ELSE 'odd' END]
  || CASE WHEN random() < 0.5 THEN ARRAY['common'] ELSE '{}' END
  || CASE WHEN random() < 0.3 THEN ARRAY['usual'] ELSE '{}' END
  || CASE WHEN random() < 0.01 THEN ARRAY['percent'] ELSE '{}' END
  || CASE WHEN random() < 0.001 THEN ARRAY['mille'] ELSE '{}' END
  || CASE WHEN random() < 0.00002 OR i = 7 THEN ARRAY['rare'] ELSE '{}' END
  || CASE WHEN i < $1 / 10 THEN ARRAY['old'] ELSE '{}' END)
FROM generate_series(0, $1::int - 1) AS i`

func putRandomDocuments(b testing.TB, s *Store, count, terms int) {
	b.Helper()
	ctx := b.Context()
	var periods []string
	for i := range count {
		periods = append(periods, strings.Join(periodsOf("p", int64(i)*1_000_000_000), " "))
	}
	_, err := s.pool.Exec(ctx, `DROP INDEX continuo.documents_by_term`)
	if err == nil {
		_, err = s.pool.Exec(ctx, randomDocuments, count, terms, periods)
	}
	if err == nil {
		_, err = s.pool.Exec(ctx, `CREATE INDEX documents_by_term ON continuo.documents USING gin (terms)`)
	}
	if err == nil {
		_, err = s.pool.Exec(ctx, `VACUUM ANALYZE continuo.documents`)
	}
	if err != nil {
		b.Fatal(err)
	}
}
