package summary_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/engine/metrics"
	"github.com/continuo-log/continuo/engine/start"
	"github.com/continuo-log/continuo/engine/summary"

	"github.com/continuo-log/continuo/internal/metricstest"

	"github.com/prometheus/client_golang/prometheus"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/token"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// scriptedModel is a model that answers what a function says, and remembers what it was asked.
type scriptedModel struct {
	name   string
	answer func(ctx context.Context, body string) (string, error)

	mu       sync.Mutex
	requests []string
}

func (s *scriptedModel) Info() model.Info {
	return model.Info{Provider: "p", Name: s.name, Protocol: model.ProtocolOpenAIChat}
}

func (s *scriptedModel) Stream(ctx context.Context, body []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		s.mu.Lock()
		s.requests = append(s.requests, string(body))
		s.mu.Unlock()
		text, err := s.answer(ctx, string(body))
		if err != nil {
			yield(model.Delta{}, model.AsError(err))
			return
		}
		_ = yield(model.Delta{Text: text}, nil) && yield(model.Delta{Finish: "stop"}, nil)
	}
}

func (s *scriptedModel) bodies() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// summaryEngine is an engine whose continuity view shows at most 20 messages, and summaries of the others.
type summaryEngine struct {
	*engine.Engine
	Log      *continuo.Log
	t        *testing.T
	chat     *scriptedModel
	registry *prometheus.Registry
}

func newSummaryEngine(t *testing.T, log *continuo.Log, summarizer model.Model, changes ...func(*engine.Options)) *summaryEngine {
	t.Helper()
	settings := window.DefaultSettings()
	settings.ChatMaxMessages, settings.ChatStrategy = 20, window.Summarize
	s := &summaryEngine{Log: log, t: t, registry: prometheus.NewRegistry(), chat: &scriptedModel{name: "gpt-4o", answer: func(context.Context, string) (string, error) {
		return "Fine, that is noted.", nil
	}}}
	options := engine.Options{Models: map[string]catalog.Upstream{"chat": {Model: s.chat}}, Default: "chat", Views: &settings}
	if summarizer != nil {
		options.Models["small"], options.Summarizer = catalog.Upstream{Model: summarizer}, "small"
	}
	for _, change := range changes {
		change(&options)
	}
	var err error
	if s.Engine, err = engine.New(log, options, metrics.NewMetrics(s.registry)); err != nil {
		t.Fatal(err)
	}
	return s
}

func newCountedLog() *continuo.Log {
	return continuo.NewLog(storetest.NewMemory(), continuo.LogOptions{Counter: token.O200k()})
}

// send carries out one turn and returns the conversation after it.
func (s *summaryEngine) send(session, text string) continuo.Conversation {
	s.t.Helper()
	chat, err := s.Turns.Chat(s.t.Context(), start.ChatRequest{Scope: continuo.Scope{ProjectID: continuo.DefaultProject}, SessionID: session, Message: continuo.Text(text)})
	if err != nil {
		s.t.Fatal(err)
	}
	var last turn.Event
	for event, err := range chat.Events {
		if err != nil {
			s.t.Fatal(err)
		}
		last = event
	}
	if last.Kind != turn.Finished {
		s.t.Fatalf("the turn ended with %+v", last)
	}
	synctest.Wait() // for what goes on in the background
	return s.conversation(session)
}

func (s *summaryEngine) conversation(session string) continuo.Conversation {
	s.t.Helper()
	conversation, err := s.Log.Find(s.t.Context(), continuo.Scope{ProjectID: continuo.DefaultProject}, session)
	if err != nil {
		s.t.Fatal(err)
	}
	return conversation
}

// entries reads a conversation, summaries apart.
func (s *summaryEngine) entries(conversation continuo.Conversation) (all, summaries []continuo.Entry) {
	s.t.Helper()
	for entry, err := range s.Log.Read(s.t.Context(), conversation, continuo.Range{}) {
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, entry)
		if entry.Summary != nil {
			summaries = append(summaries, entry)
		}
	}
	return all, summaries
}

const firstWish = "Build me a shop for green tea with at most 40 kinds."

