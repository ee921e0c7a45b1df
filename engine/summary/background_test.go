package summary_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/engine/metrics"
	"github.com/continuo-log/continuo/engine/summary"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/evidence"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/window"
)

// until makes a summarizer that answers when a channel is closed, or fails when its request ends.
func until(answers <-chan struct{}, text string) *scriptedModel {
	return &scriptedModel{name: "small-1", answer: func(ctx context.Context, _ string) (string, error) {
		select {
		case <-answers:
			return text, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}}
}

// endless is a model that never stops, either at once or for ever slowly.
type endless struct {
	*scriptedModel
	pause time.Duration
}

func (e endless) Stream(ctx context.Context, _ []byte) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for ctx.Err() == nil {
			if !yield(model.Delta{Text: "and so on and so on "}, nil) {
				return
			}
			time.Sleep(e.pause)
		}
		yield(model.Delta{}, model.AsError(ctx.Err()))
	}
}

// TestNoTurnWaitsForASummary has summarizers that fail, are late or do not end: turns take no time, the built-in one replaces them,
// and a later request shows what it made.
func TestNoTurnWaitsForASummary(t *testing.T) {
	scripted := func(answer func(context.Context, string) (string, error)) *scriptedModel {
		return &scriptedModel{name: "small-1", answer: answer}
	}
	for name, small := range map[string]model.Model{
		"fails":          scripted(func(context.Context, string) (string, error) { return "", errors.New("no") }),
		"empty":          scripted(func(context.Context, string) (string, error) { return " \n", nil }),
		"panics":         scripted(func(context.Context, string) (string, error) { panic("a bug") }),
		"late":           scripted(func(ctx context.Context, _ string) (string, error) { <-ctx.Done(); return "", ctx.Err() }),
		"endless":        endless{scripted(nil), time.Nanosecond},
		"endless slowly": endless{scripted(nil), time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSummaryEngine(t, newCountedLog(), small)
				var conversation continuo.Conversation
				for i := range 40 {
					begin := time.Now()
					conversation = s.send("tea", fmt.Sprintf("Point %d: shelf %d holds the tea number %d.", i, i, i*7))
					if took := time.Since(begin); took > time.Millisecond {
						t.Fatalf("turn %d took %s", i, took)
					}
					if i%4 == 3 { // nobody writes for a while
						time.Sleep(summary.SummaryPatience + time.Second)
					}
				}
				summaries := s.checkSummaries(conversation)
				if name != "panics" && len(summaries) == 0 {
					t.Fatal("no summary")
				}
				for _, e := range summaries {
					if e.Summary.By != metrics.Extractive {
						t.Errorf("summary %d is by %s", e.Seq, e.Summary.By)
					}
				}
				bodies := s.chat.bodies()
				shows := strings.Contains(bodies[len(bodies)-1], strings.TrimSpace(window.SummaryHeading))
				if shows != (name != "panics") {
					t.Errorf("the last request shows a summary: %v", shows)
				}
			})
		})
	}
}

// TestASummaryThatIsLateIsUsedLater has the window move while the summary is made: it moves without, nothing changes until the
// next move, which shows it.
func TestASummaryThatIsLateIsUsedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan struct{})
		s := newSummaryEngine(t, newCountedLog(), until(answers, "The shop so far."))
		conversation, moves := s.appendConversation("tea", 1), 0
		last := func() continuo.Window {
			all, _ := s.entries(conversation)
			answered := slices.DeleteFunc(all, func(e continuo.Entry) bool { return e.Round == nil })
			return answered[len(answered)-1].Round.Window
		}
		for moves < 1 {
			conversation = s.send("tea", "Go on.")
			moves = int(last().Epoch) - 1
		}
		if got := last(); got.Summary != 0 || len(s.checkSummaries(conversation)) != 0 {
			t.Fatalf("the window shows %+v", got)
		}
		close(answers)
		synctest.Wait()
		_, summaries := s.entries(s.conversation("tea"))
		if len(summaries) != 1 {
			t.Fatalf("%d summaries", len(summaries))
		}
		for moves < 2 {
			conversation = s.send("tea", "And on.")
			now := last()
			if moves = int(now.Epoch) - 1; moves < 2 && now.Summary != 0 {
				t.Fatalf("the window changed without a move: %+v", now)
			}
		}
		if last().Summary < summaries[0].Seq {
			t.Errorf("the move shows no summary: %+v", last())
		}
		s.checkSummaries(conversation)
	})
}

// ahead makes the summary of a conversation, as a turn's end does.
func (s *summaryEngine) ahead(conversation continuo.Conversation) error {
	s.t.Helper()
	chosen, err := s.Catalog.Resolve(catalog.TurnSpec{Mode: continuo.ModeChat})
	if err != nil {
		s.t.Fatal(err)
	}
	return s.Summaries.Ahead(context.WithoutCancel(s.t.Context()), conversation.ID, s.Catalog.Runner(chosen), conversation.LastSeq)
}

