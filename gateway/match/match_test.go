package match_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/gateway/match"
	"github.com/continuo-log/continuo/gateway/request"
	"github.com/continuo-log/continuo/store/sqlite"
)

// history makes entries of lines: "u text", "a text", "s text", "c id name arguments" for a call, "t id text" for its
// result, "x text" for an answer that failed.
func history(lines ...string) (entries []continuo.Entry) {
	for _, line := range lines {
		tag, text, _ := strings.Cut(line, " ")
		e := continuo.Entry{Content: continuo.Text(text)}
		switch tag {
		case "u":
			e.Role = continuo.User
		case "s":
			e.Role = continuo.System
		case "a":
			e.Role = continuo.Assistant
		case "x":
			e.Role = continuo.Assistant
			e.Error = &continuo.TurnError{Code: continuo.LLMError, Reason: continuo.ReasonNetwork, Message: "gone"}
		case "c":
			id, rest, _ := strings.Cut(text, " ")
			name, arguments, _ := strings.Cut(rest, " ")
			e = continuo.Entry{Role: continuo.Assistant, Content: continuo.Null(), ToolCalls: []continuo.ToolCall{continuo.FunctionCall(id, name, arguments)}}
		case "t":
			id, rest, _ := strings.Cut(text, " ")
			e = continuo.Entry{Role: continuo.Tool, ToolCallID: id, Content: continuo.Text(rest)}
		}
		entries = append(entries, e)
	}
	return entries
}

// ask sends a request, and its answer if there is one.
func (g *gateway) ask(q match.Query, entries []continuo.Entry, answer ...string) *turn {
	g.t.Helper()
	if q.Request == nil {
		q.Request = &request.Request{}
	}
	q.Request.Entries = entries
	u := g.receive(q)
	for _, e := range history(answer...) {
		u.append(g, []continuo.Entry{e})
	}
	return u
}

// expect compares a match with what it should be, such as "prefix extend 3" or "new".
func expect(t *testing.T, u *turn, want string, conversation string) {
	t.Helper()
	what := ""
	switch m := u.found; {
	case m.Retry:
		what = "retry"
	case m.Fork && m.Rewritten:
		what = "rewritten"
	case m.Fork:
		what = "fork"
	case m.Conversation.ID != "":
		what = "extend"
	}
	got := strings.TrimSpace(fmt.Sprintf("%s %s %d", u.found.By, what, u.found.Common))
	if u.found.Side != "" {
		got += " " + u.found.Side
	}
	if got != want || conversation != "" && u.found.Conversation.ID != conversation {
		t.Errorf("got %q of %s, want %q of %s", got, u.found.Conversation.ID, want, conversation)
	}
}

func TestTheMessagesDecide(t *testing.T) {
	g := newGateway(t, stores["memory"](t))
	none := match.Query{}
	first := g.ask(none, history("s Today is 2026-11-22.", "u hi"), "a Hello!  \n")
	expect(t, first, "new  0", "")
	own := first.conversation
	expect(t, g.ask(none, history("s Today is 2026-11-23.", "u hi <system-reminder>be brief</system-reminder>", "a Hello!", "u more"), `c k1 f {"b":1,"a":[2]}`), "prefix extend 3", own)
	expect(t, g.ask(none, history("s Today is 2026-11-23.", "u hi", "a Hello!", "u more", `c k1 f {"a": [2], "b": 1}`, "t k1 done"), "a Done."), "prefix extend 5", own)
	if twin := g.ask(none, history("s Today is 2026-11-22.", "u hi"), "a Hello!"); twin.conversation == own || twin.found.Conversation.ID != "" {
		t.Errorf("the same beginning is %+v", twin.found)
	} else {
		expect(t, g.ask(none, history("s Today is 2026-11-22.", "u hi", "a Hello!", "u else")), "prefix extend 3", twin.conversation)
	}
	whole := []string{"s Today is 2026-11-23.", "u hi", "a Hello!", "u more", `c k1 f {"a": [2], "b": 1}`, "t k1 done", "a Done.", "u next"}
	edited := append([]string{}, whole...)
	edited[5] = "t k1 another"
	u := g.ask(none, history(edited...), "a Another.")
	expect(t, u, "prefix rewritten 4", own) // before the call, which a fork may not part from its result
	expect(t, g.ask(none, history(append(edited, "a Another.", "u go on")...)), "prefix extend 9", u.conversation)
	expect(t, g.ask(none, history(whole...), "x Par"), "prefix extend 7", own)
	expect(t, g.ask(none, history(whole...), "a Partly."), "prefix retry 8", own)
	expect(t, g.ask(none, history(whole...)), "prefix rewritten 8", own) // asked once more though it was answered
	expect(t, g.ask(match.Query{Header: http.Header{"X-Stainless-Retry-Count": {"1"}}}, history(append(whole, "a Partly.", "u last")...), "x"), "prefix extend 9", own)
	expect(t, g.ask(none, history(append(whole, "a Partly.", "u instead")...)), "prefix extend 9", own) // the failed turn is gone
	expect(t, g.ask(match.Query{Scope: continuo.Scope{ProjectID: "other"}}, history(whole...)), "new  0", "")
	expect(t, g.ask(match.Query{Request: &request.Request{System: []string{"You are a title generator"}}}, history(append(whole, "a Partly.", "u instead", "a ok", "u ?")...)), "prefix rewritten 10", own)
}