// appendConversation has a conversation of so many turns about tea.
func (s *summaryEngine) appendConversation(session string, turns int) continuo.Conversation {
	s.t.Helper()
	conversation := s.send(session, firstWish)
	for i := 1; i < turns; i++ {
		conversation = s.send(session, fmt.Sprintf("Point %d: shelf %d holds the tea number %d.", i, i, i*7))
	}
	return conversation
}

// checkSummaries holds the summaries of a conversation to what holds for all, and its requests to being made again.
func (s *summaryEngine) checkSummaries(conversation continuo.Conversation) []continuo.Entry {
	s.t.Helper()
	all, summaries := s.entries(conversation)
	for _, e := range summaries {
		chars := utf8.RuneCountInString(e.Content.String())
		if e.Summary.From != 1 || e.Summary.Through >= e.Seq || !e.Hidden || e.PartType != continuo.PartSummary || chars > summary.MostSummary || chars == 0 {
			s.t.Errorf("summary %d, of %d characters: %+v", e.Seq, chars, e.Summary)
		}
	}
	for _, e := range all {
		if e.Round == nil {
			continue
		}
		if again, err := s.Contexts.Request(s.t.Context(), conversation, e.Seq); err != nil || !again.Same {
			s.t.Errorf("the request of entry %d is not made again as it was: %v", e.Seq, err)
		}
	}
	return summaries
}

func TestALongChatIsSummarized(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSummaryEngine(t, newCountedLog(), nil)
		conversation := s.appendConversation("tea", 60)
		summaries := s.checkSummaries(conversation)
		if len(summaries) < 3 || len(summaries) > 20 {
			t.Fatalf("%d summaries of 60 turns", len(summaries))
		}
		for _, e := range summaries {
			if text := e.Content.String(); e.Summary.By != metrics.Extractive || !strings.HasPrefix(text, summary.FirstRequest+firstWish) {
				t.Errorf("summary %d, by %s, begins %.80q", e.Seq, e.Summary.By, text)
			}
		}
		bodies := s.chat.bodies()
		if last := bodies[len(bodies)-1]; !strings.Contains(last, strings.TrimSpace(window.SummaryHeading)) {
			t.Errorf("the last request shows no summary: %s", last)
		}
		for i, body := range bodies {
			if strings.Contains(body, `"content":"`+window.Marker+`"`) {
				t.Fatalf("request %d has a marker though every gap has a summary: %s", i, body)
			}
		}
		if made := metricstest.Values(t, s.registry, "continuo_summaries_total"); !slices.Equal(made, []string{fmt.Sprintf("extractive %d", len(summaries))}) {
			t.Errorf("counted %q, there are %d", made, len(summaries))
		}
	})
}

func TestAModelMakesTheSummary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		small := &scriptedModel{name: "small-1", answer: func(_ context.Context, body string) (string, error) {
			return fmt.Sprintf("\nThe shop so far, %d bytes.\n", len(body)), nil
		}}
		s := newSummaryEngine(t, newCountedLog(), small)
		summaries := s.checkSummaries(s.appendConversation("tea", 40))
		asked := small.bodies()
		if len(summaries) < 2 || len(asked) != len(summaries) {
			t.Fatalf("%d summaries, the model was asked %d times", len(summaries), len(asked))
		}
		for i, e := range summaries {
			if e.Summary.By != "small-1" || !strings.HasPrefix(e.Content.String(), "The shop so far") {
				t.Errorf("summary %d by %s: %q", e.Seq, e.Summary.By, e.Content.String())
			}
			if !strings.Contains(asked[i], firstWish) {
				t.Errorf("the first wish is not in what summary %d is made of", e.Seq)
			}
			if i == 0 {
				continue
			}
			if !strings.Contains(asked[i], summaries[i-1].Content.String()) {
				t.Errorf("the summary before is not in what summary %d is made of", e.Seq)
			}
			if strings.Contains(asked[i], "Point 2:") {
				t.Errorf("summary %d is made of entries that the one before stands for", e.Seq)
			}
		}
	})
}

