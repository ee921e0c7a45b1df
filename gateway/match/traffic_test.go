package match_test

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/gateway/match"
	"github.com/continuo-log/continuo/gateway/request"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/anthropic"
	"github.com/continuo-log/continuo/model/gemini"
	"github.com/continuo-log/continuo/model/openai"
	"github.com/continuo-log/continuo/model/responses"
	"github.com/continuo-log/continuo/store/sqlite"
	"github.com/continuo-log/continuo/store/storetest"
)

// recorded is a line of the recorded traffic; its README describes them.
type recorded struct {
	Agent    string            `json:"agent"`
	Scenario string            `json:"scenario"`
	Seq      int               `json:"seq"`
	Arrived  int               `json:"t_ms"`
	Ended    int               `json:"end_ms"`
	Session  string            `json:"session"`
	Kind     string            `json:"kind"`
	Stream   string            `json:"stream"`
	Side     string            `json:"side"`
	RetryOf  int               `json:"retry_of"`
	Method   string            `json:"method"`
	Path     string            `json:"path"`
	Headers  map[string]string `json:"request_headers"`
	Body     string            `json:"request_body"`
	Status   int               `json:"status"`
	Answer   string            `json:"response_body"`
	Answered map[string]any    `json:"response_headers"`
	Closed   bool              `json:"client_closed"`
}

// dataFiles finds files of the shared data, or skips the test.
func dataFiles(t testing.TB, pattern string) []string {
	t.Helper()
	folder := os.Getenv("CONTINUO_DATA")
	if folder == "" {
		folder = filepath.Join("..", "..", "..", "shared", "data")
	}
	files, _ := filepath.Glob(filepath.Join(folder, pattern))
	if len(files) == 0 {
		t.Skipf("SKIPPED: no %s in %s; set CONTINUO_DATA to the folder that holds it", pattern, folder)
	}
	return files
}

