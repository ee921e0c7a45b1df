// Package properties holds the whole to its laws on real conversations: whatever is imported, at whatever
// point and under whatever budget a request is built from it, the request is one that providers take.
//
// The conversations lie outside the repository (CONTINUO_DATA, or ../shared/data beside the checkout).
// A part of all prefixes is tried by default, all of them with CONTINUO_LONG=1.
package properties

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/interchange"
	"github.com/continuo-log/continuo/render"
	"github.com/continuo-log/continuo/task"
	"github.com/continuo-log/continuo/token"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// long says whether to try everything.
func long() bool { return os.Getenv("CONTINUO_LONG") != "" }

// dataFiles lists the files of conversations, or skips the test, loudly.
func dataFiles(t testing.TB) []string {
	t.Helper()
	folder := os.Getenv("CONTINUO_DATA")
	if folder == "" {
		folder = filepath.Join("..", "..", "..", "shared", "data")
	}
	files, _ := filepath.Glob(filepath.Join(folder, "*.jsonl.gz"))
	if len(files) == 0 {
		t.Skipf("SKIPPED: no conversations in %s; set CONTINUO_DATA to the folder that has them", folder)
	}
	return files
}

// documents reads every conversation of a file.
func documents(t testing.TB, file string) iter.Seq[interchange.Document] {
	return func(yield func(interchange.Document) bool) {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for document, err := range interchange.Read(filepath.Base(file), f, interchange.Options{}) {
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			if !yield(document) {
				return
			}
		}
	}
}

// stored is an imported conversation in memory, as the log numbers and counts it.
type stored struct {
	name    string
	entries []continuo.Entry
	rows    int
}

// numbered gives a document's entries what the log would give them.
func numbered(t testing.TB, document interchange.Document) *stored {
	t.Helper()
	capture := &captureStore{}
	if _, err := continuo.NewLog(capture, continuo.LogOptions{Counter: token.O200k()}).Import(context.Background(), document.Conversation, document.Entries); err != nil {
		t.Errorf("%s: the log refuses the import: %v", document.Source, err)
		return nil
	}
	return &stored{name: document.Source, entries: capture.entries}
}

// captureStore takes what a log creates.
type captureStore struct {
	continuo.Store
	entries []continuo.Entry
}

func (c *captureStore) Create(_ context.Context, _ continuo.Conversation, entries []continuo.Entry) error {
	c.entries = entries
	return nil
}

func (s *stored) Backward(seq int64) iter.Seq2[*continuo.Entry, error] {
	return func(yield func(*continuo.Entry, error) bool) {
		for seq = min(seq, int64(len(s.entries))); seq >= 1; seq-- {
			s.rows++
			if !yield(&s.entries[seq-1], nil) {
				return
			}
		}
	}
}

func (s *stored) Forward(seq int64) iter.Seq2[*continuo.Entry, error] {
	return func(yield func(*continuo.Entry, error) bool) {
		for ; seq <= int64(len(s.entries)); seq++ {
			s.rows++
			if !yield(&s.entries[seq-1], nil) {
				return
			}
		}
	}
}

func (s *stored) LatestUser(seq int64) (*continuo.Entry, error) {
	s.rows++
	for ; seq >= 1; seq-- {
		if e := &s.entries[seq-1]; e.Role == continuo.User && !e.Hidden {
			return e, nil
		}
	}
	return nil, continuo.ErrNotFound
}

// budgets go from the smallest to none.
var budgets = []window.Limits{
	{Messages: 3},
	{Tokens: 200},
	{Messages: 7, Chars: 3000},
	{Messages: 20, Tokens: 2000},
	{Chars: 20_000, Tokens: 6000},
	{Messages: 80, Chars: 120_000, Tokens: 30_000},
	{},
}