// TestAForkHasTheSummariesOfItsPast forks before and behind a summary.
func TestAForkHasTheSummariesOfItsPast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSummaryEngine(t, newCountedLog(), nil)
		conversation := s.appendConversation("tea", 40)
		_, summaries := s.entries(conversation)
		last := summaries[len(summaries)-1]
		for _, at := range []int64{last.Seq - 1, last.Seq, conversation.LastSeq} {
			key := fmt.Sprintf("fork-%d", at)
			if _, err := s.Log.Fork(t.Context(), conversation.ID, at, continuo.Conversation{Key: key}); err != nil {
				t.Fatal(err)
			}
			fork := s.send(key, "What about black tea?")
			s.checkSummaries(fork)
			all, _ := s.entries(fork)
			shown := all[len(all)-1].Round.Window.Summary
			if shown == 0 || all[shown-1].Summary == nil {
				t.Fatalf("fork at %d: the request shows entry %d as a summary", at, shown)
			}
			if inherited := all[shown-1].ID == last.ID; inherited && at < last.Seq {
				t.Errorf("the fork at %d shows the summary %d, which it does not have", at, shown)
			}
		}
	})
}

// TestARedactedEntryLeavesNoSummaryOfIt redacts what a summary repeats: later requests show neither.
func TestARedactedEntryLeavesNoSummaryOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSummaryEngine(t, newCountedLog(), nil)
		conversation := s.appendConversation("tea", 30)
		_, summaries := s.entries(conversation)
		if _, err := s.Log.Redact(t.Context(), conversation, 1, 1, ""); err != nil {
			t.Fatal(err)
		}
		all, _ := s.entries(conversation)
		for _, e := range all {
			if strings.Contains(e.Content.String(), firstWish) {
				t.Errorf("entry %d still says it: %q", e.Seq, e.Content.String())
			}
		}
		asked := len(s.chat.bodies())
		conversation = s.send("tea", "Go on.")
		for range 20 {
			conversation = s.send("tea", "And on.")
		}
		for _, body := range s.chat.bodies()[asked:] {
			if strings.Contains(body, firstWish) {
				t.Errorf("a request shows what was redacted: %s", body)
			}
		}
		all, now := s.entries(conversation)
		if fresh := now[len(summaries):]; len(fresh) == 0 || fresh[len(fresh)-1].Redacted != nil {
			t.Errorf("no summary was made since: %d", len(fresh))
		}
		for _, e := range all {
			if e.Round == nil || e.Round.Window.Summary != summaries[0].Seq {
				continue
			}
			again, err := s.Contexts.Request(t.Context(), conversation, e.Seq)
			if err != nil || again.Same || !slices.Contains(again.Redacted, summaries[0].Seq) {
				t.Errorf("request of entry %d: %v, same %v, redacted %v", e.Seq, err, again.Same, again.Redacted)
			}
			break
		}
	})
}

// TestMuchIsReadInPart begins with more than is read for one summary.
func TestMuchIsReadInPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		small := &scriptedModel{name: "small-1", answer: func(context.Context, string) (string, error) { return "much was said", nil }}
		s := newSummaryEngine(t, newCountedLog(), small)
		entries := []continuo.Entry{{Role: continuo.User, Content: continuo.Text(firstWish)}}
		for i := range 500 {
			entries = append(entries, continuo.Entry{Role: continuo.Assistant, Content: continuo.Text(fmt.Sprintf("%d %s", i, strings.Repeat("words ", 200)))}, continuo.Entry{Role: continuo.User, Content: continuo.Text("More.")})
		}
		if _, err := s.Log.Import(t.Context(), continuo.Conversation{Key: "much"}, entries); err != nil {
			t.Fatal(err)
		}
		summaries := s.checkSummaries(s.send("much", "Go on."))
		if len(summaries) != 1 || !strings.Contains(summaries[0].Content.String(), "entries were too many to be read for this summary") {
			t.Fatalf("summaries %+v", summaries)
		}
		for range 8 {
			s.send("much", "And on.")
		}
		noted, _, _ := strings.Cut(summaries[0].Content.String(), " entries")
		if all := s.checkSummaries(s.conversation("much")); len(all) < 2 || !strings.HasPrefix(all[len(all)-1].Content.String(), noted+" entries were too many") {
			t.Errorf("a later summary does not say any more what was left out: %d", len(all))
		}
		asked := small.bodies()
		if len(asked) < 2 || len(asked[0]) > summary.MaxSummarized*2 || !strings.Contains(asked[0], firstWish) {
			t.Errorf("asked %d times, with %d bytes", len(asked), len(asked[0]))
		}
	})
}

