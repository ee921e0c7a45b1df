package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/maintenance"
)

// document returns a document that was added at a second.
func document(seq int64, second int, terms string) index.Document {
	return index.Document{Seq: seq, Added: at(second).UnixNano(), Terms: strings.Fields(terms)}
}

// indexEntries adds documents of entries above after; the last of them is the batch's Through.
func indexEntries(t *testing.T, store maintenance.Store, id string, after int64, documents ...index.Document) {
	t.Helper()
	through := documents[len(documents)-1].Seq
	noError(t, store.Index(t.Context(), index.Batch{ConversationID: id, After: after, Through: through, Documents: documents}))
}

// indexTitle gives a conversation's index its title.
func indexTitle(t *testing.T, store maintenance.Store, id string, at int64, title string, documents ...index.Document) {
	t.Helper()
	noError(t, store.Index(t.Context(), index.Batch{ConversationID: id, After: at, Through: at, Title: &title, Documents: documents}))
}

// inProject and inOne make queries; a star behind a term makes it the beginning of one.
func inProject(terms string) index.HitQuery {
	query := index.HitQuery{ProjectID: "p", Limit: 100}
	for _, text := range strings.Fields(terms) {
		begin, isPrefix := strings.CutSuffix(text, "*")
		query.Terms = append(query.Terms, index.Term{Text: begin, Prefix: isPrefix})
	}
	return query
}

func inOne(id, terms string) index.HitQuery {
	query := inProject(terms)
	query.ConversationID = id
	return query
}

// searchHits reads all pages of a query, as texts.
func searchHits(t *testing.T, store maintenance.Store, query index.HitQuery) []string {
	t.Helper()
	found := []string{}
	for {
		page, err := store.Hits(t.Context(), query)
		noError(t, err)
		if len(page) > query.Limit {
			t.Fatalf("asked for %d places, got %d", query.Limit, len(page))
		}
		for _, p := range page {
			found = append(found, fmt.Sprint(p.ConversationID, " ", p.Seq))
		}
		if len(page) < query.Limit || len(found) > 10_000 {
			return found
		}
		query.Before = page[len(page)-1]
	}
}

func expectHits(t *testing.T, store maintenance.Store, query index.HitQuery, want ...string) {
	t.Helper()
	for _, limit := range []int{1, 2, 100} {
		query.Limit = limit
		if got := searchHits(t, store, query); !slices.Equal(got, want) {
			t.Errorf("%+v: got %q, want %q", query, got, want)
		}
	}
}

func testHits(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 6)
	create(t, store, "A", 3)
	elsewhere := conversation("b")
	elsewhere.ProjectID, elsewhere.LastSeq = "P", 2
	noError(t, store.Create(ctx, elsewhere, entries("b", 1, 2)))
	indexEntries(t, store, "a", 0, document(1, 10, "apple pear müller"), document(2, 30, "apple"), document(4, 20, "apple pear 数据 数"))
	indexEntries(t, store, "A", 0, document(1, 25, "apple applepie"), document(3, 40, "pear 2"))
	indexEntries(t, store, "b", 0, document(1, 50, "apple pear"), document(2, 60, "x"))
	indexTitle(t, store, "a", 4, "title of a", document(0, 70, "title pear"))
	for _, store := range []maintenance.Store{store, open(t, opener)} {
		expectHits(t, store, inProject("apple"), "a 2", "A 1", "a 4", "a 1")
		expectHits(t, store, inProject("pear"), "a 0", "A 3", "a 4", "a 1")
		expectHits(t, store, inProject("pear apple"), "a 4", "a 1")
		expectHits(t, store, inProject("apple apple"), "a 2", "A 1", "a 4", "a 1")
		expectHits(t, store, inProject("appl"))
		expectHits(t, store, inProject("appl*"), "a 2", "A 1", "a 4", "a 1")
		expectHits(t, store, inProject("apple*"), "a 2", "A 1", "a 4", "a 1")
		expectHits(t, store, inProject("applep* apple"), "A 1")
		expectHits(t, store, inProject("a*"), "a 2", "A 1", "a 4", "a 1")
		expectHits(t, store, inProject("数*"), "a 4")
		expectHits(t, store, inProject("数据"), "a 4")
		expectHits(t, store, inProject("据"))
		expectHits(t, store, inProject("müller"), "a 1")
		expectHits(t, store, inProject("muller"))
		expectHits(t, store, inProject("2"), "A 3")
		expectHits(t, store, inProject("p")) // a search of the project
		expectHits(t, store, inProject("c*"))
		expectHits(t, store, inOne("a", "apple"), "a 2", "a 4", "a 1")
		expectHits(t, store, inOne("A", "apple"), "A 1")
		expectHits(t, store, inOne("none", "apple"))
		other := inProject("apple")
		other.ProjectID = "P"
		expectHits(t, store, other, "b 1")
		for _, bounds := range []struct {
			from, to int64
			want     []string
		}{{1, 4, []string{"a 4", "a 1"}}, {0, 3, []string{"a 0", "a 1"}}, {2, 0, []string{"a 4"}}, {5, 9, nil}, {0, 0, []string{"a 0", "a 4", "a 1"}}, {1, 1, []string{"a 1"}}} {
			query := inOne("a", "pear")
			query.From, query.To = bounds.from, bounds.to
			expectHits(t, store, query, bounds.want...)
		}
	}
	for what, query := range map[string]index.HitQuery{"no limit": {ProjectID: "p", Terms: inProject("a").Terms}, "no terms": {ProjectID: "p", Limit: 1}} {
		expectError(t, what, second(store.Hits(ctx, query)), continuo.ErrInvalid)
	}
}