// eachLine calls f for each line of a packed file.
func eachLine(t testing.TB, file string, f func(line []byte)) {
	t.Helper()
	packed, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReaderSize(unpacked, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			f(line)
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// read reads the request in the protocol of its path.
func (r *recorded) read() (*request.Request, error) {
	switch {
	case strings.HasPrefix(r.Path, "/v1/chat/completions"):
		return request.ReadChat([]byte(r.Body), request.Options{Provider: "openai"})
	case strings.HasPrefix(r.Path, "/v1/messages"):
		return request.ReadAnthropic([]byte(r.Body), request.Options{Provider: "anthropic"})
	case strings.HasPrefix(r.Path, "/v1/responses"):
		return request.ReadResponses([]byte(r.Body), request.Options{Provider: "openai"})
	case strings.Contains(r.Path, "enerateContent"):
		return request.ReadGemini([]byte(r.Body), request.Options{Provider: "google"})
	}
	return nil, nil
}

// RoundTrip answers with the recorded response.
func (r *recorded) RoundTrip(*http.Request) (*http.Response, error) {
	header := http.Header{}
	for name, value := range r.Answered {
		header.Set(name, fmt.Sprint(value))
	}
	header.Del("Content-Length")
	header.Del("Content-Encoding")
	return &http.Response{StatusCode: r.Status, Header: header, Body: io.NopCloser(strings.NewReader(r.Answer)), Proto: "HTTP/1.1"}, nil
}

// entry reads the recorded response as the model clients do.
func (r *recorded) entry(ctx context.Context) continuo.Entry {
	client := &http.Client{Transport: r}
	var m model.Model
	switch {
	case strings.HasPrefix(r.Path, "/v1/chat/completions"):
		m = openai.New(openai.Options{HTTPClient: client})
	case strings.HasPrefix(r.Path, "/v1/messages"):
		m = anthropic.New(anthropic.Options{HTTPClient: client})
	case strings.HasPrefix(r.Path, "/v1/responses"):
		m = responses.New(responses.Options{HTTPClient: client})
	default:
		m = gemini.New(gemini.Options{HTTPClient: client, Name: "m"})
	}
	answer := model.Answer{Provider: m.Info().Provider}
	var failure error
	for delta, err := range m.Stream(ctx, []byte(r.Body)) {
		if err != nil {
			failure = err
		}
		answer.Add(delta)
	}
	if r.Closed && failure == nil && answer.Finish() == "" {
		failure = &model.Error{Reason: continuo.ReasonCancelled, Message: "the client left"}
	}
	return answer.Entry(failure)
}

// gateway appends what requests and answers say, as the endpoints do.
type gateway struct {
	t     *testing.T
	log   *continuo.Log
	match *match.Matcher
	turns int
}

func newGateway(t *testing.T, store maintenance.Store) *gateway {
	log := continuo.NewLog(store, continuo.LogOptions{})
	return &gateway{t: t, log: log, match: match.New(match.Options{Log: log, Prefixes: store})}
}

// turn is a request whose answer is awaited.
type turn struct {
	found        *match.Match
	conversation string
	chain        match.Chain
	tracked      bool
	id           string
	asked        *request.Request
	before       []continuo.Entry // what the conversation had when the request was appended
}

// receive matches a request and appends what is new of it.
func (g *gateway) receive(q match.Query) *turn {
	g.t.Helper()
	ctx := g.t.Context()
	found, err := g.match.Match(ctx, q)
	if err != nil {
		g.t.Fatal(err)
	}
	conversation := found.Conversation
	if found.ParentKey != "" {
		parent, err := g.log.Create(ctx, continuo.Conversation{Key: found.ParentKey, ProjectID: q.Scope.ProjectID})
		if err != nil {
			g.t.Fatal(err)
		}
		found.Parent = parent.ID
	}
	switch {
	case found.Fork && found.At > 0:
		conversation, err = g.log.Fork(ctx, found.Conversation.ID, found.At, continuo.Conversation{Kind: found.Kind(), Key: found.Key})
	case found.Fork, conversation.ID == "":
		conversation, err = g.log.Create(ctx, continuo.Conversation{Kind: found.Kind(), Key: found.Key, ParentID: found.Parent, ProjectID: q.Scope.ProjectID})
	}
	if err != nil {
		g.t.Fatalf("%+v: %v", found, err)
	}
	g.turns++
	made := &turn{found: found, conversation: conversation.ID, id: fmt.Sprint("turn_", g.turns)}
	made.chain, made.tracked = found.Chain()
	made.append(g, found.Entries())
	for entry, err := range g.log.Entries(ctx, conversation.ID, continuo.Range{}) {
		if err != nil {
			g.t.Fatal(err)
		}
		made.before = append(made.before, entry)
	}
	return made
}

func (u *turn) append(g *gateway, entries []continuo.Entry) []continuo.Entry {
	g.t.Helper()
	if len(entries) == 0 {
		return nil
	}
	for i := range entries {
		entries[i].TurnID = u.id
	}
	next, prefixes := u.chain.Add(entries)
	options := continuo.AppendOptions{}
	if u.tracked {
		options.Prefixes = func(stored []continuo.Entry) []continuo.Prefix {
			all := prefixes(stored)
			for i := range stored {
				if stored[i].Role == continuo.Assistant {
					all = append(all, u.found.SummaryPrefixes(&stored[i])...)
				}
			}
			return all
		}
	}
	stored, err := g.log.Append(g.t.Context(), u.conversation, entries, options)
	if err != nil {
		for _, e := range entries {
			raw, _ := json.Marshal(&e)
			g.t.Logf("%.300s", raw)
		}
		g.t.Fatalf("append to %s: %v (%+v)", u.conversation, err, u.found)
	}
	u.chain = next
	return stored
}

func header(headers map[string]string) http.Header {
	h := http.Header{}
	for name, value := range headers {
		h.Set(name, value)
	}
	return h
}

// replay sends the requests of one scenario in the order of their arrival, and gives each its answer when it came.
type replay struct {
	*gateway
	lines []*recorded
	done  map[int]*turn // by seq
}

func (p *replay) run() {
	type event struct {
		at     int
		answer bool
		line   *recorded
	}
	var events []event
	for _, line := range p.lines {
		events = append(events, event{line.Arrived, false, line}, event{max(line.Ended, line.Arrived), true, line})
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	for _, e := range events {
		if e.answer {
			p.answer(e.line)
			continue
		}
		asked, err := e.line.read()
		if err != nil {
			p.t.Fatalf("%s %d: %v", e.line.Scenario, e.line.Seq, err)
		}
		if asked != nil {
			u := p.receive(match.Query{
				Scope: continuo.Scope{ProjectID: e.line.Agent + "-" + e.line.Scenario}, Request: asked, Header: header(e.line.Headers),
			})
			u.asked, p.done[e.line.Seq] = asked, u
		}
	}
}

func (p *replay) answer(line *recorded) {
	u := p.done[line.Seq]
	if u == nil {
		return
	}
	entry := line.entry(p.t.Context())
	if entry.Content.IsBlank() && len(entry.ToolCalls) == 0 && entry.Error == nil && entry.Reasoning == nil {
		return
	}
	u.append(p.gateway, []continuo.Entry{entry})
}

// stores are the engines that the matcher is tested with.
var stores = map[string]func(t *testing.T) maintenance.Store{
	"memory": func(*testing.T) maintenance.Store { return storetest.NewMemory() },
	"sqlite": func(t *testing.T) maintenance.Store {
		store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "a.db"), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		return store
	},
}

// The recorded requests of five agents: each main request belongs to its own session and adds each of its messages once,
// and calls beside a session stay out of it.
func TestAgentTraffic(t *testing.T) {
	for engine, open := range stores {
		if engine == "memory" && os.Getenv("CONTINUO_LONG") == "" {
			continue // the suite of stores compares it with the others
		}
		t.Run(engine, func(t *testing.T) {
			for _, file := range dataFiles(t, "agent-traffic/*.jsonl.gz") {
				scenarios := map[string][]*recorded{}
				var order []string
				eachLine(t, file, func(line []byte) {
					r := &recorded{}
					if err := json.Unmarshal(line, r); err != nil {
						t.Fatal(err)
					}
					if scenarios[r.Scenario] == nil {
						order = append(order, r.Scenario)
					}
					scenarios[r.Scenario] = append(scenarios[r.Scenario], r)
				})
				g := newGateway(t, open(t)) // one store: the scenarios must not disturb each other
				for _, scenario := range order {
					t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl.gz")+"/"+scenario, func(t *testing.T) {
						here := *g
						here.t = t
						p := &replay{gateway: &here, lines: scenarios[scenario], done: map[int]*turn{}}
						p.run()
						p.check()
					})
				}
			}
		})
	}
}