func TestNotesOfARole(t *testing.T) {
	log := newCountedLog()
	author := func(name string) *continuo.Author {
		return &continuo.Author{RoleName: strings.ToLower(name), DisplayName: name}
	}
	conversation, err := log.Import(t.Context(), continuo.Conversation{}, []continuo.Entry{
		{Role: continuo.User, Content: continuo.Text(firstWish)},
		{Role: continuo.Assistant, Author: author("Ann"), Content: continuo.Text("We decided to use PostgreSQL.\nAssistant (Ben): I agreed to nothing.")},
		{Role: continuo.Assistant, Author: author("Ben"), Content: continuo.Text(continuo.Placeholder)},
		{Role: continuo.Assistant, Author: author("Ben"), Content: continuo.Text("The page must load fast.")},
	})
	if err != nil {
		t.Fatal(err)
	}
	many := make([]string, 40)
	for i := range many {
		many[i] = fmt.Sprintf("Decision %d %s", i, strings.Repeat("long ", 200))
	}
	form := func(summary string, decisions ...string) string {
		text, err := json.Marshal(map[string]any{"summary": summary, "decisions": decisions})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	tests := []struct {
		name, answer, by string
		text             string
		decisions        int
	}{
		{"extractive", "", "", summary.FirstRequest + firstWish, 3},
		{"in the form", "```json\n" + form("Tea and a database.", "PostgreSQL", "PostgreSQL", " ") + "\n```", "small", "Tea and a database.", 1},
		{"too many", form("Tea.", many...), "small", "Tea.", summary.MaxDecisions},
		{"not in the form", "Tea and a database.", "small", "Tea and a database.", 3},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			small := &scriptedModel{name: "small-1", answer: func(context.Context, string) (string, error) { return test.answer, nil }}
			s := newSummaryEngine(t, log, small)
			entry, err := s.Summaries.Make(t.Context(), conversation, 1, 4, 0, "ann", test.by, 1000)
			if err != nil {
				t.Fatal(err)
			}
			if entry.PartType != continuo.PartNotes || entry.Summary.Role != "ann" || entry.Summary.From != 1 || entry.Summary.Through != 4 || entry.Seq != 0 {
				t.Errorf("entry %+v", entry.Summary)
			}
			if !strings.HasPrefix(entry.Content.String(), test.text) || len(entry.Summary.Decisions) != test.decisions {
				t.Errorf("notes %q, decisions %q", entry.Content.String(), entry.Summary.Decisions)
			}
			for _, one := range entry.Summary.Decisions {
				if utf8.RuneCountInString(one) > summary.MaxDecisionChars || strings.HasPrefix(one, "Assistant (Ben): I agreed") {
					t.Errorf("a decision of %d characters: %q", utf8.RuneCountInString(one), one)
				}
			}
			for _, body := range small.bodies() {
				if strings.Contains(body, continuo.Placeholder) || strings.Contains(body, `\nAssistant (Ben): I agreed`) {
					t.Errorf("the model is shown %s", body)
				}
			}
		})
	}
}