func TestCallIDsDecideBetweenTwins(t *testing.T) {
	g := newGateway(t, stores["memory"](t))
	begin := history("u run")
	one, two := g.ask(match.Query{}, begin, "c k1 f {}"), g.ask(match.Query{}, begin, "c k2 f {}")
	expect(t, g.ask(match.Query{}, history("u run", "c k2 f {}", "t k2 ok"), "a done"), "prefix extend 2", two.conversation)
	expect(t, g.ask(match.Query{}, history("u run", "c k1 f {}", "t k1 ok"), "a done"), "prefix extend 2", one.conversation)
	expect(t, g.ask(match.Query{}, history("u run", "c k1 f {}", "t k1 ok", "a done", "u go")), "prefix extend 4", one.conversation)
	expect(t, g.ask(match.Query{}, history("u run", "c k2 f {}", "t k2 ok", "a done", "u go")), "prefix extend 4", two.conversation)
	// A client that makes up its own ids is answered under those of the log.
	three := g.ask(match.Query{}, history("u walk"), "c k3 f {}")
	made := g.ask(match.Query{}, history("u walk", "c mine f {}", "t mine ok"))
	expect(t, made, "prefix extend 2", three.conversation)
	if id := made.found.Entries()[0].ToolCallID; id != "k3" {
		t.Errorf("the result is of the call %q", id)
	}
}

func TestTheSessionDecides(t *testing.T) {
	g := newGateway(t, stores["memory"](t))
	session := func(id string, more ...string) match.Query {
		h := http.Header{"User-Agent": {"opencode/1.18"}, "X-Session-Id": {id}}
		for i := 0; i < len(more); i += 2 {
			h.Set(more[i], more[i+1])
		}
		return match.Query{Header: h, Request: &request.Request{Tools: []continuo.ToolSpec{{Name: "bash"}}}}
	}
	one := g.ask(session("1"), history("u hi"), "a Hello!")
	expect(t, one, "new  0", "")
	two := g.ask(session("2"), history("u hi"), "a Hello!")
	expect(t, two, "new  0", "")
	expect(t, g.ask(session("1"), history("u hi", "a Hello!", "u x"), "a X"), "session extend 2", one.conversation)
	expect(t, g.ask(session("2"), history("u hi", "a Hello!", "u x"), "a X"), "session extend 2", two.conversation)
	fork := g.ask(session("3"), history("u hi", "a Hello!", "u y"), "a Y")
	expect(t, fork, "prefix fork 2", "")
	expect(t, g.ask(session("3"), history("u hi", "a Hello!", "u y", "a Y", "u z")), "session extend 4", fork.conversation)
	compacted := g.ask(session("1"), history("u What was said: hi"), "a I see.")
	expect(t, compacted, "session rewritten 0", one.conversation)
	expect(t, g.ask(session("1"), history("u What was said: hi", "a I see.", "u on")), "session extend 2", compacted.conversation)
	title := session("2")
	title.Request = &request.Request{System: []string{"You are a title generator."}}
	aside := g.ask(title, history("u hi"), "a Greeting")
	expect(t, aside, "session  0 title", "")
	agent := g.ask(session("9", "X-Parent-Session-Id", "2"), history("u look"), "c k f {}")
	expect(t, agent, "session  0 subagent", "")
	expect(t, g.ask(session("9", "X-Parent-Session-Id", "2"), history("u look", "c k f {}", "t k ok")), "session extend 2 subagent", agent.conversation)
	if aside.found.Parent != two.conversation || agent.found.Parent != two.conversation || aside.found.Kind() != continuo.KindSide {
		t.Errorf("calls beside the session: %+v, %+v", aside.found, agent.found)
	}
	early := session("4")
	early.Request = &request.Request{System: []string{"You are a title generator."}}
	before := g.ask(early, history("u hi"), "a Greeting") // comes before the session's first request
	expect(t, before, "session  0 title", "")
	expect(t, g.ask(session("4"), history("u hi"), "a Hello!"), "session extend 0", before.found.Parent)
	suggestion := session("2")
	s := g.ask(suggestion, history("u hi", "a Hello!", "u x", "a X", "u [SUGGESTION MODE: what next]"))
	expect(t, s, "session extend 4", two.conversation) // opencode has no such calls: its person wrote that
}

