package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/audit"
	"github.com/continuo-log/continuo/auth"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/mcpserver"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/sqlite"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/tool/fs"
	"github.com/continuo-log/continuo/tool/search"
	"github.com/continuo-log/continuo/turn"
)

// mark is in every text of the victim, and in no other: keys, which are random, have no l and no u.
const mark = "plugh"

// victim is a project that has one of everything, and thief another one with a good key of its own. Both
// call their first conversation s1.
type victim struct {
	t               *testing.T
	handler         http.Handler
	key, thief      string   // as they are shown
	session         string   // the id of s1
	conversations   []string // ids: s1, a fork of it, one whose turn waits for approval
	turns           []string // of each of them
	call            string   // that waits
	run             continuo.Run
	crew            engine.CrewStatus // of the session crews-plugh
	task            engine.TaskStatus
	agent           engine.DeployedAgent // that worked on it
	marks           []string             // what no answer to the thief may have
	thiefs          string               // id of the thief's session
	thiefSession    string               // its key
	sharesProject   bool                 // the thief is another user of the same project: lists have both's
	idempotencyKeys [2]string
}

// follower follows instructions: "call ID NAME ARGUMENTS", "fail: REASON"; else it is obedient.
func follower(ctx context.Context, shown []shownMessage, yield func(model.Delta) bool) error {
	newest := shown[len(shown)-1]
	words := strings.SplitN(newest.Content.String(), " ", 4)
	if newest.Role == "tool" {
		yield(model.Delta{Text: "The tool said: " + newest.Content.String()})
		return nil
	}
	if words[0] != "call" || len(words) != 4 {
		return obedient(ctx, shown, yield)
	}
	yield(model.Delta{ToolCall: &model.ToolCallDelta{ID: words[1], Type: "function", Name: words[2], Arguments: words[3], Done: true}})
	return nil
}

func newVictim(t *testing.T, store maintenance.Store) *victim {
	options := withModel(&fakeModel{"gpt-4o", follower})
	log := continuo.NewLog(store, continuo.LogOptions{})
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "secret.txt"), []byte("my secret is "+mark), 0o600); err != nil {
		t.Fatal(err)
	}
	options.Tools = tool.Set{upper{}, fs.Read{Roots: fs.Roots{Log: log, ProjectDir: folder, Project: "victim"}}, search.Tool{Log: log, Index: store}}
	options.Policy = tool.Policy{Ask: []string{"test.upper"}, Otherwise: tool.Allow}
	options.Workflows = workflowFolder{"testdata/workflows"}
	options.Crews, options.StepPause = crewFolder{"testdata/crews"}, time.Nanosecond
	options.Wait = time.Minute // a thief who gets that far shall not hold the test up for longer
	e := engineWith(t, store, continuo.LogOptions{MaxInlinePart: 1}, options)
	keys, v := &keyring{store, t}, &victim{t: t, idempotencyKeys: [2]string{"once-more", "append-more"}}
	trail := audit.NewTrail(keys.Store, audit.Options{})
	t.Cleanup(trail.Close)
	v.handler = New(e, Options{Project: "victim", Keys: auth.NewChecker(keys.Store, auth.Options{}), Audit: trail, AuditReads: true, MCP: mcpserver.New(e, mcpserver.Options{}).Handler})
	_, v.key = keys.newKey("victim")
	_, v.thief = keys.newKey("thief")
	v.fill(e)
	return v
}

