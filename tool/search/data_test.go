package search_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext"
	"github.com/continuo-log/continuo/interchange"
	"github.com/continuo-log/continuo/store/storetest"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/tool/search"
)

// dataFiles are the shared conversations.
func dataFiles(t testing.TB) []string {
	t.Helper()
	folder := os.Getenv("CONTINUO_DATA")
	if folder == "" {
		folder = filepath.Join("..", "..", "..", "shared", "data")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.jsonl.gz"))
	if err != nil || len(files) == 0 {
		t.Skipf("SKIPPED: there are no shared conversations at %s: set CONTINUO_DATA to their folder (%v)", folder, err)
	}
	return files
}

// conversations reads a file's conversations, as entries that a log takes, until each returns false.
func conversations(t testing.TB, path string, each func(entries []continuo.Entry) bool) {
	t.Helper()
	packed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for document, err := range interchange.Read(path, bytes.NewReader(packed), interchange.Options{}) {
		if err == nil && len(document.Entries) > 0 && !each(document.Entries) {
			return
		}
	}
}

// words are what could be looked for in an entry: a run of letters, or a few characters of one without spaces.
func words(entry *continuo.Entry, random *rand.Rand) string {
	fields := strings.FieldsFunc(entry.Content.String(), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if len(fields) == 0 {
		return ""
	}
	at := random.IntN(len(fields))
	runes := []rune(fields[at])
	return string(runes[:min(len(runes), 12)])
}

// plainly says whether an entry matches, by another way than the tool takes: no index, and for an expression no
// regular expression.
func plainly(entry *continuo.Entry, looked []string, regex bool) bool {
	texts := fulltext.TextsOf(entry)
	if regex {
		return strings.Contains(strings.ToLower(strings.Join(texts, "\n")), strings.ToLower(looked[0]))
	}
	query, err := fulltext.ParseQuery(strings.Join(looked, " "))
	if err != nil {
		return false
	}
	_, ok := query.Match(texts...)
	return ok
}

// TestSharedConversationsAreSearchedWhole looks for words of real conversations and compares with a plain
// search through all entries.
func TestSharedConversationsAreSearchedWhole(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	queries, matches := 0, 0
	for _, path := range dataFiles(t) {
		left := 4 // conversations of this file
		conversations(t, path, func(entries []continuo.Entry) bool {
			p := newFixture(t, entries...)
			for n := range 4 {
				looked := []string{words(&entries[random.IntN(len(entries))], random), words(&entries[random.IntN(len(entries))], random)}
				found := p.comparesPlainly(filepath.Base(path), entries, looked[:1+n%2], n == 2)
				queries, matches = queries+1, matches+found
			}
			left--
			return left > 0
		})
	}
	t.Logf("%d queries, %d matches", queries, matches)
	if queries < 200 || matches < 1000 {
		t.Errorf("only %d queries with %d matches: the test shows little", queries, matches)
	}
}

// comparesPlainly looks for words and returns how many entries it found.
func (p *fixture) comparesPlainly(file string, entries []continuo.Entry, looked []string, regex bool) int {
	p.Helper()
	if slices.Contains(looked, "") {
		return 0
	}
	want := map[string]bool{}
	for i := range entries {
		if plainly(&entries[i], looked, regex) {
			want[fmt.Sprintf("#%d", i+1)] = true
		}
	}
	got := p.all(strings.Join(looked, " "), regex, 100)
	seen := map[string]bool{}
	for i, seq := range got {
		if seen[seq] || regex && (!want[seq] || i > 0 && number(seq) >= number(got[i-1])) {
			p.Errorf("%s: %q found %s, of %v", file, looked, seq, got)
		}
		seen[seq] = true
	}
	for seq := range want { // with words, those of entries that have only some come as well
		if !seen[seq] && len(got) < 100 {
			p.Errorf("%s: %q found %d entries, but not %s", file, looked, len(got), seq)
		}
	}
	return len(got)
}

// all pages through a search until it ends or has found enough.
func (p *fixture) all(text string, regex bool, enough int) []string {
	p.Helper()
	var found []string
	for before := ""; len(found) < enough; {
		result := p.search(fmt.Sprintf(`{"query":%q,"regex":%t,"limit":50%s}`, text, regex, before))
		page, ended := seqs(result)
		if result.Failed || !utf8.ValidString(result.Content) || utf8.RuneCountInString(result.Content) > 8000 {
			p.Fatalf("%q: failed %t, %d bytes: %.500s", text, result.Failed, len(result.Content), result.Content)
		}
		found = append(found, strings.Fields(page)...)
		if ended || page == "" {
			return found
		}
		before = fmt.Sprintf(`,"before":%d`, number(found[len(found)-1]))
		if !regex {
			before = fmt.Sprintf(`,"skip":%d`, len(found))
		}
	}
	return found[:enough]
}

func number(seq string) (n int64) {
	_, _ = fmt.Sscanf(seq, "#%d", &n)
	return n
}

// BenchmarkSearchThrough looks for what is not there in the longest shared conversation of the folder.
func BenchmarkSearchThrough(b *testing.B) {
	var longest []continuo.Entry
	size := 0
	for _, path := range dataFiles(b) {
		conversations(b, path, func(entries []continuo.Entry) bool {
			chars := 0
			for i := range entries {
				chars += len(entries[i].Content.String())
			}
			if chars > size {
				longest, size = entries, chars
			}
			return true
		})
	}
	store := storetest.NewMemory()
	log := continuo.NewLog(store, continuo.LogOptions{})
	conversation, err := log.Import(b.Context(), continuo.Conversation{}, longest)
	if err != nil {
		b.Fatal(err)
	}
	for _, query := range []string{`{"query":"zyxwvu"}`, `{"query":"the zyxwvu"}`, `{"query":"\"no such phrase\""}`, `{"query":"没有的词"}`, `{"query":"zyx[a-z]+vu","regex":true}`} {
		b.Run(query, func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				begin := time.Now()
				result := search.Tool{Log: log, Index: store}.Run(b.Context(), tool.Call{Conversation: conversation, Arguments: query})
				if result.Failed || !strings.Contains(result.Content, "nothing matches") {
					b.Fatalf("%v: %+v", time.Since(begin), result)
				}
			}
		})
	}
}
