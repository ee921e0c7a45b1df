package postgres

import (
	"context"
	"errors"
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
// the order of their age and compared one by one. The index of terms has no order: in a large scope it is asked for those of
// the newest periods first, and for all only when these are too few. So a page takes about the same time however many
// documents there are.
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

	newestDocument = `
SELECT added, project_id FROM continuo.documents WHERE {scope} ORDER BY added DESC, conversation_id DESC, seq DESC LIMIT 1`

	// MATERIALIZED keeps the planner from reading by age, past all documents without the terms.
	rareHits = `
WITH found AS MATERIALIZED (
  SELECT conversation_id, seq, added FROM continuo.documents WHERE terms @@ @scoped::tsquery AND {scope} AND {filter})
SELECT conversation_id, seq, added FROM found
ORDER BY added DESC, conversation_id DESC, seq DESC LIMIT @limit`

	selectDocuments = `
SELECT seq, added, tsvector_to_array(terms) FROM continuo.documents WHERE conversation_id = $1 AND seq BETWEEN $2 AND $3 ORDER BY seq`

	// Each document has additional terms, for its conversation, its project, and its periods. They begin with a colon,
	// which no term of a text does, and so no prefix search finds them.
	conversationTerm = ":c"
	projectTerm      = ":p"

	scopeProject      = `project_id = @project AND (added, conversation_id, seq) < (@order, @before, @seq) AND seq BETWEEN @from AND @to`
	scopeConversation = `conversation_id = @conversation AND (added, seq) < (@order, @seq) AND seq BETWEEN @from AND @to`

	// Narrows hits to those of some conversations.
	noFilter            = `true`
	selectConversations = `SELECT id FROM continuo.conversations WHERE project_id = @project AND NOT deleted`
	isOfUser            = ` AND user_id <> '' AND user_id = @user`
	hasLabels           = ` AND labels IS NOT NULL AND labels @> @labels::jsonb`
)

// ageWindow is how many documents are read by age before the index of terms is asked.
const ageWindow = 2_000

// Hits is part of index.Store.
func (s *Store) Hits(ctx context.Context, query index.HitQuery) (found []index.Hit, err error) {
	if err := checkHitQuery(query); err != nil {
		return nil, err
	}
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		search, err := newHitSearch(ctx, q, query)
		if err == nil {
			found, err = search.run(ctx, query.Limit)
		}
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
	scoped         string // the terms and those of the scope
	within         string // the scope as a tsquery
	filter         string // of conversations
	few            bool   // the scope is some conversations, by their terms
	project        string
	user           string
	labels         string // a JSON object
	conversationID string
	from, to       int64
	before         index.Hit
}

func newHitSearch(ctx context.Context, q querier, query index.HitQuery) (*hitSearch, error) {
	p := &hitSearch{
		querier: q, scope: scopeProject, terms: tsquery(query.Terms), project: query.ProjectID,
		conversationID: query.ConversationID, from: query.From, to: query.To,
		filter: noFilter, user: query.UserID, labels: string(rawjson.MustMarshal(query.Labels)),
	}
	scope := []index.Term{{Text: projectTerm + query.ProjectID}}
	if query.ConversationID != "" {
		p.scope, scope[0].Text = scopeConversation, conversationTerm+query.ConversationID
	}
	p.within = anyOf(scope)
	if p.to == 0 {
		p.to = math.MaxInt64
	}
	if p.before = query.Before; p.before == (index.Hit{}) {
		p.before.Order = math.MaxInt64
	}
	err := p.narrow(ctx, query)
	p.scoped = p.within + " & " + p.terms
	return p, err
}

// maxNamed is how many conversations are looked up by their terms. Where there are more, all hits of the project are filtered.
const maxNamed = 64

// narrow filters hits by the user and the labels of their conversations. Where these conversations are few, their terms take the
// place of the filter.
func (p *hitSearch) narrow(ctx context.Context, query index.HitQuery) error {
	if query.UserID == "" && len(query.Labels) == 0 {
		return nil
	}
	conversations := selectConversations
	if query.UserID != "" {
		conversations += isOfUser
	}
	if len(query.Labels) > 0 {
		conversations += hasLabels
	}
	p.filter = "conversation_id IN (" + conversations + ")"
	if p.conversationID != "" {
		return nil
	}
	rows, _ := p.querier.Query(ctx, conversations+` LIMIT @limit`, p.args(0, maxNamed+1))
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(ids) > maxNamed {
		return err
	}
	var named []index.Term
	for _, id := range append(ids, "") { // none is no query
		named = append(named, index.Term{Text: conversationTerm + id})
	}
	p.few, p.within, p.filter = true, anyOf(named), noFilter
	return nil
}

func (p *hitSearch) run(ctx context.Context, limit int) ([]index.Hit, error) {
	if p.few {
		return p.collect(ctx, rareHits, 0, limit)
	}
	found, err := p.collect(ctx, newestHits, ageWindow, limit)
	if err != nil || len(found) == limit {
		return found, err
	}
	end, err := p.collect(ctx, windowEnd, ageWindow, 1)
	if err != nil || len(end) == 0 { // there are no more documents
		return found, err
	}
	seen := pace{oldest: end[0].Order, documents: ageWindow}
	err = p.querier.QueryRow(ctx, strings.Replace(newestDocument, "{scope}", p.scope, 1), p.args(0, 1)).Scan(&seen.newest, &seen.project)
	if errors.Is(err, pgx.ErrNoRows) { // they were removed meanwhile
		return found, nil
	}
	if err != nil {
		return found, err
	}
	p.before = end[0]
	if recent, since := seen.periodsOf(documentsWith(limit-len(found), len(found), ageWindow), p.before.Order); recent != "" {
		scoped := p.scoped
		p.scoped = p.inPeriods(recent) + " & " + p.terms
		more, err := p.collect(ctx, rareHits, 0, limit-len(found))
		p.scoped = scoped
		found = append(found, more...)
		if err != nil || len(found) == limit {
			return found, err
		}
		p.before = index.Hit{Order: since} // those since then are found
	}
	rare, err := p.collect(ctx, rareHits, 0, limit-len(found))
	return append(found, rare...), err
}

// inPeriods is the scope within periods, which are of one project.
func (p *hitSearch) inPeriods(periods string) string {
	if p.conversationID == "" {
		return periods
	}
	return p.within + " & " + periods
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

// anyOf matches documents with any of the terms.
func anyOf(terms []index.Term) string {
	parts := make([]string, len(terms))
	for i := range terms {
		parts[i] = tsquery(terms[i : i+1])
	}
	return "(" + strings.Join(parts, " | ") + ")"
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