// fill gives the victim and the thief what they have.
func (v *victim) fill(e *engine.Engine) {
	v.t.Helper()
	var first, once chatReply
	v.askAsOwner("POST", "/chat", `{"session_id": "s1", "message": [{"type": "text", "text": "my secret is `+mark+`"}, `+attachedPart+`]}`, "Idempotency-Key", v.idempotencyKeys[0]).into(200, &first)
	v.askAsOwner("POST", "/chat", `{"message": "a new `+mark+`"}`, "Idempotency-Key", v.idempotencyKeys[0]).into(200, &once)
	v.askAsOwner("POST", "/chat", `{"session_id": "s1", "message": "call call_`+mark+` conversation_search {\"query\": \"secret\"}"}`).into(200, &first)
	failed := v.askAsOwner("POST", "/chat", `{"session_id": "s1", "message": "fail: upstream"}`).failed(502, "llm_error", "")
	v.askAsOwner("POST", "/api/conversations/s1/entries", `{"role": "assistant", "content": "`+mark+`"}`, "Idempotency-Key", v.idempotencyKeys[1])
	v.askAsOwner("PATCH", "/api/conversations/s1", `{"title": "`+mark+`", "metadata": {"a": "`+mark+`"}}`)
	for _, key := range []string{"key-" + mark, "s2", "s3"} {
		v.askAsOwner("POST", "/api/conversations", `{"key": "`+key+`"}`)
	}
	v.askAsOwner("POST", "/api/conversations/import", importBody)
	var fork continuo.Conversation
	v.askAsOwner("POST", "/api/conversations/s1/fork", `{"at": 2}`).into(201, &fork)
	ofFork := v.askAsOwner("POST", "/chat", `{"session_id": "`+fork.ID+`", "message": "fail: upstream"}`).failed(502, "llm_error", "")
	waiting := v.waits(e)
	v.runs(e)
	v.crews()
	v.tasks(e, first.ConversationID)
	v.remembers()
	v.session, v.call = first.ConversationID, "call_waits_"+mark
	v.conversations = []string{first.ConversationID, fork.ID, waiting.ConversationID, once.ConversationID}
	v.turns = []string{failed.TurnID, ofFork.TurnID, waiting.TurnID, once.TurnID}
	v.marks = slices.Concat([]string{mark, "victim", auth.IDOf(v.key), v.run.ID, v.run.ConversationID, v.crew.RunID, v.crew.ConversationID, v.task.ID, v.task.ConversationID, v.agent.ID, v.agent.ConversationID}, v.conversations, v.turns)
	var own chatReply
	v.askAsOther("POST", "/chat", `{"session_id": "s1", "message": "hello"}`).into(200, &own)
	v.thiefs, v.thiefSession = own.ConversationID, "s1"
}

// attachedPart is the part 1 of the victim's first message.
const attachedPart = `{"type": "image_url", "image_url": {"url": "data:image/png;base64,` + mark + `"}}`

const importBody = `{"messages": [{"role": "user", "content": "imported"}, {"role": "assistant", "content": "twice"}]}`

// waits begins a turn that waits for approval.
func (v *victim) waits(e *engine.Engine) chatReply {
	v.t.Helper()
	message := "call call_waits_" + mark + ` test_upper {"text": "` + mark + `"}`
	chat, err := e.Turns.Chat(v.t.Context(), engine.ChatRequest{Scope: continuo.Scope{ProjectID: "victim"}, SessionID: "waiting-" + mark, Message: continuo.Text(message), Detached: true})
	if err != nil {
		v.t.Fatal(err)
	}
	for event, err := range chat.Events {
		if err != nil {
			v.t.Fatal(err)
		}
		if event.Kind == turn.Asked {
			return chatReply{ConversationID: chat.Conversation.ID, TurnID: chat.TurnID}
		}
	}
	v.t.Fatal("the turn did not wait")
	return chatReply{}
}

// askAsOwner asks with the victim's key.
func (v *victim) askAsOwner(method, target, body string, header ...string) *reply {
	v.t.Helper()
	answer := ask(v.t, v.handler, method, target, body, append(header, as(v.key)...)...)
	if answer.status >= 500 && answer.status != 502 {
		v.t.Fatalf("%s %s: %s", method, target, answer.body)
	}
	return answer
}

// askAsOther asks with the thief's key. But for what the thief said, the answer has nothing of the victim's.
func (v *victim) askAsOther(method, target, body string, header ...string) *reply {
	v.t.Helper()
	answer := ask(v.t, v.handler, method, target, body, append(header, as(v.thief)...)...)
	for _, mark := range v.marks {
		if strings.Contains(string(answer.body), mark) && !strings.Contains(target+body, mark) {
			v.t.Errorf("%s %s %s: the answer to the thief has %q: %s", method, target, body, mark, answer.body)
		}
	}
	return answer
}

// hidden checks that a resource of the victim is not found, with the same error as one that does not exist.
func (v *victim) hidden(method, target, body, id, none string) {
	v.t.Helper()
	with := func(id string) (string, string) {
		return strings.ReplaceAll(target, "ID", id), strings.ReplaceAll(body, "ID", id)
	}
	there, thereBody := with(id)
	nowhere, nowhereBody := with(none)
	for _, header := range [][]string{nil, {"Accept", "text/event-stream"}} {
		got, want := v.askAsOther(method, there, thereBody, header...), v.askAsOther(method, nowhere, nowhereBody, header...)
		if got.status != http.StatusNotFound || got.status != want.status || strings.ReplaceAll(string(got.body), id, none) != string(want.body) {
			v.t.Errorf("%s %s: %d %s; for what is nowhere %d %s", method, there, got.status, got.body, want.status, want.body)
		}
	}
}

