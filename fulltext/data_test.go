package fulltext_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext"
	"github.com/continuo-log/continuo/interchange"
)

// dataFiles are the shared conversations.
func dataFiles(t testing.TB) []string {
	t.Helper()
	folder := os.Getenv("CONTINUO_DATA")
	if folder == "" {
		folder = filepath.Join("..", "..", "shared", "data")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.jsonl.gz"))
	if err != nil || len(files) == 0 {
		t.Skipf("SKIPPED: there are no shared conversations at %s: set CONTINUO_DATA to their folder (%v)", folder, err)
	}
	return files
}

// entries reads a file's entries until each returns false.
func entries(t testing.TB, path string, each func(*continuo.Entry) bool) {
	t.Helper()
	packed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for document, err := range interchange.Read(path, bytes.NewReader(packed), interchange.Options{}) {
		if err != nil {
			continue
		}
		for i := range document.Entries {
			if !each(&document.Entries[i]) {
				return
			}
		}
	}
}

// TestTheIndexLosesNothingOfSharedConversations asks for stretches of real entries.
func TestTheIndexLosesNothingOfSharedConversations(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 7))
	queries, most := 0, 0
	for _, path := range dataFiles(t) {
		read := 0
		entries(t, path, func(entry *continuo.Entry) bool {
			read++
			if random.IntN(10) > 0 {
				return read < 4000
			}
			texts := fulltext.TextsOf(entry)
			terms := len(fulltext.Terms(texts...))
			if most = max(most, terms); terms == fulltext.MaxTerms {
				return true // the index may lose something
			}
			for _, text := range texts {
				queries += asks(t, random, text, texts)
			}
			return read < 4000
		})
	}
	t.Logf("%d queries; an entry has at most %d terms", queries, most)
	if queries < 1000 {
		t.Errorf("only %d queries: the test shows little", queries)
	}
}

// asks asks for a stretch of a text and returns how many queries that were.
func asks(t *testing.T, random *rand.Rand, text string, texts []string) (queries int) {
	t.Helper()
	tokens := slices.Collect(fulltext.Tokens(text))
	if len(tokens) == 0 {
		return 0
	}
	from := random.IntN(len(tokens))
	to := min(len(tokens), from+1+random.IntN(8))
	for _, asked := range queriesOf(text, tokens[from:to]) {
		if utf8.RuneCountInString(asked) <= fulltext.MaxQueryChars {
			finds(t, asked, texts)
			queries++
		}
	}
	return queries
}

// corpus is text of the shared conversations of a file, up to about a megabyte, as the texts of its entries.
func corpus(b *testing.B, name string) (texts [][]string, size int) {
	b.Helper()
	files := dataFiles(b)
	at := slices.IndexFunc(files, func(path string) bool { return strings.HasPrefix(filepath.Base(path), name) })
	if at < 0 {
		b.Skipf("SKIPPED: there is no %s among the shared conversations", name)
	}
	entries(b, files[at], func(entry *continuo.Entry) bool {
		of := fulltext.TextsOf(entry)
		texts = append(texts, of)
		for _, text := range of {
			size += len(text)
		}
		return size < 1<<20
	})
	return texts, size
}

var corpora = []string{"beam", "coding-agents", "irc", "multilingual"}

func BenchmarkTerms(b *testing.B) {
	for _, name := range corpora {
		b.Run(name, func(b *testing.B) {
			texts, size := corpus(b, name)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				for _, of := range texts {
					fulltext.Terms(of...)
				}
			}
			b.ReportMetric(float64(len(texts)), "entries/op")
		})
	}
}

func BenchmarkMatch(b *testing.B) {
	for _, asked := range []string{"the refund status", `"of the" test*`, "数据 餐馆"} {
		for _, name := range corpora {
			b.Run(asked+"/"+name, func(b *testing.B) {
				texts, size := corpus(b, name)
				query, err := fulltext.ParseQuery(asked)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					for _, of := range texts {
						query.Match(of...)
					}
				}
			})
		}
	}
}

func BenchmarkSnippet(b *testing.B) {
	texts := []string{strings.Repeat("lorem ipsum dolor sit amet ", 400) + "the refund status " + strings.Repeat("lorem ipsum ", 400)}
	match, _ := parse(b, "refund status").Match(texts...)
	b.ReportAllocs()
	for b.Loop() {
		match.Snippet(texts, 160)
	}
}

func BenchmarkTokensASCII(b *testing.B) {
	text := strings.Repeat("the quick brown fox jumps over file_read(ctx, 42) ", 20_000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		for range fulltext.Tokens(text) {
		}
	}
}
