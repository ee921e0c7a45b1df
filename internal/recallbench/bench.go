// Package recallbench measures how much of annotated evidence the contexts of conversations hold: each conversation is put
// into a store, and for each question the context is built that the question would get as the next message.
package recallbench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/internal/evidence"
	"github.com/continuo-log/continuo/model/demo"
	"github.com/continuo-log/continuo/recall/lookup"
	"github.com/continuo-log/continuo/store/sqlite"
	"github.com/continuo-log/continuo/window"
)

// Setting is one way to build contexts.
type Setting struct {
	View   string       // default recall
	Tokens int          // 0: the view's own
	Scope  lookup.Scope // of the view recall; default conversation
	Off    bool         // no turn recalls anything
}

// Options says what is measured.
type Options struct {
	Settings []Setting
	// Sessions makes a conversation of each session, all of one user, and asks in the last one.
	Sessions bool
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
	folder, err := os.MkdirTemp("", "continuo-eval-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	store, err := sqlite.Open(ctx, filepath.Join(folder, "log.db"), sqlite.Options{Synchronous: sqlite.Normal})
	if err != nil {
		return err
	}
	defer store.Close()
	log := continuo.NewLog(store, continuo.LogOptions{})
	places, asked, err := load(ctx, log, c, options.Sessions)
	if err != nil {
		return err
	}
	engines := map[bool]*engine.Engine{}
	for _, off := range []bool{false, true} {
		views := window.DefaultSettings()
		if off {
			views.RecallShare = 0
		}
		engines[off], err = engine.New(log, engine.Options{
			Models: map[string]catalog.Upstream{"demo": {Model: demo.New(demo.Options{})}}, Default: "demo", Views: &views, Index: store,
		}, nil)
		if err != nil {
			return err
		}
		defer engines[off].Close(ctx)
	}
	for _, q := range c.Questions {
		if len(q.Evidence) == 0 {
			continue
		}
		for i, setting := range options.Settings {
			request := engine.ContextRequest{View: setting.View, Query: q.Question, Scope: setting.Scope}
			if request.View == "" {
				request.View = catalog.RecallView
			}
			if setting.Tokens > 0 {
				request.MaxTokens = &setting.Tokens
			}
			shown, err := engines[setting.Off].Contexts.Build(ctx, asked, request)
			if err != nil {
				return fmt.Errorf("question %q: %w", q.Question, err)
			}
			has := holds(shown.Plan, asked.ID)
			for _, category := range []string{"", q.Category} {
				if results[i][category] == nil {
					results[i][category] = &evidence.Score{}
				}
				results[i][category].Add(q.Evidence, func(message int) bool { return has[places[message]] })
			}
		}
	}
	return nil
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
func holds(plan *window.Plan, id string) map[place]bool {
	has := map[place]bool{}
	for _, item := range plan.Items {
		switch {
		case item.Recall != nil && !item.Recall.Passage && item.Recall.ConversationID != "":
			has[place{item.Recall.ConversationID, item.Seq}] = true
		case item.Verdict == window.Kept, item.Recall != nil && !item.Recall.Passage:
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