// all reads everything that the victim has.
func (v *victim) all() string {
	v.t.Helper()
	var text strings.Builder
	read := func(target string) {
		answer := v.askAsOwner("GET", target, "")
		fmt.Fprintf(&text, "%s %d\n%s\n", target, answer.status, answer.body)
	}
	if !v.sharesProject {
		for _, target := range []string{"/api/conversations?limit=100", "/api/runs", "/api/tasks", "/api/keys"} {
			read(target)
		}
	}
	for _, target := range []string{"/api/runs/" + v.run.ID, "/api/tasks/" + v.task.ID, "/api/conversations/" + v.run.ConversationID + "/entries", "/api/crews/pair/status?session_id=crews-" + mark, "/api/crews/pair/status", "/api/conversations/" + v.crew.ConversationID + "/entries"} {
		read(target)
	}
	for i, id := range v.conversations {
		at := "/api/conversations/" + id
		for _, path := range []string{"", "/entries?limit=1000", "/export", "/turns", "/turns/" + v.turns[i], "/transcript", "/context", "/entries/1/parts/1"} {
			read(at + path)
		}
	}
	return lastEvent.ReplaceAllString(text.String(), "") // events are kept a moment after they came
}

var lastEvent = regexp.MustCompile(`"last_event":\d+,`)

// checkUnchanged checks that the victim has what it had.
func (v *victim) checkUnchanged(before string) {
	v.t.Helper()
	had, has := strings.Split(before, "\n"), strings.Split(v.all(), "\n")
	for i := range min(len(had), len(has)) {
		if had[i] != has[i] {
			v.t.Errorf("the victim had\n%s\nand has\n%s", had[i], has[i])
		}
	}
	if len(had) != len(has) {
		v.t.Errorf("the victim had %d lines and has %d", len(had), len(has))
	}
}

// Names of resources that do not exist, in the form of real ones.
const (
	noConversation = "conv_0199c5f0d1a270008000000000000000"
	noTurn         = "turn_0199c5f0d1a270008000000000000000"
)

// inside are the calls about a conversation, and the bodies that they get, or the queries: all of another's are not found.
var inside = map[string]string{
	"GET /api/conversations/{id}":                         "",
	"PATCH /api/conversations/{id}":                       `{"title": "stolen", "metadata": {}, "mode": "run", "active_agent": ""}`,
	"DELETE /api/conversations/{id}":                      "",
	"POST /api/conversations/{id}/fork":                   `{"at": 1}`,
	"POST /api/conversations/{id}/archive":                "",
	"POST /api/conversations/{id}/restore":                "",
	"POST /api/conversations/{id}/redact":                 `{"from": 1}`,
	"GET /api/conversations/{id}/export":                  "",
	"GET /api/conversations/{id}/entries":                 "",
	"POST /api/conversations/{id}/entries":                `{"role": "user", "content": "I was here"}`,
	"GET /api/conversations/{id}/entries/{seq}/request":   "",
	"GET /api/conversations/{id}/entries/{seq}/parts/{n}": "",
	"GET /api/conversations/{id}/context":                 "",
	"GET /api/conversations/{id}/rounds":                  "",
	"GET /api/conversations/{id}/cache":                   "",
	"GET /api/conversations/{id}/recall":                  "?query=hello",
	"GET /api/conversations/{id}/events":                  "",
	"GET /api/conversations/{id}/transcript":              "",
	"GET /api/conversations/{id}/turns":                   "",
	"GET /api/conversations/{id}/turns/{turn}":            "",
	"GET /api/conversations/{id}/turns/{turn}/events":     "",
	"POST /api/conversations/{id}/turns/{turn}/resume":    `{"stream": false}`,
	"POST /api/conversations/{id}/turns/{turn}/cancel":    "",
	"POST /api/conversations/{id}/turns/{turn}/approvals": `{"tool_call_id": "call_waits_` + mark + `", "decision": "allow"}`,
}