// expectAnyHits compares the lists of each term of a query; a term a/b is a or b.
func expectAnyHits(t *testing.T, store maintenance.Store, query index.HitQuery, want ...string) {
	t.Helper()
	for i := range query.Terms {
		query.Terms[i].Text, query.Terms[i].Or, _ = strings.Cut(query.Terms[i].Text, "/")
	}
	lists, err := store.AnyHits(t.Context(), query)
	noError(t, err)
	var got []string
	for _, hits := range lists {
		var texts []string
		for _, p := range hits {
			texts = append(texts, fmt.Sprint(p.ConversationID, " ", p.Seq))
		}
		got = append(got, strings.Join(texts, ", "))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v: got %q, want %q", query, got, want)
	}
}

// testAnyHits finds the documents of each term by itself.
func testAnyHits(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 6)
	create(t, store, "A", 3)
	indexEntries(t, store, "a", 0, document(1, 10, "apple pear müller"), document(2, 30, "combining combinΩ"), document(4, 20, "apple combin"))
	indexEntries(t, store, "A", 0, document(1, 25, "apple apples"), document(3, 40, "pear 2"))
	expectAnyHits(t, store, inProject("apple none pear"), "A 1, a 4, a 1", "", "A 3, a 1")
	expectAnyHits(t, store, inProject("combin/combinΩ combin"), "a 2, a 4", "a 4")
	expectAnyHits(t, store, inOne("a", "apple pear"), "a 4, a 1", "a 1")
	expectAnyHits(t, store, inOne("none", "apple"), "")
	query := inOne("a", "apple combin/combinΩ")
	query.From, query.To = 2, 3
	expectAnyHits(t, store, query, "", "a 2")
	query = inProject("apple pear")
	query.Limit = 1
	expectAnyHits(t, store, query, "A 1", "A 3")
	query = inProject("apple")
	query.UserID = "nobody"
	expectAnyHits(t, store, query, "")
	_, err := store.AnyHits(ctx, index.HitQuery{ProjectID: "p", Limit: 1})
	expectError(t, "no terms", err, continuo.ErrInvalid)
	_, err = store.AnyHits(ctx, index.HitQuery{ProjectID: "p", Limit: 1, Terms: []index.Term{{Text: "a", Or: `b" OR "c`}}})
	expectError(t, "a wrong term", err, continuo.ErrInvalid)
}

// testAnyHitsAmongOthers finds the documents of one conversation where a few, half or most documents with a term are of another.
func testAnyHitsAmongOthers(t *testing.T, opener Opener) {
	const documents = 700
	store := open(t, opener)
	for _, share := range []int{2, 50, 90, 98} {
		random := rand.New(rand.NewPCG(uint64(share), 1))
		own := map[string][]index.Document{}
		for second := range documents {
			id := fmt.Sprint("a", share)
			if random.IntN(100) < share {
				id = fmt.Sprint("b", share)
			}
			terms := fmt.Sprint("same", share)
			if random.IntN(20) == 0 {
				terms += fmt.Sprint(" rare", share)
			}
			own[id] = append(own[id], document(int64(len(own[id])+1), second, terms))
		}
		for id, of := range own {
			create(t, store, id, int64(len(of)))
			indexEntries(t, store, id, 0, of...)
		}
		for id, of := range own {
			for _, limit := range []int{1, 100, 300, 2 * documents} {
				query := inOne(id, fmt.Sprintf("same%d rare%d none", share, share))
				query.Limit = limit
				want := make([]string, len(query.Terms))
				for i, term := range query.Terms {
					want[i] = newestWith(id, of, term.Text, limit)
				}
				expectAnyHits(t, store, query, want...)
			}
		}
	}
}

