package match_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/gateway/match"
	"github.com/continuo-log/continuo/gateway/request"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// longLine is the length in bytes above which only one conversation in eight is read, and none of more than 80 000. Of the
// shorter ones, one in three is read; all with CONTINUO_LONG=1. Under the race detector, which makes it eight times as slow,
// none of the long ones is read.
const longLine = 30_000

// eachHistory calls f for the conversations of the shared data that a log accepts.
func eachHistory(t *testing.T, f func(id string, r *request.Request)) {
	t.Helper()
	for _, file := range dataFiles(t, "*.jsonl.gz") {
		short, long := 0, 0
		eachLine(t, file, func(line []byte) {
			switch {
			case os.Getenv("CONTINUO_LONG") != "":
			case len(line) > longLine:
				if long++; raceDetector || long%8 != 1 || len(line) > 80_000 {
					return
				}
			default:
				if short++; short%3 != 1 {
					return
				}
			}
			var c struct {
				ID       string            `json:"id"`
				Protocol string            `json:"protocol"`
				Messages []json.RawMessage `json:"messages"`
			}
			if err := json.Unmarshal(line, &c); err != nil {
				t.Fatal(err)
			}
			read := request.ReadChat
			if c.Protocol == "anthropic" {
				read = request.ReadAnthropic
			}
			r, err := read(rawjson.MustMarshal(map[string]any{"messages": c.Messages}), request.Options{Provider: "p"})
			if err == nil && len(r.Problems) == 0 {
				f(filepath.Base(file)+" "+c.ID, r)
			}
		})
	}
}

// Any conversation that is sent as a growing history is matched with itself at every step, and where one message is
// edited, the request is a fork right before it. All conversations are in one project.
func TestGrowingHistories(t *testing.T) {
	g := newGateway(t, stores["sqlite"](t))
	steps, forks := 0, 0
	eachHistory(t, func(id string, whole *request.Request) {
		own := ""
		asking := func(entries []continuo.Entry) match.Query {
			return match.Query{Request: &request.Request{System: whole.System, Entries: slices.Clone(entries)}}
		}
		edited := 0 // the last message of the user that was answered, after another answer
		for i := 0; i < len(whole.Entries); i++ {
			if whole.Entries[i].Role != continuo.Assistant || i == 0 {
				continue
			}
			answered := own != "" && says(whole.Entries[:i])
			u := g.receive(asking(whole.Entries[:i]))
			if answered && (u.conversation != own || u.found.Fork) {
				t.Fatalf("%s: the request before message %d: %+v, not of %s", id, i, u.found, own)
			}
			own = u.conversation
			if steps++; answered && whole.Entries[i-1].Role == continuo.User {
				edited = i - 1
			}
			for ; i < len(whole.Entries) && whole.Entries[i].Role == continuo.Assistant; i++ {
				u.append(g, []continuo.Entry{whole.Entries[i]})
			}
			i--
		}
		if edited == 0 || !says(whole.Entries[:edited]) {
			return
		}
		changed := slices.Clone(whole.Entries[:edited+1])
		changed[edited].Content = continuo.Text("something else entirely, in " + id)
		forks++
		if u := g.receive(asking(changed)); !u.found.Fork || !u.found.Rewritten || u.found.Common != edited || u.found.Conversation.ID != own {
			t.Fatalf("%s: message %d is edited: fork %t at %d of %s, not of %s", id, edited, u.found.Fork, u.found.Common, u.found.Conversation.ID, own)
		}
	})
	t.Logf("%d requests, %d edits", steps, forks)
	if steps == 0 || forks == 0 {
		t.Error("nothing was sent")
	}
}

// says reports whether entries have an answer that says something.
func says(entries []continuo.Entry) bool {
	return slices.ContainsFunc(entries, func(e continuo.Entry) bool {
		return e.Role == continuo.Assistant && len(match.Said(&e)) > 0 && strings.TrimSpace(match.Said(&e)[0]) != ""
	})
}