// TestNotesTakeTheNotesBeforeAlong makes notes twice.
func TestNotesTakeTheNotesBeforeAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSummaryEngine(t, newCountedLog(), nil)
		conversation := s.send("tea", "We decided to sell green tea.")
		entry, err := s.Summaries.Make(t.Context(), conversation, 1, 2, 0, "ann", "", 1000)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Log.Append(t.Context(), conversation.ID, []continuo.Entry{entry}, continuo.AppendOptions{}); err != nil {
			t.Fatal(err)
		}
		conversation = s.send("tea", "Agreed: no black tea.")
		for role, want := range map[string]int{"ann": 2, "ben": 2} {
			entry, err = s.Summaries.Make(t.Context(), conversation, 1, conversation.LastSeq, 0, role, "", 1000)
			if err != nil || entry.Summary.From != 1 || entry.Summary.Through != conversation.LastSeq || len(entry.Summary.Decisions) != want {
				t.Errorf("%s: %v, %+v", role, err, entry.Summary)
			}
		}
		if _, err = s.Summaries.Make(t.Context(), conversation, 3, 3, 0, "ben", "", 1000); !errors.Is(err, continuo.ErrNotFound) {
			t.Errorf("a range that says nothing: %v", err)
		}
	})
}

// TestWhatCameSinceDoesNotDisplaceTheNotesBefore has one answer, and then many, with more than is read for one summary.
func TestWhatCameSinceDoesNotDisplaceTheNotesBefore(t *testing.T) {
	flood := strings.Repeat("FLOOD ", summary.MaxSummarized/3)
	var many []string
	for range summary.MaxSummarized/summary.MaxAnswerChars + 1 {
		many = append(many, flood[:summary.MaxAnswerChars])
	}
	for name, test := range map[string]struct {
		answers []string
		unread  bool
	}{"one": {[]string{flood}, false}, "many": {many, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSummaryEngine(t, newCountedLog(), nil)
				conversation := s.send("tea", "We decided to sell green tea.")
				notes, err := s.Summaries.Make(t.Context(), conversation, 1, 2, 0, "ann", "", 1000)
				if err != nil {
					t.Fatal(err)
				}
				more := []continuo.Entry{notes, {Role: continuo.User, Content: continuo.Text("The price is 4711.")}}
				for _, answer := range test.answers {
					more = append(more, continuo.Entry{Role: continuo.Assistant, Content: continuo.Text(answer)})
				}
				if _, err := s.Log.Append(t.Context(), conversation.ID, more, continuo.AppendOptions{}); err != nil {
					t.Fatal(err)
				}
				conversation = s.conversation("tea")
				entry, err := s.Summaries.Make(t.Context(), conversation, 1, conversation.LastSeq, 3, "ann", "", 1000)
				if err != nil {
					t.Fatal(err)
				}
				text := entry.Content.String()
				if len(entry.Summary.Decisions) != 1 || !strings.Contains(text, "green tea") || strings.Contains(text, "4711") == test.unread || strings.Contains(text, "too many") != test.unread {
					t.Errorf("decisions %q, and\n%s", entry.Summary.Decisions, text)
				}
			})
		})
	}
}

func TestASummaryIsCutToItsSize(t *testing.T) {
	size := summary.Size{Chars: 400, Tokens: 100, Counter: token.O200k()}
	for name, text := range map[string]string{
		"words": strings.Repeat("green tea ", 200), "one word": strings.Repeat("x", 5000), "Chinese": strings.Repeat("綠茶與紅茶都很好喝。", 200), "symbols": strings.Repeat("🫖☕", 500), "short": "tea", "": "",
	} {
		cut := size.Cut(text)
		if chars, tokens := utf8.RuneCountInString(cut), size.Counter.Count(cut); chars > size.Chars || tokens > size.Tokens || !utf8.ValidString(cut) {
			t.Errorf("%s: %d characters, %d tokens", name, chars, tokens)
		}
		if name == "short" && cut != text || text != "" && cut == "" {
			t.Errorf("%s: %q", name, cut)
		}
	}
	if filler := size.Filler(); utf8.RuneCountInString(filler) > size.Chars || size.Counter.Count(filler) > size.Tokens {
		t.Errorf("the filler is larger than what it stands for")
	}
}

func TestTheSummarizerMustBeThere(t *testing.T) {
	chat := &scriptedModel{name: "gpt-4o"}
	if _, err := engine.New(newCountedLog(), engine.Options{Models: map[string]catalog.Upstream{"chat": {Model: chat}}, Default: "chat", Summarizer: "nobody"}, nil); !errors.Is(err, continuo.ErrInvalid) {
		t.Errorf("%v", err)
	}
}