// roots returns the conversation that a conversation was first forked or begun from.
func (p *replay) root(id string) string {
	for {
		c, err := p.log.Conversation(p.t.Context(), id)
		if err != nil {
			p.t.Fatal(err)
		}
		if c.ParentID == "" {
			return id
		}
		id = c.ParentID
	}
}

func (p *replay) check() {
	t := p.t
	t.Helper()
	counts := map[string]int{}
	session := map[string]string{}   // of a conversation
	besides := map[string][]string{} // the side calls of a session
	for _, line := range p.lines {
		u := p.done[line.Seq]
		if u == nil {
			continue
		}
		m := u.found
		where := fmt.Sprintf("%s %d (%s %s): %s, common %d of %d, at %d, fork %t, rewritten %t, side %q, retry %t, conversation %s", line.Scenario, line.Seq,
			line.Kind, line.Stream, m.By, m.Common, m.Common+len(m.Entries()), m.At, m.Fork, m.Rewritten, m.Side, m.Retry, u.conversation)
		if testing.Verbose() && os.Getenv("CONTINUO_LONG") != "" {
			t.Log(where)
		}
		counts[line.Kind]++
		c, err := p.log.Conversation(t.Context(), u.conversation)
		if err != nil {
			t.Fatal(err)
		}
		if side := line.Kind == "side" || line.Kind == "compaction"; side != (c.Kind == continuo.KindSide) {
			t.Errorf("%s: it has the kind %q", where, c.Kind)
			continue
		}
		if line.Kind == "side" && line.Side != m.Side && !(line.Side == "fork-agent" && m.Side == "subagent") {
			t.Errorf("%s: the side call is %q", where, m.Side)
		}
		if c.Kind == continuo.KindSide {
			besides[line.Session] = append(besides[line.Session], u.conversation)
			if c.ParentID == "" && !isUnlinked(line) {
				t.Errorf("%s: it belongs to no session", where)
			}
			continue
		}
		if known := session[u.conversation]; known != "" && known != line.Session && !(line.Agent == "qwen" && line.Scenario == "fork") {
			// Qwen Code names no session: the one that continues first keeps the conversation, the other is its fork.
			t.Errorf("%s: the conversation is that of %s", where, known)
		}
		session[u.conversation] = line.Session
		if m.Fork {
			counts["fork"]++
		}
		if m.Retry != (line.Kind == "retry") && !retriesByContinuing(line) {
			t.Errorf("%s: a retry?", where)
		}
		if line.Agent == "qwen" && line.Scenario == "retry" && line.Seq == 8 {
			if m.Fork { // both halves of a cut answer are one message, and the instruction between them is gone
				t.Errorf("%s: the conversation does not continue", where)
			}
			continue
		}
		p.once(where, u)
	}
	byRoot := map[string]map[string]bool{}
	for id, name := range session {
		if byRoot[name] == nil {
			byRoot[name] = map[string]bool{}
		}
		byRoot[name][p.root(id)] = true
	}
	for name, roots := range byRoot {
		if len(roots) > 1 {
			t.Errorf("%s has %d unconnected conversations", name, len(roots))
		}
		for _, id := range besides[name] {
			if c, err := p.log.Conversation(t.Context(), id); err != nil || c.ParentID != "" && !roots[p.root(id)] {
				t.Errorf("the side call %s is not linked to %s: %v", id, name, err)
			}
		}
	}
	if want := p.rewrites(); counts["fork"] != want {
		t.Errorf("there are %d forks, want %d", counts["fork"], want)
	}
	t.Logf("main %d, side %d, compaction %d, retry %d, forks %d, conversations %d", counts["main"], counts["side"], counts["compaction"], counts["retry"],
		counts["fork"], len(session))
}

