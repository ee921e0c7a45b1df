package trpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"trpc.group/trpc-go/trpc-agent-go/event"
	"trpc.group/trpc-go/trpc-agent-go/model"
	"trpc.group/trpc-go/trpc-agent-go/session"
	"trpc.group/trpc-go/trpc-agent-go/session/inmemory"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/adapters/internal/killtest"
	"github.com/continuo-log/continuo/store/sqlite"
)

func openLog(t testing.TB) *continuo.Log {
	t.Helper()
	return openLogAt(t, filepath.Join(t.TempDir(), "trpc.db"))
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

var (
	ctx  = context.Background()
	ada  = session.UserKey{AppName: "shop", UserID: "ada"}
	key  = session.Key{AppName: "shop", UserID: "ada", SessionID: "s/1 ü"}
	noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
)

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func message(id string, minute int, m model.Message) *event.Event {
	author := string(m.Role)
	if m.Role == model.RoleAssistant {
		author = "clerk"
	}
	return &event.Event{
		ID: id, Author: author, InvocationID: "inv", Timestamp: noon.Add(time.Duration(minute) * time.Minute), Version: event.CurrentVersion,
		Response: &model.Response{ID: "r-" + id, Done: true, Timestamp: noon, Choices: []model.Choice{{Message: m}}},
	}
}

func said(id string, minute int, role model.Role, text string) *event.Event {
	return message(id, minute, model.Message{Role: role, Content: text})
}

func calling(id string, minute int, calls ...string) *event.Event {
	m := model.Message{Role: model.RoleAssistant, ReasoningContent: "I count."}
	for _, c := range calls {
		m.ToolCalls = append(m.ToolCalls, model.ToolCall{ID: c, Type: "function", Function: model.FunctionDefinitionParam{Name: "stock", Arguments: []byte(`{"article":"lamp"}`)}})
	}
	return message(id, minute, m)
}

func results(id string, minute int, calls ...string) *event.Event {
	e := message(id, minute, model.Message{Role: model.RoleTool})
	e.Choices = nil
	for i, c := range calls {
		e.Choices = append(e.Choices, model.Choice{Index: i, Message: model.Message{Role: model.RoleTool, ToolID: c, ToolName: "stock", Content: `{"n":7}`}})
	}
	return e
}

func ids(events []event.Event) (all []string) {
	for _, e := range events {
		all = append(all, e.ID)
	}
	return all
}

// The cases of tRPC-Agent-Go's tests of its stores, by what they demand: it exports no suite. Its own store in memory runs
// beside Continuo's, so that a case that is wrong of it fails.
func TestServices(t *testing.T) {
	services := map[string]func(t *testing.T) session.Service{
		"continuo": func(t *testing.T) session.Service { return New(openLog(t), Options{}) },
		"inmemory": func(*testing.T) session.Service { return inmemory.NewSessionService() },
	}
	for name, open := range services {
		for _, c := range cases {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				service := open(t)
				defer service.Close()
				c.run(t, service)
			})
		}
	}
}

func create(t *testing.T, service session.Service, key session.Key, state session.StateMap) *session.Session {
	t.Helper()
	sess, err := service.CreateSession(ctx, key, state)
	must(t, err)
	return sess
}

