package search_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/tool/search"
)

// fixture is a log with one conversation.
type fixture struct {
	testing.TB
	tool         search.Tool
	conversation continuo.Conversation
	since        int64 // of the calls
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func newFixture(t testing.TB, entries ...continuo.Entry) *fixture {
	t.Helper()
	store := storetest.NewMemory()
	log := continuo.NewLog(store, continuo.LogOptions{Now: func() time.Time { return noon }})
	conversation, err := log.Import(t.Context(), continuo.Conversation{}, entries)
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{TB: t, tool: search.Tool{Log: log, Index: store}, conversation: conversation}
}

// userEntries makes entries of alternate speakers.
func userEntries(texts ...string) []continuo.Entry {
	entries := make([]continuo.Entry, len(texts))
	for i, text := range texts {
		entries[i] = continuo.Entry{Role: []continuo.Role{continuo.User, continuo.Assistant}[i%2], Content: continuo.Text(text)}
	}
	return entries
}

// calls is an answer with a call, and its result if there is one.
func calls(id, name, arguments string, result ...continuo.Entry) []continuo.Entry {
	entries := []continuo.Entry{{Role: continuo.Assistant, Content: continuo.Null(), ToolCalls: []continuo.ToolCall{continuo.FunctionCall(id, name, arguments)}}}
	for _, r := range result {
		r.Role, r.ToolCallID = continuo.Tool, id
		entries = append(entries, r)
	}
	return entries
}

func join(lists ...[]continuo.Entry) []continuo.Entry {
	var all []continuo.Entry
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

func (p *fixture) append(entries ...continuo.Entry) {
	p.Helper()
	if _, err := p.tool.Log.Append(p.Context(), p.conversation.ID, entries, continuo.AppendOptions{}); err != nil {
		p.Fatal(err)
	}
	conversation, err := p.tool.Log.Conversation(p.Context(), p.conversation.ID)
	if err != nil {
		p.Fatal(err)
	}
	p.conversation = conversation
}

func (p *fixture) search(arguments string) tool.Result {
	p.Helper()
	return p.tool.Run(p.Context(), tool.Call{Conversation: p.conversation, ID: "call_x", Arguments: arguments, Since: p.since})
}

// query is arguments with a query only.
func query(text string) string {
	encoded, _ := json.Marshal(map[string]string{"query": text})
	return string(encoded)
}

// seqs are the matches of a result, as "#3 #1", and whether it says that there is no more.
func seqs(result tool.Result) (string, bool) {
	var found []string
	for line := range strings.SplitSeq(result.Content, "\n") {
		if strings.HasPrefix(line, "#") {
			seq, _, _ := strings.Cut(line, " ")
			found = append(found, seq)
		}
	}
	return strings.Join(found, " "), !result.Failed && (strings.HasSuffix(result.Content, "was reached]") || strings.HasSuffix(result.Content, "as from says]"))
}

// finds checks which entries a search finds.
func (p *fixture) finds(arguments, want string) {
	p.Helper()
	result := p.search(arguments)
	if got, ended := seqs(result); got != want || !ended {
		p.Errorf("%s found %q, want %q:\n%s", arguments, got, want, result.Content)
	}
}

func (p *fixture) is(got tool.Result, outcome, content string) {
	p.Helper()
	if got.Failed || got.Outcome != outcome || got.Content != content {
		p.Errorf("failed %t: %s\n%s\nwant: %s\n%s", got.Failed, got.Outcome, got.Content, outcome, content)
	}
}
