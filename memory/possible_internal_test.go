package memory

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheWordsOfRulesAreInWhatTheyMatch holds the words against the patterns: on a few sentences of each form, and on the
// recorded conversations where CONTINUO_DATA names them.
func TestTheWordsOfRulesAreInWhatTheyMatch(t *testing.T) {
	check := func(sentence string) {
		plain, _ := plainApostrophes(sentence)
		lower := strings.ToLower(plain)
		for i := range rules {
			if r := &rules[i]; !r.isPossible(lower) && r.pattern().MatchString(plain) {
				t.Fatalf("the rule %d matches %q and has none of its words %q", i, sentence, r.words)
			}
		}
	}
	for _, start := range []string{"", "And ", "Well, ", "It rained, and ", "It rained—", "Because "} {
		for _, sentence := range []string{
			"From now on, always answer in French", "Never use tabs", "In the future, do not add tests", "By default show dates", "Use metric units when I ask for sizes",
			"Please remember that I smoke", "My name is Ann", "call me Ishmael", "I'm called Bo", "MY FAVOURITE town is Rome", "my favorite food has always been rice",
			"I really like tea", "we don't eat meat", "I can't stand noise", "I’m a big fan of jazz", "I am vegan", "we'd rather walk", "I've set a preference for tea",
			"my preference is rice", "I've finally decided on Go", "we switched to Rust", "let's go with Postgres", "we're going to drop it", "I lived in Oslo", "we reside near Rome",
			"I have moved to Bergen", "I work at a bank", "I'm 31 years old", "I am a senior software engineer", "I was born in May", "I'm originally from Chile",
			"my phone number is 5", "our budget is now $50", "my sister's dog barks", "I've never met Kelly", "I bought a car", "we have been there", "I visited Rome",
			"I'm working late", "I have been running", "my garden has roses", "I usually cook on Fridays",
		} {
			check(start + sentence)
		}
	}
	for _, name := range []string{"beam", "locomo", "coding-agents", "aider-history"} {
		for _, sentence := range recordedSentences(t, name+".jsonl.gz", 20_000) {
			check(sentence)
		}
	}
}

// recordedSentences reads the first sentences of recorded conversations; none where there are no files.
func recordedSentences(t *testing.T, name string, most int) (found []string) {
	t.Helper()
	file, err := os.Open(filepath.Join(os.Getenv("CONTINUO_DATA"), name))
	if err != nil {
		return nil
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(unpacked)
	if os.Getenv("CONTINUO_LONG") == "" {
		most /= 20
	}
	for len(found) < most {
		line, err := lines.ReadBytes('\n')
		var one struct {
			Messages []struct{ Content json.RawMessage }
		}
		if len(line) > 1 && json.Unmarshal(line, &one) == nil {
			for _, message := range one.Messages {
				var text string
				if json.Unmarshal(message.Content, &text) == nil {
					found = append(found, sentences(text)...)
				}
			}
		}
		if err != nil {
			break
		}
	}
	return found[:min(len(found), most)]
}

func BenchmarkExtractSentences(b *testing.B) {
	said := []string{
		"The build fails in the third step.", "I prefer short answers, so keep it brief.", "Add a test for the parser and run it.",
		"My sister Ann lives in Rome.", "Can you look at the log again?", "We moved to Postgres last week, and it is faster.",
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, sentence := range said {
			_ = statements(sentence)
		}
	}
}
