package view_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	crewview "github.com/continuo-log/continuo/crew/view"
)

// groupChat is a conversation of the shared data.
type groupChat struct {
	ID       string `json:"id"`
	Messages []struct {
		Role    string `json:"role"`
		Name    string `json:"name"`
		Content string `json:"content"`
	} `json:"messages"`
}

// groupChats hands over the conversations of a shared file, or skips the test.
func groupChats(t *testing.T, file string, each func(groupChat)) {
	t.Helper()
	folder := os.Getenv("CONTINUO_DATA")
	if folder == "" {
		folder = filepath.Join("..", "..", "..", "shared", "data")
	}
	packed, err := os.Open(filepath.Join(folder, file))
	if err != nil {
		t.Skipf("SKIPPED: no shared conversations in %s: set CONTINUO_DATA to their folder", folder)
	}
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(unpacked)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var chat groupChat
		if err := json.Unmarshal(lines.Bytes(), &chat); err != nil {
			t.Fatal(err)
		}
		each(chat)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

// TestGroupChatsThroughEveryView replays real group chats: three roles read along under a small budget, one of them
// in bursts, and answer now and then. None misses a message or is shown one twice as new. Of each file some are read in
// part; all of them, whole, with CONTINUO_LONG=1.
func TestGroupChatsThroughEveryView(t *testing.T) {
	for _, file := range []string{"irc.jsonl.gz", "multi-agent.jsonl.gz"} {
		for _, kind := range []crewview.Kind{crewview.Delta, crewview.Full, crewview.Window, crewview.Summary, crewview.Memory} {
			t.Run(strings.TrimSuffix(file, ".jsonl.gz")+" "+string(kind), func(t *testing.T) {
				t.Parallel()
				chats, messages, news, misses, rows := 0, 0, 0, 0, int64(0)
				var texts, size, waits int
				groupChats(t, file, func(chat groupChat) {
					if os.Getenv("CONTINUO_LONG") == "" {
						if chats == 2 {
							return
						}
						chat.Messages = chat.Messages[:min(len(chat.Messages), 160)]
					}
					chats++
					view := roleView(kind, newest(20), charsAtMost(8000))
					view.LowWater, view.PreviewChars = 0.6, 400
					c := newCrew(t, rand.New(rand.NewPCG(uint64(chats), 3)), view, view, view)
					c.roles[0].Role.Remembers = true
					rows += c.replay(chat, kind)
					misses += c.finish()
					messages += len(chat.Messages)
					texts, size, waits = texts+c.texts, size+c.chars, waits+c.waits
					for _, m := range c.roles {
						news += len(m.news)
					}
				})
				t.Logf("%d chats, %d messages: %d requests of %d characters on average, %d messages shown as new, %d times one waited, %d rows read for a request, %d misses",
					chats, messages, texts, size/max(texts, 1), news, waits, rows/int64(max(texts, 1)), misses)
			})
		}
	}
}

// replay appends a chat's messages, marked, and lets the roles take their turns between them.
func (c *crewOf) replay(chat groupChat, kind crewview.Kind) (rows int64) {
	for i, message := range chat.Messages {
		if len(message.Content) > 4000 && message.Role == "user" {
			message.Content = message.Content[:4000] // the newest of the user has to fit whole
		}
		mark := c.mark("")
		if c.original == "" && message.Role == "user" {
			c.original = mark
		}
		c.Add(continuo.Entry{
			Role: continuo.Role(message.Role), Name: message.Name, Content: continuo.Text(strings.ToValidUTF8(mark+" "+message.Content, "")),
		})
		if i%200 == 150 {
			c.summary(1, int64(len(c.List))-40, "", "the summary of it")
		}
		for at, m := range c.roles {
			if i%[]int{7, 13, 120}[at] != 0 {
				continue
			}
			if kind == crewview.Memory && m.Role.Cursor > 30 && i%5 == 0 {
				c.summary(1, m.Role.Cursor-10, m.Role.Name, fmt.Sprint("notes at ", i))
				m.Role.Notes = int64(len(c.List))
			}
			rows += c.turn(m, i%3 > 0).Totals.RowsRead
		}
	}
	return rows
}