// nearMove has a conversation whose next move is near and that has no summary, because none could be made.
func nearMove(t *testing.T, log *continuo.Log) continuo.Conversation {
	t.Helper()
	without := newSummaryEngine(t, log, nil, func(options *engine.Options) {
		options.Models["none"] = catalog.Upstream{Model: &scriptedModel{name: "none", answer: func(context.Context, string) (string, error) { panic("a bug") }}}
		options.Summarizer = "none"
	})
	conversation := without.appendConversation("tea", 8)
	if _, summaries := without.entries(conversation); len(summaries) != 0 {
		t.Fatalf("%d summaries", len(summaries))
	}
	return conversation
}

// TestOneOfTwoReplicasMakesASummary has both find out at the same time that it is missing.
func TestOneOfTwoReplicasMakesASummary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, answers := newCountedLog(), make(chan struct{})
		conversation := nearMove(t, log)
		small := until(answers, "The shop so far.")
		var working sync.WaitGroup
		for range 2 {
			replica := newSummaryEngine(t, log, small)
			working.Go(func() {
				if err := replica.ahead(conversation); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(answers)
		working.Wait()
		s := newSummaryEngine(t, log, small)
		if summaries := s.checkSummaries(s.conversation("tea")); len(summaries) != 1 || len(small.bodies()) != 1 {
			t.Errorf("%d summaries, the model was asked %d times", len(summaries), len(small.bodies()))
		}
		if err := s.ahead(s.conversation("tea")); err != nil || len(small.bodies()) != 1 {
			t.Errorf("it was made again: %v", err)
		}
	})
}

// TestAKilledProcessesSummaryIsMadeByAnother leaves the lease of a process that is gone, and nothing else.
func TestAKilledProcessesSummaryIsMadeByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newCountedLog()
		conversation := nearMove(t, log)
		if _, err := log.Leases().TakeLease(t.Context(), "summary/"+conversation.ID, "dead#1", 0); err != nil {
			t.Fatal(err)
		}
		s := newSummaryEngine(t, log, nil)
		begin := time.Now()
		s.send("tea", "Go on.")
		if took := time.Since(begin); took > time.Millisecond {
			t.Errorf("the turn took %s", took)
		}
		time.Sleep(time.Minute) // the lease expires
		if summaries := s.checkSummaries(s.conversation("tea")); len(summaries) != 1 {
			t.Errorf("%d summaries", len(summaries))
		}
	})
}

// TestAClosedProgramMakesNoSummaryLater closes the engine while the model works: it ends, and another one makes the summary
// after the next turn.
func TestAClosedProgramMakesNoSummaryLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newCountedLog()
		nearMove(t, log)
		small := until(nil, "")
		s := newSummaryEngine(t, log, small)
		s.send("tea", "Go on.")
		if len(small.bodies()) != 1 {
			t.Fatal("no summary is being made")
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Close(over); err != nil {
			t.Fatal(err)
		}
		if summaries := s.checkSummaries(s.conversation("tea")); len(summaries) != 0 {
			t.Fatalf("%d summaries of a program that was closed", len(summaries))
		}
		next := newSummaryEngine(t, log, nil)
		next.send("tea", "And on.")
		if summaries := next.checkSummaries(next.conversation("tea")); len(summaries) != 1 {
			t.Errorf("%d summaries after the next turn", len(summaries))
		}
	})
}

// TestARedactionWhileASummaryIsMade has the model repeat what was redacted after it was shown.
func TestARedactionWhileASummaryIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan struct{})
		log := newCountedLog()
		nearMove(t, log)
		small := &scriptedModel{name: "small-1", answer: func(_ context.Context, body string) (string, error) {
			<-answers
			if strings.Contains(body, firstWish) {
				return firstWish, nil
			}
			return "The shop so far.", nil
		}}
		s := newSummaryEngine(t, log, small)
		conversation := s.send("tea", "Go on.")
		if len(small.bodies()) != 1 {
			t.Fatal("no summary is being made")
		}
		if _, err := log.Redact(t.Context(), conversation, 1, 1, ""); err != nil {
			t.Fatal(err)
		}
		close(answers)
		for range 15 {
			conversation = s.send("tea", "Go on.")
		}
		all, summaries := s.entries(conversation)
		for _, e := range all {
			if strings.Contains(e.Content.String(), firstWish) {
				t.Errorf("entry %d says it: %q", e.Seq, e.Content.String())
			}
		}
		if len(summaries) == 0 {
			t.Error("no summary was made since")
		}
	})
}

