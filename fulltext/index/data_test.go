package index_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/interchange"
)

// shared are some of the shared conversations: the first few of each file, of some hundred entries each.
func shared(t testing.TB, files, perFile, most int) (documents []interchange.Document) {
	t.Helper()
	folder := os.Getenv("CONTINUO_DATA")
	if folder == "" {
		folder = filepath.Join("..", "..", "..", "shared", "data")
	}
	paths, err := filepath.Glob(filepath.Join(folder, "*.jsonl.gz"))
	if err != nil || len(paths) == 0 {
		t.Skipf("SKIPPED: there are no shared conversations at %s: set CONTINUO_DATA to their folder (%v)", folder, err)
	}
	for _, path := range paths[:min(files, len(paths))] {
		packed, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		left := perFile
		for document, err := range interchange.Read(path, bytes.NewReader(packed), interchange.Options{}) {
			if err != nil || len(document.Entries) == 0 || len(document.Entries) > most {
				continue
			}
			document.Conversation.Key = fmt.Sprintf("%s-%d", filepath.Base(path), left)
			documents = append(documents, document)
			if left--; left == 0 {
				break
			}
		}
	}
	return documents
}

// questions are searches for stretches of the documents, and some that people write.
func questions(documents []interchange.Document, n int) []string {
	random := rand.New(rand.NewPCG(3, 5))
	asked := []string{"the refund status", `"of the"`, "test* -error", "数据", "です", "file_read path", "餐馆 价格", "error: not found"}
	for len(asked) < n {
		entries := documents[random.IntN(len(documents))].Entries
		texts := fulltext.TextsOf(&entries[random.IntN(len(entries))])
		if len(texts) == 0 {
			continue
		}
		text := texts[random.IntN(len(texts))]
		tokens := slices.Collect(fulltext.Tokens(text))
		if len(tokens) == 0 {
			continue
		}
		from := random.IntN(len(tokens))
		to := min(from+1+random.IntN(3), len(tokens))
		words := strings.Join(strings.Fields(strings.ReplaceAll(text[tokens[from].Start:tokens[to-1].End], `"`, " ")), " ")
		if random.IntN(3) == 0 {
			words = `"` + words + `"`
		}
		if _, err := fulltext.ParseQuery(words); err == nil {
			asked = append(asked, words)
		}
	}
	return asked
}

// plainly are the matches that a look at every entry finds, as "key#seq", sorted.
func plainly(documents []interchange.Document, text string) []string {
	query, err := fulltext.ParseQuery(text)
	if err != nil {
		return nil
	}
	var found []string
	for _, document := range documents {
		if _, ok := query.Match(document.Conversation.Title); ok {
			found = append(found, document.Conversation.Key+"#0")
		}
		for i := range document.Entries {
			if _, ok := query.Match(fulltext.TextsOf(&document.Entries[i])...); ok {
				found = append(found, fmt.Sprintf("%s#%d", document.Conversation.Key, i+1))
			}
		}
	}
	slices.Sort(found)
	return found
}

// TestEveryStoreGivesTheSame asks real conversations the same questions in every store: the same entries come, in
// the same order with the same snippets, and they are those that a plain look at every entry finds.
func TestEveryStoreGivesTheSame(t *testing.T) {
	documents := shared(t, 100, 4, 300)
	asked := questions(documents, 60)
	first, plain := map[string]string{}, map[string][]string{}
	for _, query := range asked {
		plain[query] = plainly(documents, query)
	}
	everywhere(t, func(p *fixture) {
		p.log = continuo.NewLog(p.store, continuo.LogOptions{Now: p.time})
		entries, matches := 0, 0
		for _, document := range documents {
			if _, err := p.log.Import(p.Context(), document.Conversation, slices.Clone(document.Entries)); err != nil {
				p.Fatal(err)
			}
			entries += len(document.Entries)
			p.later()
		}
		p.run(index.Indexer{}, index.Scope{})
		for _, query := range asked {
			items := p.all(index.Request{Query: query, Limit: 200})
			matches += len(items)
			var found []string
			for i := range items {
				items[i].ConversationID = ""
				found = append(found, names(items[i:i+1]))
			}
			written, err := json.Marshal(items)
			if err != nil {
				p.Fatal(err)
			}
			if first[query] == "" {
				first[query] = string(written)
			} else if first[query] != string(written) {
				p.Errorf("%q gives something else than in the first store:\n%.1000s\n%.1000s", query, written, first[query])
			}
			slices.Sort(found)
			if want := plain[query]; !slices.Equal(found, want) {
				p.Errorf("%q found %d, a plain look %d:\n%.500v\n%.500v", query, len(found), len(want), found, want)
			}
		}
		p.Logf("%d conversations, %d entries, %d queries, %d matches", len(documents), entries, len(asked), matches)
		if matches < 1000 {
			p.Error("there are few matches: the test shows little")
		}
	})
}
