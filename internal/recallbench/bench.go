// Package recallbench measures how much of annotated evidence the contexts of conversations hold: each conversation is put
// into a store, and for each question the context is built that the question would get as the next message.
package recallbench

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/engine/contexts"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/internal/evidence"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/model/demo"
	"github.com/continuo-log/continuo/recall/lookup"
	"github.com/continuo-log/continuo/recall/reorder"
	"github.com/continuo-log/continuo/recall/vector"
	"github.com/continuo-log/continuo/token"
	"github.com/continuo-log/continuo/window"
)

// Setting is one way to build contexts.
type Setting struct {
	// View is a view of contexts, or role:KIND for a role of a crew with a view of that kind, which has read the conversation.
	// Default recall.
	View   string
	Tokens int          // 0: the view's own
	Scope  lookup.Scope // of the view recall; default conversation
	Off    bool         // no turn recalls anything
	// Located counts evidence of which the context shows a passage, too. The view recall then shows passages of long messages.
	Located bool
}

// Options says what is measured.
type Options struct {
	Settings []Setting
	// Sessions makes a conversation of each session, all of one user, and asks in the last one.
	Sessions bool
	// Embedder makes embeddings of all messages and questions. Default none.
	Embedder vector.Embedder
	// Reranker reorders the first entries. Default none.
	Reranker reorder.Reranker
	// Threshold is the least probability of what turns recall, in millionths. Default recalls.DefaultThreshold.
	Threshold int
	// Open opens the stores. Default temporary ones of SQLite.
	Open Open
	// Progress is called after each conversation.
	Progress func(done, all int)
}

// Result is what a setting reached, by category; "" is all questions.
type Result map[string]*evidence.Score

// Measure builds the contexts for all questions with evidence.
func Measure(ctx context.Context, conversations []evidence.Conversation, options Options) ([]Result, error) {
	results := make([]Result, len(options.Settings))
	for i := range results {
		results[i] = Result{}
	}
	for i := range conversations {
		if err := measureOne(ctx, &conversations[i], options, results); err != nil {
			return nil, fmt.Errorf("conversation %s: %w", conversations[i].ID, err)
		}
		if options.Progress != nil {
			options.Progress(i+1, len(conversations))
		}
	}
	return results, nil
}

func measureOne(ctx context.Context, c *evidence.Conversation, options Options, results []Result) error {
	return options.Open.with(ctx, func(store maintenance.Store) error {
		log := continuo.NewLog(store, continuo.LogOptions{Counter: token.O200k()})
		places, asked, err := load(ctx, log, c, options.Sessions)
		if err != nil {
			return err
		}
		if err := makeIndex(ctx, log, store, options.Embedder); err != nil {
			return err
		}
		roles := map[bool]crewOf{}
		for _, off := range []bool{true, false} {
			if roles[off], err = newCrew(options.Settings, off); err != nil {
				return err
			}
		}
		engines, err := enginesOf(log, store, roles, options)
		if err != nil {
			return err
		}
		for _, e := range engines {
			defer e.Close(ctx)
		}
		for _, off := range []bool{true, false} {
			if asked, err = roles[off].shown(ctx, engines[off], log, asked); err != nil {
				return err
			}
		}
		for _, q := range c.Questions {
			for i, setting := range options.Settings {
				if err := measureQuestion(ctx, engines[setting.Off], asked, &q, setting, places, results[i]); err != nil {
					return fmt.Errorf("question %q: %w", q.Question, err)
				}
			}
		}
		return nil
	})
}

// makeIndex indexes all that is in a store, as a server does in the background, and makes its embeddings as far as the embedder,
// if there is one, can.
func makeIndex(ctx context.Context, log *continuo.Log, store maintenance.Store, embedder vector.Embedder) error {
	if _, err := (index.Indexer{Log: log, Store: store}).Run(ctx, index.Scope{}, time.Time{}); err != nil {
		return err
	}
	if embedder == nil {
		return nil
	}
	if err := (vector.Runner{Log: log, Store: store, Embedder: embedder}).Run(ctx); err != nil && ctx.Err() != nil {
		return err
	}
	return nil // what has no vectors is found by its words
}

// enginesOf makes an engine whose turns recall, and one whose turns do not (true).
func enginesOf(log *continuo.Log, store maintenance.Store, roles map[bool]crewOf, options Options) (map[bool]*engine.Engine, error) {
	engines := map[bool]*engine.Engine{}
	for _, off := range []bool{false, true} {
		views := window.DefaultSettings()
		if off {
			views.RecallShare = 0
		}
		e, err := newEngine(log, store, roles[off].withCrew(engine.Options{Views: &views, Embedder: options.Embedder, Reranker: options.Reranker, RecallThreshold: options.Threshold}))
		if err != nil {
			return nil, err
		}
		engines[off] = e
	}
	return engines, nil
}

