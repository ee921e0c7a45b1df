package task_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/continuo-log/continuo/fulltext"
)

// The extractive summarizer is judged by the facts that survive it. A fact is a word of an annotated answer that
// occurs in the messages which the annotation names as evidence, and that is a number, a name, or rare in its
// conversation. Each stretch of 40 messages is summarized in 4 000 characters, as a window that moves does.
const (
	stretchMessages = 40
	stretchChars    = 4000
)

type annotated struct {
	Messages []struct{ Role, Name, Content string } `json:"messages"`
	QA       []struct {
		Answer   string `json:"answer"`
		Evidence []int  `json:"evidence"`
	} `json:"qa"`
}

// annotatedConversations reads conversations with questions and their evidence.
func annotatedConversations(tb testing.TB, name string) []annotated {
	tb.Helper()
	file, err := os.Open(dataFiles(tb, name)[0])
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // it is only read
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		tb.Fatal(err)
	}
	var all []annotated
	lines := bufio.NewScanner(unpacked)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var one annotated
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			tb.Fatal(err)
		}
		all = append(all, one)
	}
	if err := lines.Err(); err != nil {
		tb.Fatal(err)
	}
	return all
}

// makersMark ends messages of BEAM.
var makersMark = regexp.MustCompile(`\s*->->\s*[\d,]+\s*$`)

// survival counts the facts of a conversation and those that its summaries hold.
func survival(tb testing.TB, conversation annotated, summarize func(text string) string) (facts, kept int) {
	texts := make([]string, len(conversation.Messages))
	in := map[string]int{} // how many messages have a word
	for i, message := range conversation.Messages {
		who := "User: "
		if message.Role != "user" {
			who = "Assistant: "
		}
		texts[i] = who + makersMark.ReplaceAllString(strings.Join(strings.Fields(message.Content), " "), "")
		for word := range wordSet(texts[i]) {
			in[word]++
		}
	}
	var summaries []map[string]bool
	for begin := 0; begin < len(texts); begin += stretchMessages {
		summaries = append(summaries, wordSet(summarize(strings.Join(texts[begin:min(begin+stretchMessages, len(texts))], "\n"))))
	}
	for _, qa := range conversation.QA {
		for _, evidence := range qa.Evidence {
			if evidence < 0 || evidence >= len(texts) {
				continue
			}
			held := wordSet(texts[evidence])
			for word := range wordSet(qa.Answer) {
				if !held[word] || in[word] > max(3, len(texts)/50) {
					continue
				}
				facts++
				if summaries[evidence/stretchMessages][word] {
					kept++
				}
			}
		}
	}
	return facts, kept
}

func wordSet(text string) map[string]bool {
	words := map[string]bool{}
	for token := range fulltext.Tokens(text) {
		words[token.Text] = true
	}
	return words
}

// TestSummariesKeepFacts holds the share of facts that survive. The summarizer before, which took the sentences with the
// most frequent words, kept .648 (LoCoMo) and .169 (BEAM).
func TestSummariesKeepFacts(t *testing.T) {
	for _, test := range []struct {
		file  string
		most  int // conversations, the first of the file
		floor float64
	}{{"locomo.jsonl.gz", 5, 0.9}, {"beam.jsonl.gz", 3, 0.45}} {
		t.Run(test.file, func(t *testing.T) {
			all := annotatedConversations(t, test.file)
			if os.Getenv("CONTINUO_LONG") == "" {
				all = all[:min(test.most, len(all))]
			}
			facts, kept := 0, 0
			for _, conversation := range all {
				f, k := survival(t, conversation, func(text string) string { return summary(t, text, stretchChars) })
				facts, kept = facts+f, kept+k
			}
			share := float64(kept) / float64(max(facts, 1))
			t.Logf("%d of %d facts survive, %.3f", kept, facts, share)
			if facts < 50 || share < test.floor {
				t.Errorf("%.3f of %d facts survive, want at least %.2f", share, facts, test.floor)
			}
		})
	}
}
