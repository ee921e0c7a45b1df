// Package search gives models the tool conversation.search, which searches the log of the calling
// conversation, through a fork's lineage.
//
// A query (query.go) is words or a question, which package recall/search ranks, or one regular expression, for which all
// entries are read from the newest one back, in pages, within a time limit (find.go). match.go finds the lines of each
// match. show.go writes the matches as a text, in which no line of an entry can be mistaken for a line of the tool.
//
// Pitfalls: package recall/search decides what words find, and in which order. For an expression, a
// line of more than 16 KiB is matched in pieces that overlap by 1 KiB. Hidden and redacted entries, what clients have
// deleted, reasoning and the group of the call itself are never found. For an output that is stored beside the log only its
// preview is searched; the last lines then say that fs.search searches all of it.
package search

import (
	"context"
	_ "embed"
	"encoding/json"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/recall/search"
	"github.com/continuo-log/continuo/tool"
)

//go:embed search.md
var description string

// parameters is the JSON Schema of the arguments.
const parameters = `{"type":"object","properties":{"query":{"type":"string","minLength":1,"description":"Words, or a question as it is asked: entries with the rarest of them come first; \"in quotes\" words have to occur side by side; -word leaves out entries with it; word* has to occur, and also finds longer ones"},"regex":{"type":"boolean","description":"Take the query as one regular expression (RE2), which reads every entry; ^ and $ match at the ends of lines"},"role":{"type":"string","enum":["user","assistant","tool","system"],"description":"Only entries of this role"},"from":{"type":"integer","minimum":1,"description":"Only entries from this seq on"},"to":{"type":"integer","minimum":1,"description":"Only entries up to this seq"},"before":{"type":"integer","minimum":1,"description":"Only entries before this seq"},"skip":{"type":"integer","minimum":0,"description":"Continue after so many matches"},"limit":{"type":"integer","minimum":1,"maximum":50,"description":"The most entries shown. Default 10"}},"required":["query"],"additionalProperties":false}`

// Tool is the tool conversation.search. Its memory is bounded by a page of entries.
type Tool struct {
	Log *continuo.Log
	// Index is the index of the log. Default nil: every search reads the log.
	Index index.Store
	// Searcher searches by words. Default: over Log and Index, without embeddings and a reranker.
	Searcher func() search.Searcher
	// MaxChars bounds the output of one call, in Unicode characters; one match, of at most about 3 000, is
	// always shown. Default 8 000, so that a result is shown whole.
	MaxChars int
	// MaxTime bounds the time of one call, which then reports what it searched. Default 20 s.
	MaxTime time.Duration
}

func (t Tool) searcher() search.Searcher {
	if t.Searcher != nil {
		return t.Searcher()
	}
	return search.Searcher{Log: t.Log, Store: t.Index}
}

// Spec describes the tool to a model.
func (t Tool) Spec() continuo.ToolSpec {
	return continuo.ToolSpec{Name: "conversation.search", Description: strings.TrimSpace(description), Parameters: json.RawMessage(parameters)}
}

// Repeatable is part of tool.Repeatable: searching changes nothing.
func (Tool) Repeatable() bool { return true }

// Useful is part of tool.Situational: a model that is shown the whole conversation has nothing to search for.
func (Tool) Useful(s tool.Situation) bool { return s.Partial }

// Run searches.
func (t Tool) Run(ctx context.Context, call tool.Call) tool.Result {
	asked, err := decode(call.Arguments)
	if err != nil {
		return tool.Failure("conversation.search: %v", err)
	}
	query, err := asked.query(call.Conversation.LastSeq)
	if err != nil {
		return tool.Failure("conversation.search: %v", err)
	}
	query.from = max(query.from, call.Since+1)
	ctx, cancel := context.WithTimeout(ctx, t.maxTime())
	defer cancel()
	page := page{limit: asked.limit(), chars: t.maxChars(), stretch: query.stretch, found: map[int64]bool{}}
	page.skip = asked.Skip
	fill := t.fill
	if query.expression == nil {
		fill = t.rank
	}
	if err := fill(ctx, call, query, &page); err != nil && ctx.Err() == nil {
		return tool.Failure("conversation.search: %v", err)
	}
	t.countLarge(ctx, call, query, &page)
	return tool.Result{Outcome: page.outcome(asked.Query), Content: page.content()}
}

// fill reads entries until the page is full, the newest first. An error may be that of ctx: the page then shows how far
// the search went.
func (t Tool) fill(ctx context.Context, call tool.Call, query *query, page *page) error {
	own, err := t.ownGroup(ctx, call)
	if err != nil {
		return err
	}
	if query.to = min(query.to, own-1); query.to < query.from {
		page.done = true // To 0 would be the newest entry
		return nil
	}
	for entry, err := range t.Log.Read(ctx, call.Conversation, continuo.Range{From: query.from, To: query.to, Backward: true}) {
		if err != nil {
			return err
		}
		match, err := query.match(ctx, &index.Candidate{Hit: index.Hit{Seq: entry.Seq}, Conversation: call.Conversation, Entry: entry})
		if err != nil {
			return err
		}
		if match == nil && query.takes(entry.Role) && entry.Output != nil {
			page.inPart++
		}
		if match, err = t.unlessDeleted(ctx, call.Conversation, match); err != nil {
			return err
		}
		if match != nil && page.skip > 0 {
			page.skip--
			match = nil
		}
		if match != nil && !page.add(match) {
			return nil
		}
		page.searched = entry.Seq
	}
	page.done = true
	return nil
}

// unlessDeleted returns a match, nil for nil and for an entry that a client has deleted.
func (t Tool) unlessDeleted(ctx context.Context, conversation continuo.Conversation, found *match) (*match, error) {
	if found == nil {
		return nil, nil
	}
	deleted, err := t.Log.Deleted(ctx, conversation, []int64{found.entry.Seq})
	if err != nil || len(deleted) > 0 {
		return nil, err
	}
	return found, nil
}

func (t Tool) maxTime() time.Duration {
	if t.MaxTime > 0 {
		return t.MaxTime
	}
	return 20 * time.Second
}

func (t Tool) maxChars() int {
	if t.MaxChars > 0 {
		return t.MaxChars
	}
	return 8000
}