// outside are the other calls, each with what the thief tries.
var outside = map[string]func(v *victim){
	"GET /api/search":  (*victim).searches,
	"GET /api/events":  (*victim).followsList,
	"GET /api/compare": (*victim).compares,
	"GET /api/usage":   func(v *victim) { v.askAsOther("GET", "/api/usage", "").into(200, &struct{}{}) },
	"GET /api/audit":   (*victim).readsAudit,
	"GET /api/feed": func(v *victim) {
		v.askAsOther("GET", "/api/feed", "").into(200, &struct{}{})
		v.askAsOther("GET", "/api/feed?after=newest", "").into(200, &struct{}{})
	},
	"GET /api/feed/events": func(v *victim) {
		v.askAsOther("GET", "/api/feed/events?after=x", "").failed(400, "invalid_request", "after")
	},
	"GET /api/connect":                            func(v *victim) { v.askAsOther("GET", "/api/connect", "").into(200, &struct{}{}) },
	"POST /mcp":                                   (*victim).callsMCPTools,
	"POST /chat":                                  (*victim).chats,
	"GET /api/conversations":                      (*victim).lists,
	"POST /api/conversations":                     (*victim).creates,
	"POST /api/conversations/import":              (*victim).imports,
	"GET /api/workflows":                          func(v *victim) { v.askAsOther("GET", "/api/workflows", "") },
	"GET /api/workflows/schema":                   func(v *victim) { v.askAsOther("GET", "/api/workflows/schema", "") },
	"GET /api/crews/schema":                       func(v *victim) { v.askAsOther("GET", "/api/crews/schema", "") },
	"GET /api/workflows/{id}":                     func(v *victim) { v.askAsOther("GET", "/api/workflows/report", "") },
	"GET /api/runs":                               (*victim).listsRuns,
	"POST /api/runs":                              (*victim).startsRuns,
	"GET /api/runs/{run}":                         hidesRun("GET", "", ""),
	"GET /api/runs/{run}/events":                  hidesRun("GET", "/events", ""),
	"POST /api/runs/{run}/resume":                 hidesRun("POST", "/resume", ""),
	"POST /api/runs/{run}/set":                    hidesRun("POST", "/set", `{"node_id": "build", "outputs": {"text": "mine"}}`),
	"POST /api/runs/{run}/retry":                  hidesRun("POST", "/retry", `{"node_id": "build"}`),
	"POST /api/runs/{run}/skip":                   hidesRun("POST", "/skip", `{"node_id": "build"}`),
	"POST /api/runs/{run}/stop":                   hidesRun("POST", "/stop", `{"reason": "mine"}`),
	"POST /api/runs/{run}/cancel":                 hidesRun("POST", "/cancel", ""),
	"POST /api/runs/{run}/approvals":              hidesRun("POST", "/approvals", `{"decision": "approve"}`),
	"GET /api/crews":                              func(v *victim) { v.askAsOther("GET", "/api/crews", "") },
	"GET /api/crews/{crew}":                       func(v *victim) { v.askAsOther("GET", "/api/crews/pair", "") },
	"POST /api/crews/{crew}/messages":             (*victim).sendsToCrews,
	"GET /api/crews/{crew}/status":                hidesCrew("GET", "/status"),
	"GET /api/crews/{crew}/events":                hidesCrew("GET", "/events"),
	"POST /api/crews/{crew}/stop":                 hidesCrew("POST", "/stop"),
	"POST /api/crews/{crew}/resume":               hidesCrew("POST", "/resume"),
	"POST /api/crews/{crew}/reset":                hidesCrew("POST", "/reset"),
	"POST /api/crews/{crew}/restore":              hidesCrew("POST", "/restore"),
	"GET /api/crews/{crew}/context":               hidesCrew("GET", "/context"),
	"GET /api/crews/{crew}/rounds":                hidesCrew("GET", "/rounds"),
	"GET /api/crews/{crew}/compare":               hidesCrew("GET", "/compare"),
	"GET /api/tasks":                              (*victim).listsTasks,
	"POST /api/tasks":                             (*victim).createsTasks,
	"GET /api/tasks/{task}":                       hidesTask("GET", "", ""),
	"GET /api/tasks/{task}/prompt":                hidesTask("GET", "/prompt", ""),
	"POST /api/tasks/{task}/agents":               hidesTask("POST", "/agents", `{"prompt": "mine"}`),
	"POST /api/tasks/{task}/findings":             hidesTask("POST", "/findings", `{"message": "mine"}`),
	"GET /api/tasks/{task}/agents/{agent}":        hidesAgent("GET", "", ""),
	"GET /api/tasks/{task}/agents/{agent}/output": hidesAgent("GET", "/output", ""),
	"POST /api/tasks/{task}/agents/{agent}/kill":  hidesAgent("POST", "/kill", ""),
	"GET /api/memory":                             hidesMemory("GET", "", ""),
	"POST /api/memory":                            hidesMemory("POST", "", `{"text": "I was here"}`),
	"DELETE /api/memory":                          hidesMemory("DELETE", "", ""),
	"GET /api/memory/export":                      hidesMemory("GET", "/export", ""),
	"POST /api/memory/derive":                     hidesMemory("POST", "/derive", ""),
	"POST /api/memory/import":                     hidesMemory("POST", "/import", `{"continuo": "memory", "version": 1, "project_id": "p", "facts": []}`),
	"GET /api/memory/{fact}":                      hidesFact("GET", "", ""),
	"DELETE /api/memory/{fact}":                   hidesFact("DELETE", "", ""),
	"POST /api/memory/{fact}/correct":             hidesFact("POST", "/correct", `{"text": "mine"}`),
	"GET /api/session":                            func(v *victim) { v.askAsOther("GET", "/api/session", "") },
	"POST /api/session":                           (*victim).opensSessions,
	"DELETE /api/session":                         func(v *victim) { v.askAsOther("DELETE", "/api/session", "") },
	"GET /api/keys":                               func(v *victim) { v.askAsOther("GET", "/api/keys", "").into(200, &struct{}{}) },
	"POST /api/keys":                              (*victim).makesKeys,
	"DELETE /api/keys/{key}":                      func(v *victim) { v.hidden("DELETE", "/api/keys/ID", "", auth.IDOf(v.key), "000000000000") },
	"GET /metrics":                                func(v *victim) { v.askAsOther("GET", "/metrics", "").failed(403, "not_your_figures", "") },
	"GET /api/health":                             func(v *victim) { v.askAsOther("GET", "/api/health", "").failed(403, "not_your_figures", "") },
	"GET /api/models":                             func(v *victim) { v.askAsOther("GET", "/api/models", "") },
	"GET /api/agents":                             func(v *victim) { v.askAsOther("GET", "/api/agents", "") },
	"GET /healthz":                                func(v *victim) { v.askAsOther("GET", "/healthz", "") },
	"GET /readyz":                                 func(v *victim) { v.askAsOther("GET", "/readyz", "") },
	"GET /openapi.json":                           func(v *victim) { v.askAsOther("GET", "/openapi.json", "") },
	"GET /":                                       func(v *victim) { v.askAsOther("GET", "/", "") },
}