// newestWith are the newest documents of a conversation that have a term, as expectAnyHits wants them.
func newestWith(id string, documents []index.Document, term string, limit int) string {
	var found []string
	for _, d := range slices.Backward(documents) {
		if len(found) < limit && slices.Contains(d.Terms, term) {
			found = append(found, fmt.Sprint(id, " ", d.Seq))
		}
	}
	return strings.Join(found, ", ")
}

// testDocuments reads documents, with the terms as they were indexed.
func testDocuments(t *testing.T, opener Opener) {
	store := open(t, opener)
	create(t, store, "a", 6)
	create(t, store, "A", 3)
	indexEntries(t, store, "a", 0, document(1, 10, "apple pear müller"), document(2, 30, "combining combinΩ"), document(4, 20, "数据 apple"))
	indexEntries(t, store, "A", 0, document(2, 25, "apple"))
	for _, want := range []struct {
		id       string
		from, to int64
		found    string
	}{
		{"a", 0, 6, "1 apple müller pear, 2 combining combinΩ, 4 apple 数据"}, {"a", 2, 3, "2 combining combinΩ"}, {"a", 5, 6, ""}, {"a", 4, 3, ""}, {"none", 1, 9, ""},
	} {
		documents, err := store.Documents(t.Context(), want.id, want.from, want.to)
		noError(t, err)
		var found []string
		for _, d := range documents {
			slices.Sort(d.Terms)
			found = append(found, fmt.Sprint(d.Seq, " ", strings.Join(d.Terms, " ")))
		}
		if got := strings.Join(found, ", "); got != want.found {
			t.Errorf("%+v: got %q", want, got)
		}
	}
}

// testManyHits has many documents of the same moment, and pages through them.
func testManyHits(t *testing.T, opener Opener) {
	store := open(t, opener)
	const each = 300
	want := map[string]bool{}
	for i, id := range []string{"a", "b", "c"} {
		create(t, store, id, each)
		var documents []index.Document
		for seq := int64(1); seq <= each; seq++ {
			d := document(seq, 10, "same")
			if i == 2 {
				d = document(seq, 5+int(seq%10), "same")
			}
			documents = append(documents, d)
			want[fmt.Sprint(id, " ", seq)] = true
		}
		for from := 0; from < each; from += 75 {
			indexEntries(t, store, id, int64(from), documents[from:from+75]...)
		}
	}
	for _, limit := range []int{7, 100, 1000} {
		query := inProject("same")
		query.Limit = limit
		got := map[string]bool{}
		found := searchHits(t, store, query)
		for _, p := range found {
			got[p] = true
		}
		if len(found) != len(got) {
			t.Errorf("pages of %d: %d places, %d different ones", limit, len(found), len(got))
		}
		same(t, "all places", got, want)
		if newest, oldest := found[0], found[len(found)-1]; newest[:1] != "c" || oldest[:1] != "c" {
			t.Errorf("the first place is %s, the last %s", newest, oldest)
		}
	}
}

func unindexed(t *testing.T, store maintenance.Store, query index.UnindexedQuery) map[string]index.Unindexed {
	t.Helper()
	query.Limit = 100
	found, err := store.Unindexed(t.Context(), query)
	noError(t, err)
	byID := map[string]index.Unindexed{}
	for _, u := range found {
		byID[u.Conversation.ID] = u
	}
	if len(byID) != len(found) {
		t.Errorf("%d conversations, %d different ones", len(found), len(byID))
	}
	return byID
}

