package postgres

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/jackc/pgx/v5"
)

// Search hits are found newest first. Common terms are found among the newest documents, which are read in
// the order of their age and compared one by one. Terms not found there are rare enough for the index of
// terms, which has no order. So a page takes about the same time however many documents there are.
const (
	// The limit inside makes the planner read by age before it looks for the terms.
	newestHits = `
SELECT conversation_id, seq, added FROM (
  SELECT conversation_id, seq, added, terms FROM continuo.documents WHERE {scope}
  ORDER BY added DESC, conversation_id DESC, seq DESC LIMIT @window) AS newest
WHERE terms @@ @terms::tsquery AND {filter}
ORDER BY added DESC, conversation_id DESC, seq DESC LIMIT @limit`

	// The oldest of the newest documents, if there are that many.
	windowEnd = `
SELECT conversation_id, seq, added FROM continuo.documents WHERE {scope}
ORDER BY added DESC, conversation_id DESC, seq DESC LIMIT 1 OFFSET @window - 1`

	// MATERIALIZED keeps the planner from reading by age, past all documents without the terms.
	rareHits = `
WITH found AS MATERIALIZED (
  SELECT conversation_id, seq, added FROM continuo.documents WHERE terms @@ @scoped::tsquery AND {scope} AND {filter})
SELECT conversation_id, seq, added FROM found
ORDER BY added DESC, conversation_id DESC, seq DESC LIMIT @limit`

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

	selectDocuments = `
SELECT seq, added, tsvector_to_array(terms) FROM continuo.documents WHERE conversation_id = $1 AND seq BETWEEN $2 AND $3 ORDER BY seq`

	// Each document has two additional terms, for its conversation and its project. They begin with a colon,
	// which no term of a text does, and so no prefix search finds them.
	conversationTerm = ":c"
	projectTerm      = ":p"

	scopeProject      = `project_id = @project AND (added, conversation_id, seq) < (@order, @before, @seq) AND seq BETWEEN @from AND @to`
	scopeConversation = `conversation_id = @conversation AND (added, seq) < (@order, @seq) AND seq BETWEEN @from AND @to`

	// Narrows hits to those of some conversations.
	ofConversations = `conversation_id IN (SELECT id FROM continuo.conversations WHERE project_id = @project AND NOT deleted`
	isOfUser        = ` AND user_id <> '' AND user_id = @user`
	hasLabels       = ` AND labels IS NOT NULL AND labels @> @labels::jsonb`
)

// windows returns the sizes of the ranges that are read by age, one after the other, as long as each yields
// at least worthwhile hits: terms with fewer hits are rare, and the index of terms is faster for them.
func windows() []int { return []int{2_000, 8_000} }

const worthwhile = 4

// Hits is part of index.Store.
func (s *Store) Hits(ctx context.Context, query index.HitQuery) (found []index.Hit, err error) {
	if err := checkHitQuery(query); err != nil {
		return nil, err
	}
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		found, err = newHitSearch(q, query).run(ctx, query.Limit)
		return err
	})
	return found, err
}

func checkHitQuery(query index.HitQuery) error {
	if query.Limit < 1 || len(query.Terms) == 0 {
		return fmt.Errorf("find places: %w: %d terms and a limit of %d; both must be at least 1", continuo.ErrInvalid, len(query.Terms), query.Limit)
	}
	for _, term := range query.Terms {
		if err := checkTerm(term.Text); err != nil {
			return fmt.Errorf("find places: %w", err)
		}
		if term.Or == "" {
			continue
		}
		if err := checkTerm(term.Or); err != nil {
			return fmt.Errorf("find places: %w", err)
		}
	}
	return nil
}

// AnyHits is part of index.Store.
func (s *Store) AnyHits(ctx context.Context, query index.HitQuery) ([][]index.Hit, error) {
	if err := checkHitQuery(query); err != nil {
		return nil, err
	}
	found := make([][]index.Hit, len(query.Terms))
	err := s.read(ctx, func(ctx context.Context, q querier) error {
		query.Before = index.Hit{}
		search := newHitSearch(q, query)
		args := search.args(0, query.Limit)
		scope := index.Term{Text: projectTerm + query.ProjectID}
		if query.ConversationID != "" {
			scope.Text = conversationTerm + query.ConversationID
		}
		var terms []string
		for _, term := range query.Terms {
			terms = append(terms, tsquery([]index.Term{scope, term}))
		}
		args["terms"] = terms
		conversations := "NULL::text[]"
		if query.ConversationID == "" {
			conversations = "array_agg(conversation_id)"
		}
		statement := strings.NewReplacer("{conversations}", conversations, "{filter}", search.filter).Replace(anyHits)
		clear(found)
		rows, _ := q.Query(ctx, statement, pgx.QueryExecModeExec, args)
		var number int64
		var of []string
		var seq, added []int64
		_, err := pgx.ForEachRow(rows, []any{&number, &of, &seq, &added}, func() error {
			hits := make([]index.Hit, len(seq))
			for i := range hits {
				hits[i] = index.Hit{ConversationID: query.ConversationID, Seq: seq[i], Order: added[i]}
				if query.ConversationID == "" {
					hits[i].ConversationID = of[i]
				}
			}
			found[number-1] = hits
			return nil
		})
		return err
	})
	return found, err
}