// readsAudit reads the audit log: a key of a user cannot, and one of another project sees what was done with its own project's
// keys, among it the names that it tried.
func (v *victim) readsAudit() {
	v.t.Helper()
	if v.sharesProject {
		v.askAsOther("GET", "/api/audit", "").failed(403, "user_key", "")
		return
	}
	for _, query := range []string{"", "?conversation=" + v.conversations[0], "?key=" + auth.IDOf(v.key), "?operation=chat"} {
		for _, event := range auditEvents(v.t, v.handler, v.thief, query) {
			if event.KeyID != auth.IDOf(v.thief) {
				v.t.Errorf("GET /api/audit%s shows the thief what the key %s did: %s", query, event.KeyID, event.Operation)
			}
		}
	}
}

// One project can never read or change another's. Every call of the server is tried; a new one needs a row.
func TestProjectsAreApart(t *testing.T) {
	for name, open := range map[string]func() (maintenance.Store, error){
		"memory": func() (maintenance.Store, error) { return storetest.NewMemory(), nil },
		"sqlite": func() (maintenance.Store, error) {
			return sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "log.db"), sqlite.Options{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := open()
			if err != nil {
				t.Fatal(err)
			}
			v := newVictim(t, store)
			before := v.all()
			for _, mark := range append(v.marks, v.call, `{"data":`+attachedPart+`}`) {
				if !strings.Contains(before, mark) {
					t.Errorf("the victim has no %s: the test shows nothing", mark)
				}
			}
			for _, route := range (&server{}).routes() {
				v.try(route.Method, route.shownPath())
			}
			v.triesTools()
			v.checkUnchanged(before)
			v.decidesRun()
			v.askAsOwner("POST", "/api/conversations/"+v.conversations[2]+"/turns/"+v.turns[2]+"/approvals", `{"tool_call_id": "`+v.call+`", "decision": "allow"}`).into(202, &struct{}{})
		})
	}
}

