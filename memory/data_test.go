package memory_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/memory"
)

type annotated struct {
	ID       string `json:"id"`
	Messages []struct {
		Role    string          `json:"role"`
		Name    string          `json:"name"`
		Time    string          `json:"ts"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	QA []struct {
		Question string          `json:"question"`
		Answer   json.RawMessage `json:"answer"`
		Evidence []int           `json:"evidence"`
		Category string          `json:"category"`
	} `json:"qa"`
}

// readAnnotated reads conversations with annotated questions; it skips the test where there are none.
func readAnnotated(t *testing.T, name string) (all []annotated) {
	t.Helper()
	dir := os.Getenv("CONTINUO_DATA")
	if dir == "" {
		t.Skip("CONTINUO_DATA names no folder with conversations")
	}
	file, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		t.Skip(err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(unpacked)
	for {
		line, err := reader.ReadBytes('\n')
		if len(line) > 1 {
			var one annotated
			if err := json.Unmarshal(line, &one); err != nil {
				t.Fatal(err)
			}
			all = append(all, one)
		}
		if err != nil {
			return all
		}
	}
}

var makersMark = regexp.MustCompile(`\s*->->.*$`)

// TestHowManyAnswersFactsHold reports, for conversations with annotated questions, in how many of them a fact was taken
// from a message that holds the evidence, and from how many all of these messages have one. With MEMORY_SAMPLE it prints so
// many facts of each file for a person to read, with what is said around them: the same ones for the same facts; and all that have an end.
func TestHowManyAnswersFactsHold(t *testing.T) {
	for _, name := range []string{"beam", "locomo"} {
		t.Run(name, func(t *testing.T) {
			var facts, said int
			any, full, located, questions := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
			var sample, ending []string
			for _, conversation := range readAnnotated(t, name+".jsonl.gz") {
				from := map[int][]memory.Candidate{}
				for i, message := range conversation.Messages {
					var text string
					_ = json.Unmarshal(message.Content, &text)
					entry := continuo.Entry{Role: continuo.Role(message.Role), Name: message.Name, Content: continuo.Text(makersMark.ReplaceAllString(text, ""))}
					if name == "locomo" {
						entry.Role = continuo.User
					}
					entry.CreatedAt, _ = time.Parse(time.DateOnly, message.Time[:min(len(message.Time), len(time.DateOnly))])
					if entry.Role == continuo.User {
						said++
					}
					from[i] = memory.Extract(&entry)
					facts += len(from[i])
					for _, fact := range from[i] {
						if !fact.ValidTo.IsZero() {
							ending = append(ending, fmt.Sprintf("said %s, until %s: %s", entry.CreatedAt.Format(time.DateOnly), memory.LastDay(fact.ValidTo), around(entry.Content.String(), fact.Quote)))
						}
						sample = append(sample, fmt.Sprintf("%s [%s] %s", fact.Kind, fact.Attribute, around(entry.Content.String(), fact.Quote)))
					}
				}
				for _, qa := range conversation.QA {
					if len(qa.Evidence) == 0 {
						continue
					}
					questions[qa.Category]++
					held, texts := 0, ""
					for _, at := range qa.Evidence {
						if len(from[at]) > 0 {
							held++
						}
						for _, fact := range from[at] {
							texts += " " + strings.ToLower(fact.Text)
						}
					}
					if held > 0 {
						any[qa.Category]++
					}
					if held == len(qa.Evidence) {
						full[qa.Category]++
					}
					if covers(texts, string(qa.Answer)) {
						located[qa.Category]++
					}
				}
			}
			t.Logf("%d facts of %d messages of people, %d with an end", facts, said, len(ending))
			for category, count := range questions {
				t.Logf("%-26s %4d questions: %.2f a fact, %.2f of all evidence, %.2f with the answer's words", category, count,
					float64(any[category])/float64(count), float64(full[category])/float64(count), float64(located[category])/float64(count))
			}
			size, _ := strconv.Atoi(os.Getenv("MEMORY_SAMPLE"))
			for i, at := range rand.New(rand.NewPCG(1, 2)).Perm(len(sample))[:min(size, len(sample))] {
				t.Logf("%2d %s", i+1, sample[at])
			}
			for _, one := range ending[:min(len(ending), size)] {
				t.Log(one)
			}
		})
	}
}

// around shows a quote in its message: what comes before, the quote in brackets, and what comes after.
func around(text, quote string) string {
	const shown = 60
	before, after, _ := strings.Cut(text, quote)
	line := strings.ToValidUTF8(before[max(0, len(before)-shown):]+"⟦"+quote+"⟧"+after[:min(len(after), shown)], "")
	return strings.Join(strings.Fields(line), " ")
}

var answerWord = regexp.MustCompile(`[\p{L}\d]{3,}`)

// covers reports whether facts have most of the words of an answer.
func covers(texts, answer string) bool {
	words := answerWord.FindAllString(strings.ToLower(answer), -1)
	has := 0
	for _, word := range words {
		if strings.Contains(texts, word) {
			has++
		}
	}
	return len(words) > 0 && 2*has >= len(words)
}