// hookedPrefixes calls a function after its next look-up.
type hookedPrefixes struct {
	continuo.PrefixStore
	next func()
}

func (s *hookedPrefixes) Prefixes(ctx context.Context, query continuo.PrefixQuery) ([]continuo.Prefix, []continuo.Conversation, error) {
	rows, conversations, err := s.PrefixStore.Prefixes(ctx, query)
	if next := s.next; next != nil {
		s.next = nil
		next()
	}
	return rows, conversations, err
}

// A session that another try of the request begins, after its messages were looked for and before the session was, is the
// request's: the client has replaced nothing.
func TestASessionThatBeginsMeanwhile(t *testing.T) {
	store := stores["memory"](t)
	g := newGateway(t, store)
	query := match.Query{Header: http.Header{"User-Agent": {"opencode/1.18"}, "X-Session-Id": {"1"}}, IdempotencyKey: "k"}
	var first *turn
	prefixes := &hookedPrefixes{store, func() { first = g.ask(query, history("u hi")) }}
	second := &gateway{t: t, log: g.log, match: match.New(match.Options{Log: g.log, Prefixes: prefixes})}
	again := query
	again.Request = &request.Request{Entries: history("u hi")}
	found, err := second.match.Match(t.Context(), again)
	if err != nil || !found.Retry || found.RetryOf != first.id || found.Conversation.ID != first.conversation {
		t.Errorf("the second try is %+v, %v, not of %s", found, err, first.id)
	}
}

func TestANamedConversation(t *testing.T) {
	g := newGateway(t, stores["memory"](t))
	created, err := g.log.Create(t.Context(), continuo.Conversation{Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	named := func() match.Query {
		now, err := g.log.Conversation(t.Context(), created.ID)
		if err != nil {
			t.Fatal(err)
		}
		return match.Query{Named: &now}
	}
	expect(t, g.ask(named(), history("u one"), "a 1"), "header extend 0", created.ID)
	expect(t, g.ask(named(), history("u one"), "a 1"), "header extend 0", created.ID) // the server keeps the history
	expect(t, g.ask(named(), history("u one", "a 1", "u one", "a 1", "u two"), "a 2"), "header extend 4", created.ID)
	expect(t, g.ask(named(), history("u one", "a 1", "u another")), "header rewritten 2", created.ID)
}

// An answer that broke off, the instruction to continue and the rest are one message later.
func TestHalvesOfAnAnswerAreMerged(t *testing.T) {
	g := newGateway(t, stores["memory"](t))
	u := g.ask(match.Query{}, history("u count"), "x one, two, ")
	expect(t, g.ask(match.Query{}, history("u count", "x one, two, ", "u go on"), "a three"), "prefix extend 2", u.conversation)
	expect(t, g.ask(match.Query{}, history("u count", "a one, two, three", "u thanks")), "prefix extend 2", u.conversation)
}

// timed measures how long its store takes.
type timed struct {
	continuo.PrefixStore
	spent time.Duration
}

func (s *timed) Prefixes(ctx context.Context, query continuo.PrefixQuery) ([]continuo.Prefix, []continuo.Conversation, error) {
	began := time.Now()
	defer func() { s.spent += time.Since(began) }()
	return s.PrefixStore.Prefixes(ctx, query)
}

// A look-up over 5 000 messages, of a history that continues and of one that was edited in the middle.
func BenchmarkMatch(b *testing.B) {
	store, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "a.db"), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	log := continuo.NewLog(store, continuo.LogOptions{})
	lookUps := &timed{PrefixStore: store}
	m := match.New(match.Options{Log: log, Prefixes: lookUps})
	var lines []string
	for i := range 2500 {
		lines = append(lines, fmt.Sprintf("u question %d %s", i, strings.Repeat("word ", 40)), fmt.Sprintf("a answer %d %s", i, strings.Repeat("word ", 80)))
	}
	whole := history(lines...)
	found, err := m.Match(b.Context(), match.Query{Request: &request.Request{Entries: whole}})
	if err != nil {
		b.Fatal(err)
	}
	conversation, err := log.Create(b.Context(), continuo.Conversation{})
	if err != nil {
		b.Fatal(err)
	}
	chain, _ := found.Chain()
	_, prefixes := chain.Add(whole)
	if _, err := log.Append(b.Context(), conversation.ID, whole, continuo.AppendOptions{Prefixes: prefixes}); err != nil {
		b.Fatal(err)
	}
	edited := append(append([]continuo.Entry{}, whole...), history("u next")...)
	edited[2400].Content = continuo.Text("edited")
	for name, entries := range map[string][]continuo.Entry{"continued": append(whole, history("u next")...), "edited": edited} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			lookUps.spent = 0
			for b.Loop() {
				found, err := m.Match(b.Context(), match.Query{Request: &request.Request{Entries: entries}})
				if err != nil || found.By != match.ByPrefix {
					b.Fatal(found, err)
				}
			}
			b.ReportMetric(float64(lookUps.spent.Nanoseconds())/float64(b.N), "ns-in-store/op")
		})
	}
}