func get(t *testing.T, service session.Service, key session.Key, options ...session.Option) *session.Session {
	t.Helper()
	sess, err := service.GetSession(ctx, key, options...)
	must(t, err)
	if sess == nil {
		t.Fatal("there is no such session")
	}
	return sess
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

var cases = []struct {
	name string
	run  func(t *testing.T, service session.Service)
}{
	{"a session begins with its state", func(t *testing.T, service session.Service) {
		sess := create(t, service, key, session.StateMap{"a": []byte("1"), "none": nil})
		equal(t, "key", keyOf(sess), key)
		for _, s := range []*session.Session{sess, get(t, service, key)} {
			equal(t, "state", s.SnapshotState(), session.StateMap{"a": []byte("1"), "none": nil})
		}
	}},
	{"an id is made where none is given", func(t *testing.T, service session.Service) {
		one := create(t, service, session.Key{AppName: "shop", UserID: "ada"}, nil)
		two := create(t, service, session.Key{AppName: "shop", UserID: "ada"}, nil)
		if one.ID == "" || one.ID == two.ID {
			t.Errorf("ids %q and %q", one.ID, two.ID)
		}
	}},
	{"keys are checked", func(t *testing.T, service session.Service) {
		_, noApp := service.CreateSession(ctx, session.Key{UserID: "u"}, nil)
		_, noUser := service.CreateSession(ctx, session.Key{AppName: "a"}, nil)
		_, noID := service.GetSession(ctx, session.Key{AppName: "a", UserID: "u"})
		_, list := service.ListSessions(ctx, session.UserKey{AppName: "a"})
		removed := service.DeleteSession(ctx, session.Key{AppName: "a", UserID: "u"})
		appended := service.AppendEvent(ctx, &session.Session{AppName: "a", UserID: "u"}, said("e", 0, model.RoleUser, "x"))
		equal(t, "errors", []error{noApp, noUser, noID, list, removed, appended, service.UpdateAppState(ctx, "", nil), service.UpdateUserState(ctx, session.UserKey{AppName: "a"}, nil)},
			[]error{session.ErrAppNameRequired, session.ErrUserIDRequired, session.ErrSessionIDRequired, session.ErrUserIDRequired, session.ErrSessionIDRequired, session.ErrSessionIDRequired, session.ErrAppNameRequired, session.ErrUserIDRequired})
	}},
	{"what does not exist", func(t *testing.T, service session.Service) {
		none, err := service.GetSession(ctx, key)
		if none != nil || err != nil {
			t.Errorf("a session: %v, %v", none, err)
		}
		list, err := service.ListSessions(ctx, ada)
		if len(list) != 0 || err != nil {
			t.Errorf("sessions: %v, %v", list, err)
		}
		must(t, service.DeleteSession(ctx, key), service.DeleteAppState(ctx, "shop", "x"), service.DeleteUserState(ctx, ada, "x"))
		if service.AppendEvent(ctx, session.NewSession("shop", "ada", "none"), said("e", 0, model.RoleUser, "x")) == nil {
			t.Error("an event was appended to no session")
		}
		if service.UpdateSessionState(ctx, key, session.StateMap{"a": nil}) == nil {
			t.Error("the state of no session was changed")
		}
	}},
	{"events and changes of state come back", func(t *testing.T, service session.Service) {
		sess := create(t, service, key, session.StateMap{"a": []byte("0")})
		first := said("1", 0, model.RoleUser, "How many lamps?")
		first.StateDelta = map[string][]byte{"a": []byte("1"), "temp:b": []byte("2")}
		only := &event.Event{ID: "2", StateDelta: map[string][]byte{"c": []byte("3")}}
		partial := said("3", 1, model.RoleAssistant, "Sev")
		partial.IsPartial, partial.StateDelta = true, map[string][]byte{"d": nil}
		must(t, service.AppendEvent(ctx, sess, first), service.AppendEvent(ctx, sess, only), service.AppendEvent(ctx, sess, partial), service.AppendEvent(ctx, sess, said("4", 2, model.RoleAssistant, "Seven.")))
		want := session.StateMap{"a": []byte("1"), "temp:b": []byte("2"), "c": []byte("3"), "d": nil}
		for _, s := range []*session.Session{sess, get(t, service, key)} {
			equal(t, "events", ids(s.Events), []string{"1", "4"})
			equal(t, "state", s.SnapshotState(), want)
		}
	}},
	{"events begin with one of the user, of the newest or since a time", func(t *testing.T, service session.Service) {
		sess := create(t, service, key, nil)
		for i, role := range []model.Role{model.RoleAssistant, model.RoleUser, model.RoleAssistant, model.RoleUser, model.RoleAssistant} {
			must(t, service.AppendEvent(ctx, sess, said(fmt.Sprint(i), i, role, "x")))
		}
		// The newest of the user before a time is kept, where there is none since.
		for want, options := range map[string][]session.Option{
			"1234": nil, "34": {session.WithEventTime(noon.Add(4 * time.Minute))}, "3": {session.WithEventTime(noon.Add(time.Hour))},
		} {
			equal(t, "the newest three", strings.Join(ids(get(t, service, key, session.WithEventNum(3)).Events), ""), "34")
			got := strings.Join(ids(get(t, service, key, options...).Events), "")
			equal(t, "events", got, want)
			list, err := service.ListSessions(ctx, ada, options...)
			must(t, err)
			equal(t, "listed events", strings.Join(ids(list[0].Events), ""), want)
		}
		assistants := create(t, service, session.Key{AppName: "shop", UserID: "ada", SessionID: "assistants"}, nil)
		must(t, service.AppendEvent(ctx, assistants, said("a", 0, model.RoleAssistant, "x")))
		equal(t, "events", len(get(t, service, keyOf(assistants)).Events), 0)
	}},
	{"sessions of one app and user only, the newest first, in pages", func(t *testing.T, service session.Service) {
		for _, id := range []string{"a", "b", "c"} {
			create(t, service, session.Key{AppName: "shop", UserID: "ada", SessionID: id}, nil)
		}
		create(t, service, session.Key{AppName: "bank", UserID: "ada", SessionID: "d"}, nil)
		create(t, service, session.Key{AppName: "shop", UserID: "bob", SessionID: "a"}, nil)
		late := said("1", 0, model.RoleUser, "x")
		late.Timestamp = time.Now().Add(time.Minute)
		must(t, service.AppendEvent(ctx, get(t, service, session.Key{AppName: "shop", UserID: "ada", SessionID: "a"}), late))
		listed := func(options ...session.Option) (all []string) {
			list, err := service.ListSessions(ctx, ada, options...)
			must(t, err)
			for _, s := range list {
				all = append(all, s.ID)
			}
			return all
		}
		all := listed()
		equal(t, "newest", all[0], "a")
		equal(t, "sessions", slices.Sorted(slices.Values(all)), []string{"a", "b", "c"})
		equal(t, "page", listed(session.WithListSessionPage(1, 1)), all[1:2])
		equal(t, "page after the last", len(listed(session.WithListSessionPage(5, 1))), 0)
		meta, err := service.ListSessions(ctx, ada, session.WithListSessionOnlyMeta())
		must(t, err)
		equal(t, "events", len(meta[0].Events), 0)
	}},
	{"pages of events are refused", func(t *testing.T, service session.Service) {
		create(t, service, key, nil)
		_, get := service.GetSession(ctx, key, session.WithGetSessionEventPage(0, 1))
		_, list := service.ListSessions(ctx, ada, session.WithGetSessionEventPage(0, 1))
		equal(t, "errors", []error{get, list}, []error{session.ErrEventPageUnsupported, session.ErrEventPageOnlyForGetSession})
	}},
	{"states of apps and users are in their sessions", func(t *testing.T, service session.Service) {
		must(t, service.UpdateAppState(ctx, "shop", session.StateMap{"app:open": []byte("yes"), "city": []byte("Bern")}))
		must(t, service.UpdateUserState(ctx, ada, session.StateMap{"user:lang": []byte("de"), "tone": []byte("dry")}))
		create(t, service, key, session.StateMap{"a": []byte("1")})
		must(t, service.DeleteAppState(ctx, "shop", "app:city"), service.DeleteUserState(ctx, ada, "user:tone"))
		want := session.StateMap{"a": []byte("1"), "app:open": []byte("yes"), "user:lang": []byte("de")}
		equal(t, "state", get(t, service, key).SnapshotState(), want)
		app, err := service.ListAppStates(ctx, "shop")
		must(t, err)
		user, err := service.ListUserStates(ctx, ada)
		must(t, err)
		equal(t, "states", []session.StateMap{app, user}, []session.StateMap{{"open": []byte("yes")}, {"lang": []byte("de")}})
		bob, err := service.ListUserStates(ctx, session.UserKey{AppName: "shop", UserID: "bob"})
		must(t, err)
		equal(t, "state of another user", len(bob), 0)
		if service.UpdateUserState(ctx, ada, session.StateMap{"app:x": nil}) == nil || service.UpdateUserState(ctx, ada, session.StateMap{"temp:x": nil}) == nil {
			t.Error("a user's state has the names of others")
		}
	}},
	{"the state of a session changes without an event", func(t *testing.T, service session.Service) {
		create(t, service, key, session.StateMap{"a": []byte("1")})
		must(t, service.UpdateSessionState(ctx, key, session.StateMap{"a": []byte("2"), "temp:b": []byte("3")}))
		equal(t, "state", get(t, service, key).SnapshotState(), session.StateMap{"a": []byte("2"), "temp:b": []byte("3")})
		if service.UpdateSessionState(ctx, key, session.StateMap{"app:x": nil}) == nil || service.UpdateSessionState(ctx, key, session.StateMap{"user:x": nil}) == nil {
			t.Error("a session's state has the names of others")
		}
	}},
	{"a deleted session is gone, and its id free", func(t *testing.T, service session.Service) {
		sess := create(t, service, key, session.StateMap{"a": []byte("1")})
		must(t, service.AppendEvent(ctx, sess, said("1", 0, model.RoleUser, "x")), service.DeleteSession(ctx, key))
		if got, err := service.GetSession(ctx, key); got != nil || err != nil {
			t.Errorf("%v, %v", got, err)
		}
		if service.AppendEvent(ctx, sess, said("2", 0, model.RoleUser, "x")) == nil {
			t.Error("an event was appended to a deleted session")
		}
		again := create(t, service, key, nil)
		equal(t, "events and state", []int{len(again.Events), len(again.SnapshotState())}, []int{0, 0})
	}},
	{"tracks", func(t *testing.T, service session.Service) {
		sess := create(t, service, key, nil)
		tracks := service.(session.TrackService)
		for i, track := range []session.Track{"alpha", "beta", "alpha", "alpha"} {
			must(t, tracks.AppendTrackEvent(ctx, sess, &session.TrackEvent{Track: track, Payload: json.RawMessage(fmt.Sprint(i)), Timestamp: noon.Add(time.Duration(i) * time.Minute)}))
		}
		payloads := func(options ...session.Option) (all string) {
			got, err := get(t, service, key, options...).GetTrackEvents("alpha")
			if err == nil {
				for _, e := range got.Events {
					all += string(e.Payload)
				}
			}
			return all
		}
		equal(t, "all", payloads(), "023")
		equal(t, "the newest", payloads(session.WithEventNum(2)), "23")
		equal(t, "since a time", payloads(session.WithEventTime(noon.Add(3*time.Minute))), "3")
		equal(t, "after all", payloads(session.WithEventTime(noon.Add(time.Hour))), "")
		names, err := session.TracksFromState(get(t, service, key).SnapshotState())
		must(t, err)
		equal(t, "names", names, []session.Track{"alpha", "beta"})
		if tracks.AppendTrackEvent(ctx, session.NewSession("shop", "ada", "none"), &session.TrackEvent{Track: "alpha"}) == nil || tracks.AppendTrackEvent(ctx, sess, nil) == nil {
			t.Error("a track of no session, or no event, was appended")
		}
	}},
	{"windows around an event", func(t *testing.T, service session.Service) {
		sess := create(t, service, key, nil)
		must(t, service.AppendEvent(ctx, sess, said("a0", 0, model.RoleAssistant, "hello")), service.AppendEvent(ctx, sess, said("u1", 1, model.RoleUser, "one")),
			service.AppendEvent(ctx, sess, calling("call", 2, "c1")), service.AppendEvent(ctx, sess, results("t1", 3, "c1")), service.AppendEvent(ctx, sess, said("u2", 4, model.RoleUser, "four")))
		window := func(req session.EventWindowRequest) (string, error) {
			req.Key = key
			got, err := service.(session.WindowService).GetEventWindow(ctx, req)
			if err != nil {
				return "", err
			}
			var all []string
			for _, e := range got.Entries {
				all = append(all, e.Event.ID)
			}
			return strings.Join(all, " "), nil
		}
		for want, req := range map[string]session.EventWindowRequest{
			"u1 t1 u2": {AnchorEventID: "t1", Before: 1, After: 5}, "a0 u1 t1 u2": {AnchorEventID: "t1", Before: 9, After: 1},
			"u1 u2": {AnchorEventID: "u2", Before: 1, Roles: []model.Role{model.RoleUser}}, "a0": {AnchorEventID: "a0"},
		} {
			got, err := window(req)
			must(t, err)
			equal(t, "window", got, want)
		}
		for _, req := range []session.EventWindowRequest{{}, {AnchorEventID: "u1", Before: -1}, {AnchorEventID: "call"}, {AnchorEventID: "none"}} {
			if got, err := window(req); err == nil {
				t.Errorf("the window %+v has %s", req, got)
			}
		}
	}},
}

// Continuo refuses a second session with an id, as tRPC-Agent-Go's SQL stores do.
func TestSessionsAreCreatedOnce(t *testing.T) {
	service := New(openLog(t), Options{})
	create(t, service, key, nil)
	if _, err := service.CreateSession(ctx, key, nil); !errors.Is(err, continuo.ErrExists) {
		t.Error(err)
	}
}

func conversation(t *testing.T, log *continuo.Log, service *Service) continuo.Conversation {
	t.Helper()
	found, err := log.Find(ctx, continuo.Scope{ProjectID: continuo.DefaultProject, UserID: key.UserID}, service.conversation(key).Key)
	must(t, err)
	return found
}

// A session with calls and results is an ordinary conversation, and each event comes back as it was, in another process too.
func TestEventsAreEntries(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trpc.db")
	log := openLogAt(t, path)
	service := New(log, Options{})
	sess := create(t, service, key, session.StateMap{"a": []byte("1")})
	text := "Like this one?"
	image := message("6", 5, model.Message{Role: model.RoleUser, ContentParts: []model.ContentPart{{Type: model.ContentTypeText, Text: &text}, {Type: model.ContentTypeImage, Image: &model.Image{URL: "https://example.org/lamp.png"}}}})
	given := []*event.Event{
		said("1", 0, model.RoleUser, "How many lamps?"), calling("2", 1, "c1", "c2"), said("3", 2, model.RoleUser, "Are you there?"), results("4", 3, "c1", "c2"), said("5", 4, model.RoleAssistant, "Seven."), image,
	}
	given[4].Usage = &model.Usage{PromptTokens: 12, CompletionTokens: 3, TotalTokens: 15}
	given[4].StateDelta = map[string][]byte{"n": []byte("7")}
	want, err := json.Marshal(given)
	must(t, err)
	for _, e := range given {
		must(t, service.AppendEvent(ctx, sess, e))
	}
	for name, reader := range map[string]*Service{"the same process": service, "another one": New(openLogAt(t, path), Options{})} {
		got, err := json.Marshal(get(t, reader, key).Events)
		must(t, err)
		equal(t, name, string(got), string(want))
	}
	var lines []string
	for entry, err := range log.Read(ctx, conversation(t, log, service), continuo.Range{}) {
		must(t, err)
		lines = append(lines, fmt.Sprintf("%s %t %q %d", entry.Role, entry.Hidden, entry.Content, len(entry.ToolCalls)))
	}
	equal(t, "entries", strings.Join(lines, "\n"), `system true "" 0
user false "How many lamps?" 0
assistant false "" 2
system true "Are you there?" 0
tool false "{\"n\":7}" 0
tool false "{\"n\":7}" 0
assistant false "Seven." 0
user false "Like this one?\n[image]" 0`)
}

// A redaction removes the event with its text.
func TestRedactedEventsAreGone(t *testing.T) {
	log := openLog(t)
	service := New(log, Options{})
	sess := create(t, service, key, nil)
	must(t, service.AppendEvent(ctx, sess, said("1", 0, model.RoleUser, "my PIN is 0000")), service.AppendEvent(ctx, sess, said("2", 1, model.RoleUser, "thanks")))
	_, err := log.Redact(ctx, conversation(t, log, service), 1, 1, "a PIN")
	must(t, err)
	equal(t, "events", ids(get(t, service, key).Events), []string{"2"})
}

// Two services that change the state of one app at once lose no change.
func TestSharedStateIsChangedAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trpc.db")
	services := []*Service{New(openLogAt(t, path), Options{}), New(openLogAt(t, path), Options{})}
	var wait sync.WaitGroup
	const each = 10
	for n, service := range services {
		wait.Go(func() {
			for i := range each {
				if err := service.UpdateAppState(ctx, "shop", session.StateMap{fmt.Sprintf("%d-%d", n, i): nil}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	state, err := services[0].ListAppStates(ctx, "shop")
	must(t, err)
	equal(t, "values", len(state), 2*each)
}

// Every event that was acknowledged is there after the process was killed, with its change of state.
func TestKill(t *testing.T) {
	path, acknowledged := killtest.Run(t, 25, func(path string) func(int) error {
		service := New(openLogAt(t, path), Options{})
		sess := create(t, service, key, nil)
		return func(i int) error {
			e := said(fmt.Sprint(i), i, model.RoleUser, "x")
			e.StateDelta = map[string][]byte{"n": []byte(e.ID)}
			return service.AppendEvent(ctx, sess, e)
		}
	})
	got := get(t, New(openLogAt(t, path), Options{}), key)
	if n := len(got.Events); n < acknowledged || n > acknowledged+1 {
		t.Fatalf("%d events of %d", n, acknowledged)
	}
	last := got.Events[len(got.Events)-1].ID
	equal(t, "the last", last, fmt.Sprint(len(got.Events)-1))
	equal(t, "state", string(got.State["n"]), last)
}

// counter is a summarizer that says how many events it was given.
type counter struct {
	wants bool
	asked int
}

func (c *counter) ShouldSummarize(*session.Session) bool { return c.wants }

func (c *counter) Summarize(_ context.Context, sess *session.Session) (string, error) {
	c.asked++
	return fmt.Sprintf("summary %d of %d", c.asked, len(sess.Events)), nil
}
func (c *counter) SetPrompt(string)         {}
func (c *counter) SetModel(model.Model)     {}
func (c *counter) Metadata() map[string]any { return nil }

// A summary is made of the one before and of the events since, and is there for the next process.
func TestSummaries(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trpc.db")
	made := &counter{}
	service := New(openLogAt(t, path), Options{Summarizer: made})
	sess := create(t, service, key, nil)
	text := func(sess *session.Session, options ...session.SummaryOption) string {
		got, _ := service.GetSessionSummaryText(ctx, sess, options...)
		return got
	}
	must(t, service.AppendEvent(ctx, sess, said("1", 0, model.RoleUser, "x")), service.AppendEvent(ctx, sess, said("2", 1, model.RoleAssistant, "x")))
	must(t, service.CreateSessionSummary(ctx, sess, "", false))
	equal(t, "a summary that is not wanted", text(sess), "")
	made.wants = true
	must(t, service.CreateSessionSummary(ctx, sess, "", false), service.CreateSessionSummary(ctx, sess, "", false))
	equal(t, "the first", text(sess), "summary 1 of 2")
	must(t, service.AppendEvent(ctx, sess, said("3", 2, model.RoleUser, "x")))
	next := New(openLogAt(t, path), Options{Summarizer: made})
	again := get(t, next, key)
	must(t, next.CreateSessionSummary(ctx, again, "", false))
	equal(t, "the second, of another process", text(get(t, service, key)), "summary 2 of 2")
	equal(t, "its end", again.Summaries[""].Boundary.LastEventID, "3")

	branch := said("4", 3, model.RoleUser, "x")
	branch.FilterKey = "shop/lamps"
	must(t, service.AppendEvent(ctx, again, branch), service.EnqueueSummaryJob(ctx, again, "shop/lamps", false))
	equal(t, "of a branch, and of all at once", text(get(t, service, key), session.WithSummaryFilterKey("shop/lamps")), "summary 3 of 4")
	equal(t, "asked", made.asked, 3)
	equal(t, "of another branch", text(again, session.WithSummaryFilterKey("shop/chairs")), "summary 3 of 4")
	if err := service.CreateSessionSummary(ctx, nil, "", true); !errors.Is(err, session.ErrNilSession) {
		t.Error(err)
	}
}
