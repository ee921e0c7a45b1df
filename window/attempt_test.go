package window_test

import (
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// fails appends what a turn appends whose model failed with so much of an answer.
func (l *entries) fails(text string, plan *window.Plan) {
	failed := continuo.Entry{
		Role: continuo.Assistant, Content: continuo.Text(text),
		Error: &continuo.TurnError{Code: continuo.LLMError, Reason: continuo.ReasonUpstream, Retryable: true, Message: "127.0.0.1:21310 answered 401: Incorrect API key sk-123"},
	}
	if plan != nil {
		failed.Round = &continuo.Round{View: plan.View, ViewHash: plan.ViewHash, At: plan.At, Window: plan.Window}
	}
	l.Add(failed)
}

func (l *entries) cue() {
	l.Add(continuo.Entry{Role: continuo.System, PartType: continuo.PartResume, Content: continuo.Text("Go on.")})
}

func TestAnAttemptWithoutAWordLeavesTheView(t *testing.T) {
	view := preset(t, window.Continuity, window.Limits{})
	for name, c := range map[string]struct {
		happens func(l *entries)
		want    string
		reasons string
	}{
		"the message is repeated": {
			func(l *entries) { l.fails("", nil); l.User("hello"); l.fails("", nil); l.User("hello") },
			"hello", "failed_attempt:1-4 latest_user:5",
		},
		"another message follows": {
			func(l *entries) { l.fails("", nil); l.User("are you there?") },
			"hello|are you there?", "in_window:1 failed_attempt:2 latest_user:3",
		},
		"it is resumed": {
			func(l *entries) { l.fails("", nil); l.cue(); l.Assistant("Hi.") },
			"hello|Go on.|Hi.", "latest_user:1 failed_attempt:2 in_window:3-4",
		},
		"resuming fails too": {
			func(l *entries) { l.fails("", nil); l.cue(); l.fails("", nil); l.User("hello") },
			"hello", "failed_attempt:1-4 latest_user:5",
		},
		"it said something": {
			func(l *entries) { l.fails("He", nil); l.User("hello") },
			"hello|He\n\nLLM_ERROR reason=upstream retryable=true\nThe model's provider failed.|hello", "in_window:1-2 latest_user:3",
		},
		"nothing follows": {
			func(l *entries) { l.fails("", nil) },
			"hello", "latest_user:1 failed_attempt:2",
		},
		"it is asked again": {
			func(l *entries) { l.fails("", nil); l.fails("", nil); l.Assistant("Hi.") },
			"hello|Hi.", "latest_user:1 failed_attempt:2-3 in_window:4",
		},
		"going on with an answer fails": {
			func(l *entries) { l.fails("He", nil); l.cue(); l.fails("", nil) },
			"hello|He\n\nLLM_ERROR reason=upstream retryable=true\nThe model's provider failed.|Go on.", "latest_user:1 in_window:2-3 failed_attempt:4",
		},
		"going on with an answer fails, then works": {
			func(l *entries) { l.fails("He", nil); l.cue(); l.fails("", nil); l.Assistant("llo.") },
			"hello|He\n\nLLM_ERROR reason=upstream retryable=true\nThe model's provider failed.|Go on.|llo.", "latest_user:1 in_window:2-3 failed_attempt:4 in_window:5",
		},
	} {
		l := &entries{}
		l.User("hello")
		c.happens(l)
		plan := l.build(t, view)
		if got := strings.Join(texts(plan), "|"); got != c.want {
			t.Errorf("%s: shown %q", name, got)
		}
		if got := reasonRanges(plan); got != c.reasons {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// reasonRanges writes a plan's reasons with the seqs that they are of.
func reasonRanges(plan *window.Plan) string {
	type run struct {
		reason   string
		from, to int64
	}
	var runs []run
	for _, item := range plan.Items {
		last := max(item.Seq, item.Through)
		if n := len(runs); n > 0 && runs[n-1].reason == item.Reason {
			runs[n-1].to = last
			continue
		}
		runs = append(runs, run{item.Reason, item.Seq, last})
	}
	var parts []string
	for _, r := range runs {
		part := r.reason + ":" + seqText(r.from)
		if r.to > r.from {
			part += "-" + seqText(r.to)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " ")
}

func seqText(seq int64) string { return strings.TrimSpace(string(rune('0' + seq))) }

// The request behind failed attempts extends the one before them, whatever the window does.
func TestFailedAttemptsKeepThePrefix(t *testing.T) {
	for _, name := range []string{window.Codex, window.Continuity} {
		view := preset(t, name, window.Limits{Messages: 12})
		l := &entries{}
		var before []string
		for i := range 120 {
			l.User("question")
			for attempt := range i % 4 {
				plan := l.build(t, view)
				before = extends(t, before, plan)
				l.fails("", plan)
				switch attempt % 2 {
				case 0:
					l.User("question")
				default:
					l.User("another question")
				}
			}
			plan := l.build(t, view)
			before = extends(t, before, plan)
			l.answer("answer", plan)
		}
	}
}

// extends compares a request with the one before it, which may have been moved on from.
func extends(t *testing.T, before []string, plan *window.Plan) []string {
	t.Helper()
	now := texts(plan)
	if !plan.Moved && (len(now) < len(before) || !slices.Equal(now[:len(before)], before)) {
		t.Errorf("at %d: %q does not extend %q", plan.At, now, before)
	}
	return now
}

func TestARepeatedOpenerIsShownOnce(t *testing.T) {
	l := &entries{}
	l.User("hello")
	l.fails("", nil)
	l.User("hello")
	l.Assistant("Hi.")
	view := preset(t, window.Continuity, window.Limits{Messages: 6})
	for range 20 {
		l.User("and?")
		plan := l.build(t, view)
		shown := texts(plan)
		if shown[0] != "hello" || slices.Contains(shown[1:], "hello") || plan.Messages[0].Seq != 3 {
			t.Fatalf("shown %q", shown)
		}
		l.answer("so", plan)
	}
}