// TestEveryPrefixBuildsAValidRequest is the law that everything else serves.
func TestEveryPrefixBuildsAValidRequest(t *testing.T) {
	var builds, overflows atomic.Int64
	step := 601 // of the prefixes of all conversations, one in so many
	if long() {
		step = 1
	}
	// Without a budget a build holds the whole prefix, which over all prefixes of a conversation is
	// quadratic: of the long run's prefixes, one in ten is built so.
	const unlimitedStep = 10
	for _, file := range dataFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl.gz"), func(t *testing.T) {
			t.Parallel()
			turn, tried := 0, 0
			for document := range documents(t, file) {
				s := numbered(t, document)
				if s == nil {
					continue
				}
				each(s, &turn, step, func(at int64) {
					tried++
					for _, name := range []string{window.Codex, window.Continuity, window.Replay, task.HandoffView} {
						for _, limits := range budgets {
							unlimited := limits == (window.Limits{})
							if unlimited && long() && tried%unlimitedStep != 0 || !unlimited && fits(s.entries[:at], limits) {
								continue
							}
							builds.Add(1)
							if overflowed := tryBuild(t, s, at, name, limits); overflowed {
								overflows.Add(1)
							}
						}
					}
				})
			}
		})
	}
	t.Cleanup(func() { t.Logf("%d builds, %d of them overflows", builds.Load(), overflows.Load()) })
}

// fits reports whether entries are within limits, whatever a view makes of them: they are planned as without limits.
func fits(entries []continuo.Entry, limits window.Limits) bool {
	total := continuo.Size{}
	for _, e := range entries {
		total = total.Add(continuo.Size{Messages: 1, Chars: e.Chars, Tokens: e.Tokens})
	}
	within := func(limit, total int) bool { return limit == 0 || 2*total < limit } // what a view adds is far less
	return within(limits.Messages, total.Messages) && within(limits.Chars, total.Chars) && within(limits.Tokens, total.Tokens)
}

// each calls try for one in step of the prefixes that end in a user or tool entry, and for the last one
// of short conversations, where the broken ones are.
func each(s *stored, turn *int, step int, try func(at int64)) {
	for i, entry := range s.entries {
		if entry.Hidden || entry.Role != continuo.User && entry.Role != continuo.Tool {
			continue
		}
		*turn++
		if *turn%step == 0 || len(s.entries) < 20 && i >= len(s.entries)-3 {
			try(int64(i) + 1)
		}
	}
}

// preset is a view as an engine sets it by default, within other limits; nil leaves its own.
func preset(t testing.TB, name string, limits *window.Limits) turn.View {
	t.Helper()
	handoff := task.Limits{}.View()
	view := handoff.View
	if name != task.HandoffView {
		var err error
		if view, err = window.DefaultSettings().View(name); err != nil {
			t.Fatal(err)
		}
	}
	if limits != nil {
		view.Limits, view.FollowWindow = *limits, false
	}
	if name != task.HandoffView {
		return view
	}
	handoff.View = view
	return handoff
}

// modelWindow is the whole window of a model that is known to be small.
const modelWindow = 3000

// tryBuild builds one request without and with a known window of the model, and holds both to the laws. It reports
// whether the second overflowed: a view's limits alone make no build fail.
func tryBuild(t *testing.T, s *stored, at int64, name string, limits window.Limits) bool {
	view := preset(t, name, &limits)
	where := fmt.Sprintf("%s at %d, %s within %+v", s.name, at, name, limits)
	in := window.Input{At: at, Counter: token.O200k(), Provider: "openai", LeadIn: render.LeadIn}
	plan, err := view.Build(s, in)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return false
	}
	checkPlan(t, where, s, at, plan, limits)
	if limits.Chars > 0 || limits.Tokens > 0 {
		return false // the others make enough builds for a small model
	}
	in.ModelWindow, where = modelWindow, where+" for a small model"
	plan, err = view.Build(s, in)
	var overflow *continuo.OverflowError
	if errors.As(err, &overflow) {
		checkOverflow(t, where, overflow)
		return true
	}
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return false
	}
	if plan.Totals.Tokens > modelWindow {
		t.Errorf("%s: shows %d tokens", where, plan.Totals.Tokens)
	}
	checkPlan(t, where, s, at, plan, limits)
	return false
}

