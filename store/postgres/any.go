package postgres

import (
	"context"
	"strings"

	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/jackc/pgx/v5"
)

const (
	// One list for each term. The scope is one of the query's terms: conditions on columns that an index has would make the
	// planner read all documents of a conversation instead, and unpack the terms of each, once for each term.
	anyHits = `
SELECT term.number, hits.conversations, hits.seqs, hits.added
FROM unnest(@terms::text[]) WITH ORDINALITY AS term (query, number) CROSS JOIN LATERAL (
  SELECT {conversations} AS conversations, array_agg(seq) AS seqs, array_agg(added) AS added FROM (
    WITH found AS MATERIALIZED (
      SELECT conversation_id, seq, added FROM continuo.documents WHERE terms @@ term.query::tsquery AND seq + 0 BETWEEN @from AND @to AND {filter})
    SELECT conversation_id, seq, added FROM found ORDER BY added DESC, conversation_id DESC, seq DESC LIMIT @limit) AS newest) AS hits
WHERE hits.seqs IS NOT NULL`

	// How many of the newest documents have each term, and when the last of @depth documents was added: NULL if there are fewer.
	sampleHits = `
WITH newest AS MATERIALIZED (
  SELECT added, project_id, terms FROM continuo.documents WHERE {scope} ORDER BY added DESC, conversation_id DESC, seq DESC LIMIT @window)
SELECT (SELECT max(added) FROM newest), (SELECT max(project_id) FROM newest),
  (SELECT added FROM continuo.documents WHERE {scope} ORDER BY added DESC, conversation_id DESC, seq DESC LIMIT 1 OFFSET @depth - 1),
  ARRAY(SELECT (SELECT count(*) FROM newest WHERE terms @@ term.query)
    FROM unnest(@terms::text[]::tsquery[]) WITH ORDINALITY AS term (query, number) ORDER BY number)`

	sampled     = 256   // documents
	sampleDepth = 4_096 // documents by which the pace is measured
)

// AnyHits is part of index.Store.
func (s *Store) AnyHits(ctx context.Context, query index.HitQuery) (found [][]index.Hit, err error) {
	if err := checkHitQuery(query); err != nil {
		return nil, err
	}
	query.Before = index.Hit{}
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		search, err := newHitSearch(ctx, q, query)
		if err == nil {
			found, err = (&anySearch{hitSearch: search, query: query}).run(ctx)
		}
		return err
	})
	return found, err
}

// anySearch finds the newest hits of each term: in a large scope in the newest periods first.
type anySearch struct {
	*hitSearch
	query index.HitQuery
	pace  pace // documents is 0 if all are looked through at once
}

// anyTerm is a term of a query, with the periods in which it is looked up: "" for all, or those of so many documents.
type anyTerm struct {
	number    int
	documents int64
	recent    string
}

func (a *anySearch) run(ctx context.Context) ([][]index.Hit, error) {
	found := make([][]index.Hit, len(a.query.Terms))
	terms, err := a.sample(ctx)
	for err == nil && len(terms) > 0 {
		err = a.find(ctx, terms, found)
		var again []anyTerm
		for _, term := range terms {
			if hits := len(found[term.number]); term.recent != "" && hits < a.query.Limit {
				wider := max(documentsWith(a.query.Limit, hits, term.documents), leastWider*term.documents)
				again = append(again, a.recent(term.number, wider))
			}
		}
		terms = again
	}
	return found, err
}

// leastWider is how many times as many documents are looked through when those before had too few hits.
const leastWider = 4

// recent chooses the periods in which a term is looked up.
func (a *anySearch) recent(number int, documents int64) anyTerm {
	term := anyTerm{number: number, documents: documents}
	if a.pace.documents > 0 && (a.query.Expect == 0 || documents < a.query.Expect) {
		term.recent, _ = a.pace.periodsOf(documents, a.pace.newest)
	}
	return term
}

// sample returns the terms with periods by how many of the newest documents have each.
func (a *anySearch) sample(ctx context.Context) ([]anyTerm, error) {
	hits := make([]int, len(a.query.Terms))
	isOpen := a.query.From <= 1 && a.query.To == 0 // otherwise the newest may be far from the range
	if isOpen && !a.few && a.filter == noFilter && (a.query.Expect == 0 || a.query.Expect >= 4*sampleDepth) {
		args := a.args(sampled, 0)
		args["depth"] = sampleDepth
		var all []string
		for i := range a.query.Terms {
			all = append(all, tsquery(a.query.Terms[i:i+1]))
		}
		args["terms"] = all
		var newest, oldest *int64
		var project *string
		statement := strings.ReplaceAll(sampleHits, "{scope}", a.scope)
		if err := a.querier.QueryRow(ctx, statement, pgx.QueryExecModeExec, args).Scan(&newest, &project, &oldest, &hits); err != nil {
			return nil, err
		}
		if oldest != nil {
			a.pace = pace{project: *project, newest: *newest, oldest: *oldest, documents: sampleDepth}
		}
	}
	terms := make([]anyTerm, len(hits))
	for i := range terms {
		terms[i] = a.recent(i, documentsWith(a.query.Limit, hits[i], sampled))
	}
	return terms, nil
}

// find puts the hits of terms in their places.
func (a *anySearch) find(ctx context.Context, terms []anyTerm, found [][]index.Hit) error {
	args := a.args(0, a.query.Limit)
	var queries []string
	for _, term := range terms {
		within := a.within
		if term.recent != "" {
			within = a.inPeriods(term.recent)
		}
		queries = append(queries, within+" & "+tsquery(a.query.Terms[term.number:term.number+1]))
	}
	args["terms"] = queries
	conversations := "NULL::text[]"
	if a.query.ConversationID == "" {
		conversations = "array_agg(conversation_id)"
	}
	statement := strings.NewReplacer("{conversations}", conversations, "{filter}", a.filter).Replace(anyHits)
	rows, _ := a.querier.Query(ctx, statement, pgx.QueryExecModeExec, args)
	var number int64
	var of []string
	var seq, added []int64
	_, err := pgx.ForEachRow(rows, []any{&number, &of, &seq, &added}, func() error {
		hits := make([]index.Hit, len(seq))
		for i := range hits {
			hits[i] = index.Hit{ConversationID: a.query.ConversationID, Seq: seq[i], Order: added[i]}
			if a.query.ConversationID == "" {
				hits[i].ConversationID = of[i]
			}
		}
		found[terms[number-1].number] = hits
		return nil
	})
	return err
}