func testUnindexed(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 5)
	noError(t, store.Create(ctx, forkOf("b", continuo.Segment{ConversationID: "a", Through: 3}), nil))
	elsewhere := conversation("c")
	elsewhere.ProjectID = "q"
	noError(t, store.Create(ctx, elsewhere, nil))
	missing := func(id string, indexed int64, title bool) {
		t.Helper()
		c, err := store.Conversation(ctx, id)
		noError(t, err)
		want := map[string]index.Unindexed{id: {Conversation: c, Indexed: indexed, Title: title}}
		same(t, "of the conversation "+id, unindexed(t, store, index.UnindexedQuery{ConversationID: id}), want)
		project := unindexed(t, store, index.UnindexedQuery{ProjectID: c.ProjectID})
		same(t, "of the project of "+id, project[id], want[id])
		same(t, "of all: "+id, unindexed(t, store, index.UnindexedQuery{})[id], want[id])
		same(t, "in another project", unindexed(t, store, index.UnindexedQuery{ConversationID: id, ProjectID: "none"}), map[string]index.Unindexed{})
	}
	nothing := func(id string) {
		t.Helper()
		if found, is := unindexed(t, store, index.UnindexedQuery{})[id]; is {
			t.Errorf("nothing of %s is missing: %+v", id, found)
		}
		same(t, "of the conversation "+id, unindexed(t, store, index.UnindexedQuery{ConversationID: id}), map[string]index.Unindexed{})
	}
	missing("a", 0, false)
	missing("b", 3, false) // inherited entries belong to its ancestor
	missing("c", 0, false)
	indexEntries(t, store, "a", 0, document(2, 1, "x"))
	missing("a", 2, false)
	indexTitle(t, store, "a", 2, "an earlier title")
	missing("a", 2, false)
	indexTitle(t, store, "a", 2, "title of a")
	missing("a", 2, true)
	noError(t, store.Index(ctx, index.Batch{ConversationID: "a", After: 2, Through: 5})) // none has terms
	nothing("a")
	title := "other"
	noError(t, second(store.Update(ctx, "a", continuo.ConversationChange{Title: &title, UpdatedAt: at(1)})))
	missing("a", 5, false)
	indexTitle(t, store, "a", 5, "other")
	nothing("a")
	appendEntries(t, store, "a", 6, 6)
	missing("a", 5, true)
	noError(t, store.ForgetIndex(ctx, "a"))
	missing("a", 0, false)
	noError(t, store.ForgetIndex(ctx, "b"))
	missing("b", 3, false)
	indexTitle(t, store, "b", 3, "title of b")
	nothing("b")
	one, err := store.Unindexed(ctx, index.UnindexedQuery{Limit: 1})
	if err != nil || len(one) != 1 {
		t.Errorf("with a limit of 1: %d (%v)", len(one), err)
	}
	noError(t, store.Delete(ctx, "c"))
	nothing("c")
	for what, err := range map[string]error{
		"Unindexed with a limit of 0": second(store.Unindexed(ctx, index.UnindexedQuery{})),
		"a document outside":          store.Index(ctx, index.Batch{ConversationID: "a", Through: 2, Documents: []index.Document{document(3, 1, "x")}}),
		"a title that is not given":   store.Index(ctx, index.Batch{ConversationID: "a", Documents: []index.Document{document(0, 1, "x")}}),
		"a seq twice":                 store.Index(ctx, index.Batch{ConversationID: "a", Through: 2, Documents: []index.Document{document(2, 1, "x"), document(2, 1, "y")}}),
		"through what is not there":   store.Index(ctx, index.Batch{ConversationID: "a", Through: 99}),
		"backward":                    store.Index(ctx, index.Batch{ConversationID: "a", Through: -1}),
	} {
		expectError(t, what, err, continuo.ErrInvalid)
	}
	missing("a", 0, false)
}

// testTerms expects refusals of terms that package fulltext does not make: an index might split or
// reinterpret them.
func testTerms(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	create(t, store, "a", 2)
	for _, bad := range []string{"", "two words", `quo"te`, "dash-ed", "under_score", "Capital", "nul\x00", "bad\xff", "tick'", "star*", "colon:", "and|or&", strings.Repeat("x", 300)} {
		batch := index.Batch{ConversationID: "a", Through: 1, Documents: []index.Document{{Seq: 1, Added: 1, Terms: []string{"good", bad}}}}
		expectError(t, fmt.Sprintf("a document with %.20q", bad), store.Index(ctx, batch), continuo.ErrInvalid)
		query := index.HitQuery{ProjectID: "p", Limit: 1, Terms: []index.Term{{Text: bad}}}
		expectError(t, fmt.Sprintf("a query with %.20q", bad), second(store.Hits(ctx, query)), continuo.ErrInvalid)
	}
	good := []string{"and", "or", "not", "near", "é", "ß", "ſ", "数", "数据", "ก็", "กำ", "한국어", "हिन्दी", "ا", "5", "²", "ﬀ", "ι", "ς", "σ", "𝒳", "か\u3099", "i\u0307", "ǆ", "ª", "Ⅷ", strings.Repeat("数", 64), strings.Repeat("x", 256)}
	for i, term := range good {
		create(t, store, fmt.Sprint("c", i), 1)
		indexEntries(t, store, fmt.Sprint("c", i), 0, document(1, i, term))
	}
	for i, term := range good {
		expectHits(t, store, inProject(term), fmt.Sprint("c", i, " 1"))
		expectHits(t, store, inOne(fmt.Sprint("c", i), term+"*"), fmt.Sprint("c", i, " 1"))
	}
}