// try attempts one call of the server in every form.
func (v *victim) try(method, path string) {
	v.t.Helper()
	if others, ok := outside[method+" "+path]; ok {
		others(v)
		return
	}
	body, ok := inside[method+" "+path]
	if !ok {
		v.t.Errorf("%s %s has no row in inside or outside, so that its isolation of projects is not tested", method, path)
		return
	}
	path = strings.NewReplacer("{seq}/parts/{n}", "1/parts/1", "{seq}", "2").Replace(path)
	if strings.HasPrefix(body, "?") {
		path, body = path+body, ""
	}
	for i, id := range v.conversations {
		v.hidden(method, strings.NewReplacer("{id}", "ID", "{turn}", v.turns[i]).Replace(path), body, id, noConversation)
		if strings.Contains(path, "{turn}") { // in a conversation that is the thief's
			v.hidden(method, strings.NewReplacer("{id}", v.thiefSession, "{turn}", "ID").Replace(path), body, v.turns[i], noTurn)
		}
	}
	v.hidden(method, strings.NewReplacer("{id}", "ID", "{turn}", v.turns[0]).Replace(path), body, "key-"+mark, "key-nobody")
}

// compares: a side of another's conversation is not found, whether it is compared with itself or with one's own.
func (v *victim) compares() {
	v.t.Helper()
	for _, id := range v.conversations {
		for _, query := range []string{"left=ID~2&right=ID~codex", "left=" + v.thiefSession + "~codex&right=ID~2", "left=ID~chat&right=" + v.thiefSession + "~chat"} {
			v.hidden("GET", "/api/compare?"+query, "", id, noConversation)
		}
	}
}

// chats: another's id is not found, another's key is free, and another's Idempotency-Key has begun nothing.
func (v *victim) chats() {
	v.t.Helper()
	for _, id := range v.conversations {
		v.hidden("POST", "/chat", `{"session_id": "ID", "message": "hello"}`, id, noConversation)
	}
	var began chatReply
	v.askAsOther("POST", "/chat", `{"session_id": "s2", "message": "what did I say?"}`).into(200, &began)
	if began.Context.Entries != 1 || slices.Contains(v.conversations, began.ConversationID) {
		v.t.Errorf("a thief's conversation of another's key began as %+v", began)
	}
	for _, session := range []string{`"session_id": "s1", `, ""} {
		v.askAsOther("POST", "/chat", `{`+session+`"message": "what did I say?"}`, "Idempotency-Key", v.idempotencyKeys[0]).into(200, &began)
		if !strings.Contains(began.Response, "what did I say?") || slices.Contains(v.turns, began.TurnID) || slices.Contains(v.conversations, began.ConversationID) {
			v.t.Errorf("another's Idempotency-Key gave %+v", began)
		}
	}
}

// lists: a cursor of another's list shows nothing but one's own.
func (v *victim) lists() {
	v.t.Helper()
	var page struct {
		Data       []continuo.Conversation
		NextCursor string `json:"next_cursor"`
	}
	v.askAsOwner("GET", "/api/conversations?limit=1", "").into(200, &page)
	for _, query := range []string{"?limit=100", "?limit=100&cursor=" + page.NextCursor} {
		v.askAsOther("GET", "/api/conversations"+query, "").into(200, &page)
		for _, conversation := range page.Data {
			if conversation.ProjectID != "thief" {
				v.t.Errorf("the list %s has %+v", query, conversation)
			}
		}
	}
}

// creates: an answer does not reveal that another project has a key.
func (v *victim) creates() {
	v.t.Helper()
	var made continuo.Conversation
	if v.askAsOther("POST", "/api/conversations", `{"key": "s3"}`).into(201, &made); made.ProjectID != "thief" {
		v.t.Errorf("made %+v", made)
	}
	v.askAsOther("POST", "/api/conversations", `{"project_id": "victim"}`).failed(400, "invalid_request", "project_id")
}

