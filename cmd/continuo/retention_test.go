package main

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/audit"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/model/demo"
	"github.com/continuo-log/continuo/store/storetest"
)

// Retention removes by kind and mode what has not changed for so long, in every project, and nothing else.
func TestRetention(t *testing.T) {
	store := storetest.NewMemory()
	log := continuo.NewLog(store, continuo.LogOptions{})
	made, err := engine.New(log, engine.Options{Models: map[string]engine.Upstream{"demo": {Model: demo.New(demo.Options{})}}, Default: "demo"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = made.Close(t.Context()) })
	now := time.Date(2026, 3, 15, 12, 0, 0, 0, time.UTC)
	add := func(id string, kind continuo.Kind, mode continuo.Mode, days int) {
		t.Helper()
		at := now.AddDate(0, 0, -days)
		err := store.Create(t.Context(), continuo.Conversation{ID: id, ProjectID: continuo.DefaultProject, Kind: kind, ActiveMode: mode, CreatedAt: at, UpdatedAt: at}, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	add("old-chat", continuo.KindUser, continuo.ModeChat, 31)
	add("new-chat", continuo.KindUser, continuo.ModeChat, 29)
	add("old-agent", continuo.KindUser, continuo.ModeAgent, 31)
	add("oldest-agent", continuo.KindUser, continuo.ModeAgent, 91)
	add("old-side", continuo.KindSide, continuo.ModeChat, 8)
	add("new-side", continuo.KindSide, continuo.ModeChat, 6)
	add("old-task", continuo.KindTask, continuo.ModeChat, 400)
	const day = 24 * time.Hour
	var actions []string
	w := &services{settings: &config.Config{Project: continuo.DefaultProject}, store: store, log: log, engine: made}
	trail := audit.NewTrail(store, audit.Options{})
	defer trail.Close()
	kept := retention{
		w: w, trail: trail, logger: slog.New(slog.DiscardHandler), now: func() time.Time { return now }, removed: func(action string) { actions = append(actions, action) },
		rules: retentionRules(config.RetentionConfig{ChatDeleteAfter: 30 * day, DeleteAfter: 90 * day, SideDeleteAfter: 7 * day}),
	}
	for range 2 { // the second time nothing is left to do
		if err := kept.apply(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	left, err := store.ConversationIDs(t.Context(), "", 100)
	if err != nil || !slices.Equal(left, []string{"new-chat", "new-side", "old-agent", "old-task"}) {
		t.Errorf("%v: left are %q", err, left)
	}
	if !slices.Equal(actions, []string{"deleted", "deleted", "deleted"}) {
		t.Errorf("actions %q", actions)
	}
	events, err := store.AuditEvents(t.Context(), audit.Query{Limit: 10})
	var recorded []string
	for _, e := range events {
		recorded = append(recorded, string(e.Origin)+" "+e.Operation+" "+e.ConversationID)
	}
	slices.Sort(recorded)
	want := []string{"server retention.deleted old-chat", "server retention.deleted old-side", "server retention.deleted oldest-agent"}
	if err != nil || !slices.Equal(recorded, want) {
		t.Errorf("%v: recorded are %q", err, recorded)
	}
}
