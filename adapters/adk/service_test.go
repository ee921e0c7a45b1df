package adk

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/session/sessiontestsuite"
	"google.golang.org/genai"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/adapters/internal/killtest"
	"github.com/continuo-log/continuo/store/sqlite"
)

func openLog(t testing.TB) *continuo.Log {
	t.Helper()
	return openLogAt(t, filepath.Join(t.TempDir(), "adk.db"))
}

func openLogAt(t testing.TB, path string) *continuo.Log {
	t.Helper()
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return continuo.NewLog(store, continuo.LogOptions{})
}

// ADK's own suite for session services.
func TestSuite(t *testing.T) {
	sessiontestsuite.RunServiceTests(t, sessiontestsuite.SuiteOptions{SupportsUserProvidedSessionID: true}, func(t *testing.T) session.Service {
		return New(openLog(t), Options{})
	})
}

func event(id, author string, parts ...*genai.Part) *session.Event {
	role := genai.RoleModel
	if author == "user" {
		role = genai.RoleUser
	}
	return &session.Event{
		ID: id, Author: author, InvocationID: "inv", Timestamp: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC),
		LLMResponse: model.LLMResponse{Content: &genai.Content{Role: role, Parts: parts}},
	}
}

// A session with calls and results is an ordinary conversation, and ADK gets back what it gave, in another process too.
func TestEventsAreEntries(t *testing.T) {
	path := filepath.Join(t.TempDir(), "adk.db")
	log := openLogAt(t, path)
	service := New(log, Options{})
	created, err := service.Create(t.Context(), &session.CreateRequest{AppName: "shop", UserID: "ada", SessionID: "s/1 ü"})
	if err != nil {
		t.Fatal(err)
	}
	given := []*session.Event{
		event("1", "user", &genai.Part{Text: "How many lamps?"}),
		event("2", "clerk", &genai.Part{Text: "I count.", Thought: true}, &genai.Part{FunctionCall: &genai.FunctionCall{ID: "c1", Name: "stock", Args: map[string]any{"article": "lamp"}}}),
		event("3", "user", &genai.Part{Text: "Are you there?"}), // between a call and its result
		event("4", "clerk", &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: "c1", Name: "stock", Response: map[string]any{"n": float64(7)}}}),
		event("5", "clerk", &genai.Part{Text: "Seven."}),
		event("6", "user", &genai.Part{Text: "Like this one?"}, &genai.Part{InlineData: &genai.Blob{MIMEType: "image/png", Data: []byte{1, 2, 3}}}),
		{ID: "7", Author: "clerk", Timestamp: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)},
	}
	for _, e := range given {
		if err := service.AppendEvent(t.Context(), created.Session, e); err != nil {
			t.Fatal(err)
		}
	}
	for name, reader := range map[string]*Service{"the same process": service, "another one": New(openLogAt(t, path), Options{})} {
		got, err := reader.Get(t.Context(), &session.GetRequest{AppName: "shop", UserID: "ada", SessionID: "s/1 ü"})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(given, sessiontestsuite.Snapshot(got.Session).Events); diff != "" {
			t.Errorf("%s (-given +got):\n%s", name, diff)
		}
	}
	conversation, err := log.Find(t.Context(), continuo.Scope{ProjectID: continuo.DefaultProject, UserID: "ada"}, sessionKey("shop", "ada", "s/1 ü"))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for entry, err := range log.Read(t.Context(), conversation, continuo.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		hidden := ""
		if entry.Hidden {
			hidden = " hidden"
		}
		lines = append(lines, fmt.Sprintf("%s%s %s %d", entry.Role, hidden, entry.Content, len(entry.ToolCalls)))
	}
	want := "user How many lamps? 0\nassistant  1\nsystem hidden Are you there? 0\ntool {\"n\":7} 0\nassistant Seven. 0\nuser Like this one?\n[image/png, 3 bytes] 0\nsystem hidden  0"
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("entries:\n%s\nwant:\n%s", got, want)
	}
}

// Two services that change the state of one app at once lose no change.
func TestSharedStateIsChangedAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "adk.db")
	services := []*Service{New(openLogAt(t, path), Options{}), New(openLogAt(t, path), Options{})}
	var wait sync.WaitGroup
	const each = 10
	for n, service := range services {
		wait.Go(func() {
			made, err := service.Create(context.Background(), &session.CreateRequest{AppName: "shop", UserID: fmt.Sprint("user", n)})
			for i := range each {
				if err == nil {
					e := event(fmt.Sprint(i), "clerk", &genai.Part{Text: "ok"})
					e.Actions.StateDelta = map[string]any{fmt.Sprintf("app:%d-%d", n, i): true}
					err = service.AppendEvent(context.Background(), made.Session, e)
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	state, err := services[0].shared(t.Context(), "shop", "user0")
	if err != nil || len(state) != 2*each {
		t.Errorf("%d keys, %v", len(state), err)
	}
}

// A redaction removes the event with its text.
func TestRedactedEventsAreGone(t *testing.T) {
	log := openLog(t)
	service := New(log, Options{})
	made, err := service.Create(t.Context(), &session.CreateRequest{AppName: "shop", UserID: "ada", SessionID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"my PIN is 0000", "thanks"} {
		if err := service.AppendEvent(t.Context(), made.Session, event(text, "user", &genai.Part{Text: text})); err != nil {
			t.Fatal(err)
		}
	}
	conversation, err := service.find(t.Context(), "shop", "ada", "s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Redact(t.Context(), conversation, 1, 1, "a PIN"); err != nil {
		t.Fatal(err)
	}
	got, err := service.Get(t.Context(), &session.GetRequest{AppName: "shop", UserID: "ada", SessionID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(sessiontestsuite.Snapshot(got.Session).Events)
	if err != nil || strings.Contains(string(data), "0000") || !strings.Contains(string(data), "thanks") {
		t.Errorf("%s, %v", data, err)
	}
}

// Every event that was acknowledged is there after the process was killed, with its change of the states of its session, user and
// app.
func TestKill(t *testing.T) {
	keys := []string{"n", session.KeyPrefixUser + "n", session.KeyPrefixApp + "n"}
	path, acknowledged := killtest.Run(t, 25, func(path string) func(int) error {
		service := New(openLogAt(t, path), Options{})
		made, err := service.Create(t.Context(), &session.CreateRequest{AppName: "shop", UserID: "ada", SessionID: "s"})
		if err != nil {
			t.Fatal(err)
		}
		return func(i int) error {
			e := event(fmt.Sprint(i), "user", &genai.Part{Text: "x"})
			e.Actions.StateDelta = map[string]any{}
			for _, key := range keys {
				e.Actions.StateDelta[key] = i
			}
			return service.AppendEvent(t.Context(), made.Session, e)
		}
	})
	got, err := New(openLogAt(t, path), Options{}).Get(t.Context(), &session.GetRequest{AppName: "shop", UserID: "ada", SessionID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	events := got.Session.Events()
	if n := events.Len(); n < acknowledged || n > acknowledged+1 {
		t.Fatalf("%d events of %d", n, acknowledged)
	}
	last := events.Len() - 1
	if id := events.At(last).ID; id != fmt.Sprint(last) {
		t.Errorf("the last event is %s, want %d", id, last)
	}
	for _, key := range keys {
		value, err := got.Session.State().Get(key)
		// The states of a user and an app are committed before the event.
		if err != nil || value != float64(last) && (key == "n" || value != float64(last+1)) {
			t.Errorf("the state %s is %v, %v; want %d", key, value, err, last)
		}
	}
}