func newEngine(log *continuo.Log, store maintenance.Store, options engine.Options) (*engine.Engine, error) {
	if options.Models == nil {
		options.Models = map[string]catalog.Upstream{}
	}
	options.Models["demo"] = catalog.Upstream{Model: demo.New(demo.Options{})}
	options.Default, options.Index = "demo", store
	return engine.New(log, options, nil)
}

func measureQuestion(ctx context.Context, e *engine.Engine, asked continuo.Conversation, q *evidence.Question, setting Setting, places []place, result Result) error {
	if len(q.Evidence) == 0 {
		return nil
	}
	request := engine.ContextRequest{View: cmp.Or(setting.View, catalog.RecallView), Query: q.Question, Scope: setting.Scope}
	request.Passages = setting.Located && request.View == catalog.RecallView
	if strings.HasPrefix(request.View, contexts.RoleViewPrefix) {
		request.View, request.Crew = contexts.RoleViewPrefix+roleName(&setting), crewID(setting.Off)
	} else if setting.Tokens > 0 {
		request.MaxTokens = &setting.Tokens
	}
	shown, err := e.Contexts.Build(ctx, asked, request)
	if err != nil {
		return err
	}
	has := holds(shown.Plan, asked.ID)
	if setting.Located {
		has = locates(shown.Plan, asked.ID)
	}
	result.add(q, func(message int) bool { return has[places[message]] })
	return nil
}

// add counts a question, in all and in its category.
func (r Result) add(q *evidence.Question, has func(message int) bool) {
	for _, category := range []string{"", q.Category} {
		if r[category] == nil {
			r[category] = &evidence.Score{}
		}
		r[category].Add(q.Evidence, has)
	}
}

// place is where a message is.
type place struct {
	conversation string
	seq          int64
}

// load writes a conversation, and returns the places of its messages, and the conversation in which questions are asked.
func load(ctx context.Context, log *continuo.Log, c *evidence.Conversation, sessions bool) ([]place, continuo.Conversation, error) {
	var places []place
	var stored continuo.Conversation
	for first := 0; first < len(c.Messages); {
		after := first + 1
		for after < len(c.Messages) && (!sessions || string(c.Messages[after].Session) == string(c.Messages[first].Session)) {
			after++
		}
		var entries []continuo.Entry
		for i := first; i < after; i++ {
			m := &c.Messages[i]
			entries = append(entries, continuo.Entry{Role: m.Role, Content: continuo.Text(m.Text()), Name: m.Name, CreatedAt: m.At()})
		}
		var err error
		if stored, err = log.Import(ctx, continuo.Conversation{UserID: "user", CreatedAt: entries[0].CreatedAt}, entries); err != nil {
			return nil, stored, err
		}
		for i := range entries {
			places = append(places, place{stored.ID, int64(i + 1)})
		}
		first = after
	}
	return places, stored, nil
}

// holds returns the places of the entries that a plan shows whole.
func holds(plan *window.Plan, id string) map[place]bool { return shownPlaces(plan, id, false) }

// locates returns the places of the entries of which a plan shows a passage at least.
func locates(plan *window.Plan, id string) map[place]bool { return shownPlaces(plan, id, true) }

func shownPlaces(plan *window.Plan, id string, passages bool) map[place]bool {
	has := map[place]bool{}
	for _, item := range plan.Items {
		switch {
		case item.Recall != nil && item.Recall.Passage && !passages:
		case item.Recall != nil && item.Recall.ConversationID != "":
			has[place{item.Recall.ConversationID, item.Seq}] = true
		case item.Verdict == window.Kept, item.Recall != nil:
			for seq := item.Seq; seq <= max(item.Seq, item.Through); seq++ {
				has[place{id, seq}] = true
			}
		}
	}
	return has
}

// MarshalJSON writes the means.
func (r Result) MarshalJSON() ([]byte, error) {
	type row struct {
		Questions int     `json:"questions"`
		Recall    float64 `json:"recall"`
		Full      float64 `json:"full"`
	}
	rows := map[string]row{}
	for category, score := range r {
		recall, full := score.Means()
		if category == "" {
			category = "all"
		}
		rows[category] = row{score.Questions, recall, full}
	}
	return json.Marshal(rows)
}
