package render

import (
	"fmt"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/window"
)

// Every gap of a transcript is marked where it is, and the count line is true.
func TestTranscriptMarksGaps(t *testing.T) {
	tests := []struct {
		name    string
		shown   []int64          // seqs of messages; even ones are answers
		dropped [][2]int64       // ranges
		cycle   int64            // where the current cycle begins
		role    *window.RolePlan // of a crew's role
		want    string
	}{
		{name: "nothing left out", shown: []int64{1, 2, 3}, want: "=== HISTORY ===\n\n$user: 1\n\n$respond: 2\n\n$user: 3\n"},
		{
			name: "the beginning left out", shown: []int64{5, 6}, dropped: [][2]int64{{1, 4}},
			want: "=== HISTORY ===\n(showing last 2 of 6 messages)\n\n$user: 5\n\n$respond: 6\n",
		},
		{
			name: "a gap behind the first message", shown: []int64{1, 5, 6}, dropped: [][2]int64{{2, 4}},
			want: "=== HISTORY ===\n(showing 3 of 6 messages)\n\n$user: 1\n\n(3 messages left out)\n\n$user: 5\n\n$respond: 6\n",
		},
		{
			name: "gaps at all places", shown: []int64{3, 5}, dropped: [][2]int64{{1, 2}, {4, 4}, {6, 7}},
			want: "=== HISTORY ===\n(showing 2 of 7 messages)\n\n(2 messages left out)\n\n$user: 3\n\n(1 message left out)\n\n$user: 5\n\n(2 messages left out)\n",
		},
		{
			name: "the newest answer left out", shown: []int64{3}, dropped: [][2]int64{{1, 2}, {4, 4}},
			want: "=== HISTORY ===\n(showing 1 of 4 messages)\n\n(2 messages left out)\n\n$user: 3\n\n(1 message left out)\n",
		},
		{
			name: "a gap within the cycle", shown: []int64{2, 3, 6}, dropped: [][2]int64{{1, 1}, {4, 5}}, cycle: 3,
			want: "=== HISTORY ===\n(showing last 1 of 2 messages)\n\n$respond: 2\n\n=== CURRENT ===\n\n$user: 3\n\n(2 messages left out)\n\n$respond: 6\n",
		},
		{
			name: "a gap before the cycle", shown: []int64{2, 5}, dropped: [][2]int64{{1, 1}, {3, 4}}, cycle: 5,
			want: "=== HISTORY ===\n(showing 1 of 4 messages)\n\n(1 message left out)\n\n$respond: 2\n\n(2 messages left out)\n\n=== CURRENT ===\n\n$user: 5\n",
		},
		{
			name: "a role states its own gaps", shown: []int64{3}, dropped: [][2]int64{{1, 2}}, role: &window.RolePlan{},
			want: "=== HISTORY ===\n\n$user: 3\n",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			plan := &window.Plan{At: 1, Cycle: test.cycle, Role: test.role}
			for _, seq := range test.shown {
				plan.Messages = append(plan.Messages, gapMessage(seq))
				plan.At = max(plan.At, seq)
			}
			for _, gap := range test.dropped {
				plan.Items = append(plan.Items, window.PlanItem{Seq: gap[0], Through: gap[1], Verdict: window.Dropped})
				plan.At = max(plan.At, gap[1])
			}
			transcript := TranscriptOf(plan)
			if got := transcript.String(); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
			readsBack(t, test.name, transcript)
		})
	}
}

func gapMessage(seq int64) window.Message {
	role := continuo.User
	if seq%2 == 0 {
		role = continuo.Assistant
	}
	content := continuo.Text(fmt.Sprint(seq))
	return window.Message{Seq: seq, Role: role, Content: content, Entry: &continuo.Entry{Seq: seq, Role: role, Content: content}}
}

// Content that reads like a gap or like a count is escaped.
func TestContentCannotForgeGaps(t *testing.T) {
	for _, line := range []string{"(3 messages left out)", " (1 message left out)", "(messages left out)", "(showing 2 of 3 messages)", "(showing last 2 of 3 messages)"} {
		transcript := Transcript{History: []Event{{EventUser, "first\n\n" + line}, {EventRespond, line}}}
		readsBack(t, line, transcript)
		if looksStructural(line) != true {
			t.Errorf("%q is not escaped", line)
		}
	}
}