// checkPlan holds one plan to the laws.
func checkPlan(t *testing.T, where string, s *stored, at int64, plan *window.Plan, limits window.Limits) {
	checkLimits(t, where, s, plan, limits)
	if plan.View == task.HandoffView { // its forms are those of the document, however long
		checkHandoff(t, where, s, at, plan)
	} else {
		checkNewestUser(t, where, s, at, plan)
		checkShortened(t, where, plan)
	}
	checkRendered(t, where, plan)
}

// checkOverflow refuses an overflow whose parts fit into the model's window.
func checkOverflow(t *testing.T, where string, overflow *continuo.OverflowError) {
	sum := overflow.Prompt.Tokens + overflow.Answer + overflow.Messages().Tokens
	if overflow.ModelWindow != modelWindow || sum <= modelWindow {
		t.Errorf("%s: the parts are %d tokens in all: %v", where, sum, overflow)
	}
}

// checkLimits holds what is shown to the limits: all of it, or, where the newest user message and the open group are
// over a limit, what is shown around them.
func checkLimits(t *testing.T, where string, s *stored, plan *window.Plan, limits window.Limits) {
	var total, required continuo.Size
	must := requiredSeqs(s, plan)
	for _, m := range plan.Messages {
		size := continuo.Measure(m.Content, m.ToolCalls, token.O200k()) // counted again, not taken from the plan
		if total = total.Add(size); total.Tokens > plan.Totals.Tokens {
			t.Errorf("%s: the plan says %d tokens, there are %d", where, plan.Totals.Tokens, total.Tokens)
		}
		if must(m.Seq) {
			required = required.Add(m.Size)
		}
	}
	total = continuo.Size{Messages: plan.Totals.Messages, Chars: plan.Totals.Chars, Tokens: plan.Totals.Tokens}
	over := func(limit, total, required int) bool {
		return limit > 0 && total > limit && (required <= limit || total-required > limit)
	}
	if over(limits.Messages, total.Messages, required.Messages) || over(limits.Chars, total.Chars, required.Chars) || over(limits.Tokens, total.Tokens, required.Tokens) {
		t.Errorf("%s: shows %+v, of which %+v are required", where, total, required)
	}
}

// requiredSeqs tells which entries a request must hold: the newest user message, the group that stands last, and in the
// view replay the whole open cycle.
func requiredSeqs(s *stored, plan *window.Plan) func(seq int64) bool {
	user := int64(0)
	if newest, err := s.LatestUser(plan.At); err == nil {
		user = newest.Seq
	}
	from := plan.At + 1
	for i := plan.At; i > 0; i-- { // the group that stands last, of what is shown
		if e := s.entries[i-1]; e.HasCalls() {
			from = i
		} else if e.Role == continuo.Tool || e.Hidden || e.Role == continuo.Assistant && e.Content.IsEmpty() && e.Error == nil {
			continue
		}
		break
	}
	if plan.View == window.Replay && plan.Cycle != 0 {
		from = plan.Cycle
	}
	return func(seq int64) bool { return seq == user && seq != 0 || seq >= from }
}

// checkShortened holds shortened entries to what they are for: to be no larger than the whole.
func checkShortened(t *testing.T, where string, plan *window.Plan) {
	for _, item := range plan.Items {
		shortened := item.Verdict == window.Previewed || item.Verdict == window.Truncated
		if shortened && item.After.Tokens > item.Before.Tokens {
			t.Errorf("%s: entry %d, %s, was %+v and is %+v", where, item.Seq, item.Verdict, *item.Before, *item.After)
		}
	}
}

// checkNewestUser looks for the newest user message, whole, and for groups that were split.
func checkNewestUser(t *testing.T, where string, s *stored, at int64, plan *window.Plan) {
	newest, err := s.LatestUser(at)
	if err == nil && !slices.ContainsFunc(plan.Messages, func(m window.Message) bool {
		return m.Seq == newest.Seq && m.Content.String() == newest.Content.String() && len(m.Content.Parts()) == len(newest.Content.Parts())
	}) {
		t.Errorf("%s: the newest user message, %d, is not shown whole", where, newest.Seq)
	}
}