// TestASummaryWaitsForOpenCalls has a summary ready while a client's calls have no results yet.
func TestASummaryWaitsForOpenCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan struct{})
		log := newCountedLog()
		nearMove(t, log)
		s := newSummaryEngine(t, log, until(answers, "The shop so far."))
		conversation := s.send("tea", "Go on.")
		add := func(entry continuo.Entry) {
			t.Helper()
			if _, err := log.Append(t.Context(), conversation.ID, []continuo.Entry{entry}, continuo.AppendOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		add(continuo.Entry{Role: continuo.Assistant, Content: continuo.Null(), ToolCalls: []continuo.ToolCall{continuo.FunctionCall("c1", "look", "{}")}})
		if err := s.ahead(conversation); err != nil { // the first one waits for the model
			t.Fatal(err)
		}
		close(answers)
		synctest.Wait()
		if summaries := s.checkSummaries(s.conversation("tea")); len(summaries) != 0 {
			t.Fatalf("%d summaries between a call and its result", len(summaries))
		}
		add(continuo.Entry{Role: continuo.Tool, ToolCallID: "c1", Content: continuo.Text("found")})
		time.Sleep(2 * time.Second)
		if summaries := s.checkSummaries(s.conversation("tea")); len(summaries) != 1 {
			t.Errorf("%d summaries after the result", len(summaries))
		}
	})
}

// planted are facts of the kinds that a summary has to name.
var planted = []struct{ kind, fact string }{
	{"decision", "We decided to keep the orders in PostgreSQL because of the audit."},
	{"open question", "Who renews the certificate of the harbour gate is still open."},
	{"file name", "The tides are read by cmd/harbour/parse_tide.go."},
	{"number", "The kiln holds 4711 litres."},
}

// figure is a short sentence about an amount.
var figure = regexp.MustCompile(`^.{1,30}\b\d{4} [a-z]+\.$`)

// obedient can only repeat sentences that it is shown, of the kinds that its rules ask for, those of the summary so far first.
// Each kind has a quarter of the room.
func obedient() *scriptedModel {
	kinds := []struct {
		name string
		is   func(sentence string) bool
	}{
		{"decided", func(s string) bool { return strings.Contains(s, "decided") }},
		{"Open questions", func(s string) bool { return strings.Contains(s, "is still open") }},
		{"File names", func(s string) bool { return strings.Contains(s, ".go") }},
		{"numbers", figure.MatchString},
	}
	return &scriptedModel{name: "small-1", answer: func(_ context.Context, body string) (string, error) {
		var request struct{ Messages []struct{ Content string } }
		if err := json.Unmarshal([]byte(body), &request); err != nil || len(request.Messages) != 2 {
			return "", fmt.Errorf("the request has %d messages: %w", len(request.Messages), err)
		}
		rules, shown := request.Messages[0].Content, request.Messages[1].Content
		_, size, _ := strings.Cut(rules, "at most ")
		size, _, _ = strings.Cut(size, " ")
		most, err := strconv.Atoi(size)
		if err != nil {
			return "", fmt.Errorf("no size in the rules: %w", err)
		}
		said := []string{"So far:"}
		for _, kind := range kinds {
			left := most/len(kinds) - len(said[0])
			for line := range strings.Lines(shown) {
				for sentence := range strings.SplitAfterSeq(strings.TrimSpace(strings.TrimPrefix(line, "User:")), ". ") {
					sentence = strings.TrimSpace(sentence)
					if strings.Contains(rules, kind.name) && kind.is(sentence) && !slices.Contains(said, sentence) && len(sentence) < left {
						said, left = append(said, sentence), left-len(sentence)-1
					}
				}
			}
		}
		return strings.Join(said, "\n"), nil
	}}
}

// TestPlantedFactsSurvive plants facts near the beginning of recorded conversations and has the window move many times.
func TestPlantedFactsSurvive(t *testing.T) {
	for _, name := range []string{"locomo.jsonl.gz", "beam.jsonl.gz"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(os.Getenv("CONTINUO_DATA"), name)
			if _, err := os.Stat(path); err != nil || os.Getenv("CONTINUO_DATA") == "" {
				t.Skipf("SKIPPED: no %s; set CONTINUO_DATA to the folder that holds it", name)
			}
			recorded, err := evidence.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range recorded[:3] {
				synctest.Test(t, func(t *testing.T) { plant(t, one.Messages) })
			}
		})
	}
}

// plant replays messages in turns of two, with the planted facts after the first three.
func plant(t *testing.T, messages []evidence.Message) {
	answer := ""
	s := newSummaryEngine(t, newCountedLog(), obedient())
	s.chat.answer = func(context.Context, string) (string, error) { return answer, nil }
	text := func(i int) string {
		var text string
		_ = json.Unmarshal(messages[i].Content, &text)
		return strings.TrimSpace(text) + "." // never empty
	}
	var conversation continuo.Conversation
	for i := 0; i+1 < min(len(messages), 160); i += 2 {
		answer = text(i + 1)
		message := text(i)
		if i == 6 {
			for _, one := range planted {
				message += "\n" + one.fact
			}
		}
		conversation = s.send("s", message)
	}
	summaries := s.checkSummaries(conversation)
	if len(summaries) < 4 {
		t.Fatalf("%d summaries", len(summaries))
	}
	bodies := s.chat.bodies()
	for _, one := range planted {
		if !strings.Contains(bodies[len(bodies)-1], one.fact) {
			t.Errorf("the %s is lost: the summary is\n%s", one.kind, summaries[len(summaries)-1].Content.String())
		}
	}
}