// Documents is part of index.Store.
func (s *Store) Documents(ctx context.Context, conversationID string, from, to int64) (found []index.Document, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		rows, _ := q.Query(ctx, selectDocuments, conversationID, max(from, 1), to)
		found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[index.Document])
		return err
	})
	for i := range found {
		found[i].Terms = slices.DeleteFunc(found[i].Terms, func(term string) bool { return term[0] == ':' })
	}
	return found, err
}

// hitSearch finds the hits of one page, moving back in time.
type hitSearch struct {
	querier        querier
	scope          string
	terms          string // as a tsquery
	scoped         string // the terms and the term of the scope
	filter         string // of conversations
	project        string
	user           string
	labels         string // a JSON object
	conversationID string
	from, to       int64
	before         index.Hit
}

func newHitSearch(q querier, query index.HitQuery) *hitSearch {
	p := &hitSearch{
		querier: q, scope: scopeProject, terms: tsquery(query.Terms), project: query.ProjectID,
		conversationID: query.ConversationID, from: query.From, to: query.To,
		filter: hitFilter(query), user: query.UserID, labels: string(rawjson.MustMarshal(query.Labels)),
	}
	scope := index.Term{Text: projectTerm + query.ProjectID}
	if query.ConversationID != "" {
		p.scope, scope.Text = scopeConversation, conversationTerm+query.ConversationID
	}
	p.scoped = tsquery([]index.Term{scope}) + " & " + p.terms
	if p.to == 0 {
		p.to = math.MaxInt64
	}
	if p.before = query.Before; p.before == (index.Hit{}) {
		p.before.Order = math.MaxInt64
	}
	return p
}

// hitFilter is the condition on the conversations of hits.
func hitFilter(query index.HitQuery) string {
	if query.UserID == "" && len(query.Labels) == 0 {
		return "true"
	}
	filter := ofConversations
	if query.UserID != "" {
		filter += isOfUser
	}
	if len(query.Labels) > 0 {
		filter += hasLabels
	}
	return filter + ")"
}

func (p *hitSearch) run(ctx context.Context, limit int) ([]index.Hit, error) {
	var found []index.Hit
	for _, window := range windows() {
		newest, err := p.collect(ctx, newestHits, window, limit-len(found))
		found = append(found, newest...)
		if err != nil || len(found) == limit {
			return found, err
		}
		end, err := p.collect(ctx, windowEnd, window, 1)
		if err != nil || len(end) == 0 { // there are no more documents
			return found, err
		}
		p.before = end[0]
		if len(newest) < worthwhile {
			break
		}
	}
	rare, err := p.collect(ctx, rareHits, 0, limit-len(found))
	return append(found, rare...), err
}

// collect runs one of the statements. The statement is planned at each call, because the plan depends on the
// terms.
func (p *hitSearch) collect(ctx context.Context, statement string, window, limit int) ([]index.Hit, error) {
	statement = strings.NewReplacer("{scope}", p.scope, "{filter}", p.filter).Replace(statement)
	rows, _ := p.querier.Query(ctx, statement, pgx.QueryExecModeExec, p.args(window, limit))
	return pgx.CollectRows(rows, pgx.RowToStructByPos[index.Hit])
}

func (p *hitSearch) args(window, limit int) pgx.NamedArgs {
	return pgx.NamedArgs{
		"terms": p.terms, "scoped": p.scoped, "window": window, "limit": limit, "project": p.project,
		"conversation": p.conversationID, "from": p.from, "to": p.to,
		"order": p.before.Order, "before": p.before.ConversationID, "seq": p.seqBefore(),
		"user": p.user, "labels": p.labels,
	}
}

// seqBefore is the seq that ends the scope among the documents that were added at the same time. In a search
// of one conversation, the previous page's last hit may be of another conversation.
func (p *hitSearch) seqBefore() int64 {
	switch {
	case p.conversationID == "" || p.before.ConversationID == p.conversationID:
		return p.before.Seq
	case p.before.ConversationID > p.conversationID:
		return math.MaxInt64
	}
	return math.MinInt64
}

// tsquery matches documents with all of the terms. Quoting prevents any interpretation of the terms.
func tsquery(terms []index.Term) string {
	quote := strings.NewReplacer(`'`, `''`, `\`, `\\`)
	parts := make([]string, len(terms))
	for i, term := range terms {
		parts[i] = "'" + quote.Replace(term.Text) + "'"
		if term.Or != "" {
			parts[i] = "(" + parts[i] + " | '" + quote.Replace(term.Or) + "')"
			continue
		}
		if term.Prefix {
			parts[i] += ":*"
		}
	}
	return strings.Join(parts, " & ")
}