// checkHandoff looks for the newest user message, cut as a hand-off cuts it, and for anything but words.
func checkHandoff(t *testing.T, where string, s *stored, at int64, plan *window.Plan) {
	for _, m := range plan.Messages {
		if m.Role != continuo.User && m.Role != continuo.Assistant || len(m.ToolCalls) > 0 || !m.Content.IsText() {
			t.Errorf("%s: message %d is not told in words", where, m.Seq)
		}
	}
	newest, err := s.LatestUser(at)
	if err != nil {
		return
	}
	messages := task.FromEntries([]continuo.Entry{*newest})
	if len(messages) == 0 {
		return
	}
	whole := []rune(messages[0].Content)
	if len(whole) > 8000 {
		whole = append(whole[:7900:7900], []rune(fmt.Sprintf(" ... (truncated, original: %d chars)", len(whole)))...)
	}
	if !slices.ContainsFunc(plan.Messages, func(m window.Message) bool { return m.Seq == newest.Seq && m.Content.String() == string(whole) }) {
		t.Errorf("%s: the newest user message, %d, is not told", where, newest.Seq)
	}
}

func checkRendered(t *testing.T, where string, plan *window.Plan) {
	if len(plan.Messages) == 0 {
		return
	}
	chat, err := render.OpenAIChat(plan.Messages, render.Options{Provider: "openai"})
	if err != nil {
		t.Errorf("%s: %v", where, err)
	}
	report(t, where+", openai", render.CheckOpenAIChat(chat))
	blocks, _, err := render.Anthropic(plan.Messages, render.Options{Provider: "anthropic"})
	if err != nil {
		t.Errorf("%s: %v", where, err)
	}
	if len(blocks) > 0 { // a log of system entries alone has no messages in this protocol
		report(t, where+", anthropic", render.CheckAnthropic(blocks))
	}
	if plan.View == window.Replay {
		transcript := render.TranscriptOf(plan)
		back, err := render.ReadTranscript(transcript.String())
		if err != nil || back.String() != transcript.String() {
			t.Errorf("%s: the transcript does not read back: %v", where, err)
		}
	}
}

func report(t *testing.T, where string, violations []render.Violation) {
	for _, violation := range violations {
		if !violation.Lint {
			t.Errorf("%s: message %d breaks %s: %s", where, violation.Index, violation.Code, violation.Message)
		}
	}
}

// TestTheSameInputsGiveTheSameBytes builds twice, at once, and compares.
func TestTheSameInputsGiveTheSameBytes(t *testing.T) {
	files := dataFiles(t)
	for _, file := range files {
		turn := 0
		for document := range documents(t, file) {
			if turn++; turn%37 != 0 && !long() {
				continue
			}
			s := numbered(t, document)
			if s == nil {
				continue
			}
			var first, second string
			var both sync.WaitGroup
			both.Go(func() { first = requestBytes(t, s) })
			both.Go(func() { second = requestBytes(t, &stored{name: s.name, entries: slices.Clone(s.entries)}) })
			both.Wait()
			if first != second {
				t.Errorf("%s: two builds of the same differ", s.name)
			}
		}
	}
	runtime.GC()
}

func requestBytes(t *testing.T, s *stored) string {
	view, _ := window.DefaultSettings().View(window.Codex)
	plan, err := view.Build(s, window.Input{At: int64(len(s.entries)), Counter: token.O200k()})
	if err != nil {
		return err.Error()
	}
	body, err := render.OpenAIChatRequest(continuo.Envelope{Model: "m", System: []string{"s"}}, plan.Messages, render.Options{})
	if err != nil {
		t.Error(err)
	}
	planned, _ := json.Marshal(plan)
	return string(body) + string(planned)
}

// TestRequestsOnlyGrowBetweenMoves sends a long conversation turn by turn, as a program would, and compares each request
// with the one before.
func TestRequestsOnlyGrowBetweenMoves(t *testing.T) {
	most := 400
	if long() {
		most = 1000
	}
	for _, source := range []string{"beam", "coding-agents", "aider-history"} {
		s := longest(t, source, most)
		t.Run(source, func(t *testing.T) { checkGrowth(t, s) })
		t.Run(source+" with summaries", func(t *testing.T) { checkGrowthWithSummaries(t, s) })
	}
}