// testHitsGone removes documents in every possible way.
func testHitsGone(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	for i, id := range []string{"redacted", "archived", "deleted", "forgotten", "titled"} {
		create(t, store, id, 3)
		indexEntries(t, store, id, 0, document(1, 10+i, "word"), document(3, 20+i, "word other"))
		indexTitle(t, store, id, 3, "title of "+id, document(0, 30+i, "word title"))
	}
	noError(t, store.Create(ctx, forkOf("fork", continuo.Segment{ConversationID: "deleted", Through: 3}), nil))
	noError(t, store.Redact(ctx, "redacted", []continuo.Entry{redacted(entry("redacted", 3))}))
	noError(t, store.Archive(ctx, seenAs(t, store, "archived", 3), at(50)))
	noError(t, store.Delete(ctx, "deleted"))
	noError(t, store.ForgetIndex(ctx, "forgotten"))
	indexTitle(t, store, "titled", 3, "new title", document(0, 40, "new"))
	for _, store := range []maintenance.Store{store, open(t, opener)} {
		expectHits(t, store, inProject("word"), "redacted 0", "titled 3", "titled 1", "redacted 1")
		expectHits(t, store, inOne("redacted", "word"), "redacted 0", "redacted 1")
		expectHits(t, store, inProject("new"), "titled 0")
		for _, id := range []string{"archived", "deleted", "forgotten"} {
			expectHits(t, store, inOne(id, "word"))
		}
	}
	// Built again, the index is as before.
	indexEntries(t, store, "forgotten", 0, document(1, 13, "word"), document(3, 23, "word other"))
	expectHits(t, store, inProject("other"), "titled 3", "forgotten 3")
	for _, r := range []continuo.Entry{entry("archived", 1), entry("archived", 2), entry("archived", 3)} {
		noError(t, store.PutRecords(ctx, "archived", []maintenance.Record{{Entry: &r}}))
	}
	noError(t, store.Restore(ctx, "archived"))
	if found := unindexed(t, store, index.UnindexedQuery{ConversationID: "archived"})["archived"]; found.Indexed != 0 || found.Title || found.Conversation.ID == "" {
		t.Errorf("a restored conversation is indexed again: %+v", found)
	}
	indexEntries(t, store, "archived", 0, document(2, 90, "word"), document(3, 91, "back"))
	expectHits(t, store, inOne("archived", "word"), "archived 2")
	for what, err := range map[string]error{
		"Index a deleted one":        store.Index(ctx, index.Batch{ConversationID: "deleted"}),
		"Index an unknown one":       store.Index(ctx, index.Batch{ConversationID: "none"}),
		"ForgetIndex a deleted one":  store.ForgetIndex(ctx, "deleted"),
		"ForgetIndex an unknown one": store.ForgetIndex(ctx, "none"),
	} {
		expectError(t, what, err, continuo.ErrNotFound)
	}
}

// testIndexRaces has several indexers index the same entries, while one redacts them.
func testIndexRaces(t *testing.T, opener Opener) {
	store, ctx := open(t, opener), t.Context()
	const last = 40
	create(t, store, "a", last)
	stores := []maintenance.Store{store, open(t, opener)}
	var done sync.WaitGroup
	for i := range 8 {
		done.Go(func() {
			for after := int64(0); after < last; {
				err := stores[i%2].Index(ctx, index.Batch{
					ConversationID: "a", After: after, Through: after + 2,
					Documents: []index.Document{document(after+1, int(after+1), "word"), document(after+2, int(after+2), "word")},
				})
				var conflict *continuo.ConflictError
				switch {
				case err == nil:
					after += 2
				case errors.As(err, &conflict):
					if conflict.Want != after+1 || conflict.Have <= after+1 {
						t.Errorf("indexing after %d: %v", after, err)
						return
					}
					after = conflict.Have - 1
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	done.Wait()
	var want []string
	for seq := last; seq > 0; seq-- {
		want = append(want, fmt.Sprint("a ", seq))
	}
	same(t, "places", searchHits(t, store, inProject("word")), want)

	// An indexer that read an entry before its redaction commits the terms too late.
	appendEntries(t, store, "a", last+1, last+2)
	noError(t, store.Redact(ctx, "a", []continuo.Entry{redacted(entry("a", last+1))}))
	indexEntries(t, store, "a", last, document(last+1, 90, "secret"), document(last+2, 91, "said"))
	expectHits(t, store, inProject("secret"))
	expectHits(t, store, inProject("said"), fmt.Sprint("a ", last+2))
	same(t, "what is missing", unindexed(t, store, index.UnindexedQuery{ConversationID: "a"})["a"].Indexed, int64(last+2))
}