// A client that has its system prompt in the first message, as opencode has it through the Responses API, makes its side
// calls in the same form.
func TestSideCallWithItsSystemPromptAsAMessage(t *testing.T) {
	g := newGateway(t, stores["sqlite"](t))
	opencode := http.Header{"User-Agent": {"opencode/1.18.33"}, "X-Session-Id": {"ses_1"}}
	title := g.ask(match.Query{Header: opencode}, history("s You are a title generator. You output ONLY a thread title.", "u Generate a title for this conversation:", "u hi"), "a Greeting")
	expect(t, title, "session  0 title", "")
	first := g.ask(match.Query{Header: opencode}, history("s You are opencode, an agent", "u hi"), "a hello")
	expect(t, first, "session extend 0", title.found.Parent)
}

// Qwen Code's /compress has its instruction as the system prompt, not as the last message. Of the answer it keeps the
// snapshot, not the analysis before it.
func TestCompactionWithAnInstructionAsTheSystemPrompt(t *testing.T) {
	g := newGateway(t, stores["sqlite"](t))
	says := func(system string) match.Query {
		return match.Query{Header: http.Header{"User-Agent": {"QwenCode/0.24.4"}}, Request: &request.Request{System: []string{system}}}
	}
	session := g.ask(says("You are Qwen Code"), history("u hi"), "a hello")
	var analysis, snapshot string
	for i := range 8 {
		analysis += fmt.Sprintf("%d. What the user asked for at first, and what was answered\n", i)
		snapshot += fmt.Sprintf("  <fact>The project's language is Go, and its tests run in %d minutes</fact>\n", i)
	}
	snapshot = "<state_snapshot>\n" + snapshot + "</state_snapshot>"
	compress := g.ask(says("You are the component that summarizes a conversation"), history("u hi", "a hello", "u First, reason in your <analysis> block."),
		"a <analysis>\n"+analysis+"</analysis>\n"+snapshot)
	if compress.found.Side != "compaction" || compress.found.Parent != session.conversation {
		t.Errorf("the compaction is %q beside %q", compress.found.Side, compress.found.Parent)
	}
	next := g.ask(says("You are Qwen Code"), history("u "+snapshot, "a Got it. Thanks for the additional context!", "u go on"), "a yes")
	if next.found.Parent != session.conversation || !next.found.Fork {
		t.Errorf("the next message is in %+v, no fork of %s", next.found, session.conversation)
	}
}

// Stopped by Ctrl-C, Claude Code leaves the broken answer out, says so in the message, and makes up an answer of its own:
// the session continues all the same. In another session, such an answer is a difference.
func TestAnswerMadeUpAfterACancelledTurn(t *testing.T) {
	g := newGateway(t, stores["sqlite"](t))
	claude := http.Header{"X-Claude-Code-Session-Id": {"s1"}}
	first := g.ask(match.Query{Header: claude}, history("u hi"), "a hello")
	g.ask(match.Query{Header: claude}, history("u hi", "a hello", "u count to a million"), "x one two")
	whole := history("u hi", "a hello", "u count to a million\n", "a No response requested.", "u and now?")
	whole[2].Content = continuo.Parts(continuo.TextPart("count to a million\n"), continuo.TextPart("[Request interrupted by user]"))
	next := g.ask(match.Query{Header: claude}, whole, "a now")
	expect(t, next, "session extend 2", first.conversation)
	again := g.ask(match.Query{Header: claude}, append(whole, history("a now", "u later")...))
	expect(t, again, "session extend 6", first.conversation)
	other := g.ask(match.Query{Header: claude}, history("u hi", "a hello", "u else", "a something", "u and now?"))
	expect(t, other, "session rewritten 2", first.conversation)
}