func checkGrowth(t *testing.T, s *stored) {
	view := preset(t, window.Codex, nil).(window.View)
	view.Limits = part(s, 5)
	growth := replayGrowth(t, s, view)
	t.Logf("%s: %d requests, %d moves, %.1f %% of the bytes extend the request before", s.name, growth.requests, growth.moves, growth.share()*100)
	if growth.broken > 0 {
		t.Errorf("%s: %d requests changed earlier bytes without a move", s.name, growth.broken)
	}
	if growth.moves == 0 || growth.moves > growth.requests/3 {
		t.Errorf("%s: %d moves in %d requests", s.name, growth.moves, growth.requests)
	}
}

// growth sums up how the requests of a replayed conversation follow each other.
type growth struct {
	requests, moves, broken int
	bytes, shared           int64 // of all requests but the first
}

// cachedPrice is the price of bytes that a request shares with the one before, as a part of the full price.
const cachedPrice = 0.1

// cost is the price of all requests in bytes at the full price.
func (g growth) cost() float64 {
	return float64(g.bytes-g.shared) + cachedPrice*float64(g.shared)
}

func (g growth) share() float64 { return float64(g.shared) / float64(max(g.bytes, 1)) }

// longest returns the conversation with the most messages of a file, its first entries at most.
func longest(t testing.TB, source string, most int) *stored {
	t.Helper()
	for _, file := range dataFiles(t) {
		if !strings.HasPrefix(filepath.Base(file), source) {
			continue
		}
		var best interchange.Document
		for document := range documents(t, file) {
			if len(document.Entries) > len(best.Entries) {
				best = document
			}
		}
		best.Entries = best.Entries[:min(len(best.Entries), most)]
		if s := numbered(t, best); s != nil {
			return s
		}
	}
	t.Fatalf("no conversation of %s could be imported", source)
	return nil
}

// part is a part of the size of a whole conversation, one in so many.
func part(s *stored, of int) window.Limits {
	total := continuo.Size{}
	for _, e := range s.entries {
		total = total.Add(continuo.Size{Messages: 1, Chars: e.Chars, Tokens: e.Tokens + 4})
	}
	return window.Limits{Messages: total.Messages / of, Tokens: total.Tokens / of}
}

// replayGrowth builds a request before every assistant entry, and records the window on that entry as a turn would.
func replayGrowth(t testing.TB, s *stored, view window.View) growth {
	t.Helper()
	log := &stored{name: s.name}
	var g growth
	var before []byte
	for _, entry := range s.entries {
		if entry.Role == continuo.Assistant && !entry.Hidden && len(log.entries) > 0 {
			plan, err := view.Build(log, window.Input{At: int64(len(log.entries)), Counter: token.O200k()})
			if err != nil {
				t.Fatalf("%s at %d: %v", s.name, len(log.entries), err)
			}
			now := historyBytes(t, plan)
			g.add(before, now, plan.Moved)
			before = now
			entry.Round = &continuo.Round{View: plan.View, ViewHash: plan.ViewHash, At: plan.At, Window: plan.Window}
		}
		log.entries = append(log.entries, entry)
	}
	return g
}

func (g *growth) add(before, now []byte, moved bool) {
	g.requests++
	if before == nil {
		return
	}
	shared := 0
	for shared < min(len(before), len(now)) && before[shared] == now[shared] {
		shared++
	}
	g.bytes += int64(len(now))
	g.shared += int64(shared)
	if moved {
		g.moves++
	} else if shared < len(before) {
		g.broken++
	}
}

func historyBytes(t testing.TB, plan *window.Plan) []byte {
	t.Helper()
	messages, err := render.OpenAIChat(plan.Messages, render.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var bytes []byte
	for _, message := range messages {
		bytes = append(append(bytes, message...), ',')
	}
	return bytes
}
