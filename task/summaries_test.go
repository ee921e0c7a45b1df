package task_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/continuo-log/continuo/task"
)

// longConversation is a draft with so many messages that are to be summarized.
func longConversation(t *testing.T, messages int) task.Draft {
	t.Helper()
	var history []any
	for i := range messages {
		history = append(history, message("assistant", fmt.Sprintf("Point %d. ", i)+strings.Repeat("And so on. ", 20)))
	}
	asked := request(t, history)
	asked.Compression = task.Semantic
	draft, _, err := task.Check(asked, now, task.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return draft
}

// timed is a Summarizer that takes its time, and counts how often it is asked at once.
type timed struct {
	takes func(text string) time.Duration

	mu      sync.Mutex
	at, top int // how often it is asked now, and was at most
	asked   int
}

func (s *timed) enter(change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at += change
	s.top, s.asked = max(s.top, s.at), s.asked+max(change, 0)
}

func (s *timed) Summarize(ctx context.Context, text string, _ int) (string, error) {
	s.enter(+1)
	defer s.enter(-1)
	if strings.HasPrefix(text, "Point 3.") || strings.HasPrefix(text, "Point 7.") {
		return "", errors.New("no summary")
	}
	select {
	case <-time.After(s.takes(text)):
		short, _, _ := strings.Cut(text, ".")
		return "In short: " + short, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// Several summaries are made at once, and what comes of them is the same whichever is made first.
func TestSummariesAreMadeAtOnceAndKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var first []task.Shaped
		for _, longest := range []string{"Point 0.", "Point 9."} {
			draft, slow := longConversation(t, 12), &timed{takes: func(text string) time.Duration {
				if strings.HasPrefix(text, longest) {
					return time.Minute
				}
				return time.Second
			}}
			var reported [][2]int
			draft.Progress = func(made, total int) { reported = append(reported, [2]int{made, total}) }
			made, warnings, err := draft.Shape(t.Context(), slow)
			if err != nil || slow.top != 4 {
				t.Fatalf("%d at once, %v", slow.top, err)
			}
			history := made.Context.ConversationHistory
			for i, message := range history.Messages {
				want := fmt.Sprintf("In short: Point %d", i)
				if i == 3 || i == 7 {
					want = fmt.Sprintf("Point %d. And so on.", i)
				}
				if !strings.HasPrefix(message.Content, want) || !message.Summarized {
					t.Errorf("message %d reads %q", i, message.Content)
				}
			}
			if len(warnings) != 2 || !strings.HasPrefix(warnings[0].Message, "message [4] ") || !strings.HasPrefix(warnings[1].Message, "message [8] ") {
				t.Errorf("warnings %+v", warnings)
			}
			for i, one := range reported {
				if one != [2]int{i + 1, 12} {
					t.Errorf("reported %v", reported)
				}
			}
			if len(reported) != 12 || history.SummarizedCount != 12 {
				t.Errorf("reported %d, %d are counted", len(reported), history.SummarizedCount)
			}
			if first != nil && !slices.EqualFunc(first, history.Messages, func(a, b task.Shaped) bool { return a.Content == b.Content }) {
				t.Error("another order of the summaries makes another history")
			}
			first = history.Messages
		}
	})
}

// A cancelled request does not wait for a summary.
func TestSummariesEndWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		draft, slow := longConversation(t, 40), &timed{takes: func(string) time.Duration { return time.Hour }}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		_, _, err := draft.Shape(ctx, slow)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Minute || slow.asked > 5 {
			t.Errorf("after %s and %d summaries: %v", time.Since(began), slow.asked, err)
		}
	})
}
