package conversations_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/engine/metrics"

	"github.com/continuo-log/continuo/internal/metricstest"

	"github.com/prometheus/client_golang/prometheus"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/model/demo"
	"github.com/continuo-log/continuo/store/storetest"
)

// searching is an engine and the log that it is made over.
type searching struct {
	*engine.Engine
	Log *continuo.Log
}

// searched is an engine over a store, what it counts and what it logs.
func searched(t *testing.T, store maintenance.Store, logText bool) (*searching, *prometheus.Registry, *bytes.Buffer) {
	t.Helper()
	registry, logged := prometheus.NewRegistry(), &bytes.Buffer{}
	log := continuo.NewLog(store, continuo.LogOptions{})
	e, err := engine.New(log, engine.Options{
		Models: map[string]catalog.Upstream{"demo": {Model: &demo.Model{}}}, Default: "demo",
		Index: store, Logger: slog.New(slog.NewTextHandler(logged, nil)), LogText: logText,
	}, metrics.NewMetrics(registry))
	if err != nil {
		t.Fatal(err)
	}
	return &searching{e, log}, registry, logged
}

func TestASearchIsMeasuredAndLoggedWithoutItsWords(t *testing.T) {
	for _, logText := range []bool{false, true} {
		e, registry, logged := searched(t, storetest.NewMemory(), logText)
		conversation, err := e.Log.Import(t.Context(), continuo.Conversation{ProjectID: "p"}, []continuo.Entry{{Role: continuo.User, Content: continuo.Text("a needle")}})
		if err != nil {
			t.Fatal(err)
		}
		result, err := e.Conversations.Search(t.Context(), continuo.Scope{ProjectID: "p"}, index.Request{ProjectID: "another", Query: "needle", Conversation: &conversation})
		if err != nil || len(result.Items) != 1 {
			t.Fatalf("%+v, %v", result, err)
		}
		if got := metricstest.Values(t, registry, "continuo_stage_seconds"); len(got) != 1 || !strings.HasPrefix(got[0], "search 1 ") {
			t.Errorf("measured %q", got)
		}
		line := logged.String()
		if !strings.Contains(line, "msg=searched conversation_id="+conversation.ID) || !strings.Contains(line, "matches=1") || strings.Contains(line, "needle") != logText {
			t.Errorf("logged %s", line)
		}
	}
}

// flaky is a store whose index may fail.
type flaky struct {
	maintenance.Store
	mu  sync.Mutex
	err error
}

func (f *flaky) fails(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *flaky) Index(ctx context.Context, batch index.Batch) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	return f.Store.Index(ctx, batch)
}

func TestTheIndexIsKeptUpToTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &flaky{Store: storetest.NewMemory()}
		e, _, logged := searched(t, store, false)
		conversation, err := e.Log.Create(t.Context(), continuo.Conversation{Title: "needle"})
		if err != nil {
			t.Fatal(err)
		}
		waits := func() bool {
			waiting, err := store.Unindexed(t.Context(), index.UnindexedQuery{Limit: 1})
			if err != nil {
				t.Fatal(err)
			}
			return len(waiting) > 0
		}
		ctx, stop := context.WithCancel(t.Context())
		var watch sync.WaitGroup
		watch.Go(func() { e.Conversations.WatchIndex(ctx, time.Second) })
		beat := func() {
			time.Sleep(3 * time.Second)
			synctest.Wait()
		}
		for range 3 {
			if _, err := e.Log.Append(t.Context(), conversation.ID, []continuo.Entry{{Role: continuo.User, Content: continuo.Text("needle")}}, continuo.AppendOptions{}); err != nil {
				t.Fatal(err)
			}
			if beat(); waits() {
				t.Error("the index is behind the log")
			}
		}
		store.fails(errors.New("no index today"))
		if _, err := e.Log.Append(t.Context(), conversation.ID, []continuo.Entry{{Role: continuo.User, Content: continuo.Text("needle")}}, continuo.AppendOptions{}); err != nil {
			t.Fatal(err)
		}
		beat()
		beat()
		if store.fails(nil); !waits() {
			t.Error("the store took what it should not")
		}
		if beat(); waits() {
			t.Error("the index is behind the log after a failure")
		}
		stop()
		watch.Wait()
		if strings.Count(logged.String(), "no index today") != 1 {
			t.Errorf("logged %s", logged)
		}
	})
}

// TestASearchMarksWhatAClientDeleted: the log still has it. In one conversation and in all; a fork from before has it unmarked.
func TestASearchMarksWhatAClientDeleted(t *testing.T) {
	e, _, _ := searched(t, storetest.NewMemory(), false)
	said := func(text string) continuo.Entry {
		return continuo.Entry{Role: continuo.User, Content: continuo.Text(text)}
	}
	of, err := e.Log.Import(t.Context(), continuo.Conversation{ProjectID: "p"}, []continuo.Entry{said("a needle"), said("another needle")})
	if err != nil {
		t.Fatal(err)
	}
	fork, err := e.Log.Fork(t.Context(), of.ID, 0, continuo.Conversation{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Log.Append(t.Context(), of.ID, []continuo.Entry{continuo.DeletionOf(1, "item")}, continuo.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	if of, err = e.Log.Conversation(t.Context(), of.ID); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		in   *continuo.Conversation
		want map[int64]bool
	}{
		"the conversation":   {&of, map[int64]bool{1: true, 2: false}},
		"all of the project": {nil, map[int64]bool{1: true, 2: false}},
		"the fork":           {&fork, map[int64]bool{1: false, 2: false}},
	} {
		result, err := e.Conversations.Search(t.Context(), continuo.Scope{ProjectID: "p"}, index.Request{Query: "needle", Conversation: test.in})
		if err != nil {
			t.Fatal(err)
		}
		got := map[int64]bool{}
		for _, item := range result.Items {
			got[item.Seq] = item.Deleted
		}
		if !maps.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