// imports: what another has imported is new.
func (v *victim) imports() {
	v.t.Helper()
	var imported struct {
		Conversation continuo.Conversation
		Existed      bool
	}
	if v.askAsOther("POST", "/api/conversations/import", importBody).into(201, &imported); imported.Existed || imported.Conversation.ProjectID != "thief" {
		v.t.Errorf("imported %+v", imported)
	}
}

// followsList: the stream of the list has one's own rows only.
func (v *victim) followsList() {
	v.t.Helper()
	remote := httptest.NewServer(v.handler)
	defer remote.Close()
	request := newRequest(v.t, "GET", remote.URL+"/api/events?kind=all&since=2000-01-01T00:00:00Z", "")
	request.Header.Set("Authorization", "Bearer "+v.thief)
	stream := listen(v.t, request)
	defer stream.Body.Close()
	for {
		event, err := stream.events.Next()
		if err != nil {
			v.t.Fatal(err)
		}
		for _, mark := range v.marks {
			if strings.Contains(string(event.Data), mark) {
				v.t.Errorf("the stream for the thief has %q: %s", mark, event.Data)
			}
		}
		if strings.Contains(string(event.Data), v.thiefs) {
			return // the first look is over
		}
	}
}

// opensSessions: a session has the rights of its key, and no others.
func (v *victim) opensSessions() {
	v.t.Helper()
	opened := v.askAsOther("POST", "/api/session", `{"key": "`+v.thief+`"}`)
	opened.into(201, &struct{}{})
	for _, id := range v.conversations {
		answer := ask(v.t, v.handler, "GET", "/api/conversations/"+id, "", "Cookie", cookieOf(v.t, opened), "Sec-Fetch-Site", "same-origin")
		answer.failed(404, "not_found", "")
	}
}

// makesKeys: no key of another project or of another user can be made.
func (v *victim) makesKeys() {
	v.t.Helper()
	var made struct{ Key auth.Key }
	v.askAsOther("POST", "/api/keys", `{"project_id": "victim"}`).failed(400, "invalid_request", "project_id")
	v.askAsOther("POST", "/api/keys", `{"name": "mine"}`).into(201, &made)
	if v.sharesProject && made.Key.UserID != "mallory" || !v.sharesProject && made.Key.ProjectID != "thief" {
		v.t.Errorf("made %+v", made)
	}
	if v.sharesProject {
		v.askAsOther("POST", "/api/keys", `{"user_id": "ada"}`).failed(403, "other_user", "user_id")
	}
}

// triesTools: a model that works for the thief finds nothing of the victim's either; the victim's own does.
func (v *victim) triesTools() {
	v.t.Helper()
	var ref string
	for _, entry := range v.entries(v.session) {
		if entry.OutputRef != "" {
			ref = entry.OutputRef
		}
	}
	for i, call := range []string{
		"conversation_search " + string(rawjson.MustMarshal(map[string]string{"query": mark})),
		"fs_read " + string(rawjson.MustMarshal(map[string]string{"path": ref})),
		`fs_read {"path": "@project/secret.txt"}`,
	} {
		body := func(session string) string {
			return string(rawjson.MustMarshal(map[string]string{"session_id": session, "message": fmt.Sprintf("call c%d %s", i, call)}))
		}
		var fork continuo.Conversation
		v.askAsOwner("POST", "/api/conversations/s1/fork", "{}").into(201, &fork)
		var own, stolen chatReply
		v.askAsOwner("POST", "/chat", body(fork.ID)).into(200, &own)
		if !strings.Contains(own.Response, "my secret is "+mark) {
			v.t.Errorf("the answer to the victim is %q: the test shows nothing", own.Response)
		}
		v.askAsOwner("DELETE", "/api/conversations/"+fork.ID, "")
		if v.askAsOther("POST", "/chat", body("s1")).into(200, &stolen); strings.Contains(stolen.Response, "my secret") {
			v.t.Errorf("the request to the thief's model has %q", stolen.Response)
		}
	}
}

func (v *victim) entries(conversation string) []continuo.Entry {
	v.t.Helper()
	var page struct{ Data []continuo.Entry }
	answer := v.askAsOwner("GET", "/api/conversations/"+conversation+"/entries", "")
	if err := json.Unmarshal(answer.body, &page); err != nil {
		v.t.Fatal(err)
	}
	return page.Data
}