// rewrites returns how many forks the main requests make: one for a session that was forked from another, and one after
// each compaction. Gemini CLI makes two calls for each compaction and names no session, so its forked one is not there.
func (p *replay) rewrites() (forks int) {
	for _, line := range p.lines {
		if line.Kind == "compaction" {
			forks++
		}
	}
	switch {
	case p.lines[0].Agent == "gemini":
		return forks / 2
	case p.lines[0].Scenario == "fork":
		return forks + 1
	}
	return forks
}

// isUnlinked says that nothing in a side call says to which session it belongs.
func isUnlinked(line *recorded) bool {
	switch line.Agent + " " + line.Side {
	case "codex title", "gemini subagent", "qwen subagent", "qwen classifier":
		return true
	}
	return line.Kind == "compaction" && line.Agent == "gemini" // the second of two calls has a history of its own
}

// retriesByContinuing says that a client asks the model to continue a cut answer, where others send the request again.
func retriesByContinuing(line *recorded) bool {
	return line.Kind == "retry" && strings.Contains(line.Body, "connection dropped mid-response")
}

// once checks that the conversation has each message of the request once, in order, and else nothing but turns that
// failed.
func (p *replay) once(where string, u *turn) {
	p.t.Helper()
	asked := u.asked
	var want []string
	answered := map[string]bool{}
	for i := range asked.Entries {
		e := &asked.Entries[i]
		if e.Role == continuo.Assistant {
			answered = map[string]bool{}
		}
		if e.Role != continuo.Tool || !answered[e.ToolCallID] { // resumed, Gemini CLI repeats the last result
			want = append(want, match.Said(e)...)
		}
		answered[e.ToolCallID] = true
	}
	failed := map[string]bool{} // turns
	for _, e := range u.before {
		failed[e.TurnID] = failed[e.TurnID] || e.Error != nil
	}
	for _, e := range u.before {
		for _, text := range match.Said(&e) {
			switch {
			case len(want) > 0 && want[0] == text:
				want = want[1:]
			case !failed[e.TurnID]:
				p.t.Errorf("%s: entry %d is not in the request, or at another place: %.120q", where, e.Seq, text)
				return
			}
		}
	}
	if len(want) > 0 {
		p.t.Errorf("%s: the log does not have %.120q", where, want[0])
	}
}
