package index_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/internal/indextest"
)

// BenchmarkSearch searches conversations of 1 000 entries and of 1 000 000, for words that are in all of them, in a
// few and in none. The large one is made when CONTINUO_LONG=1 is set, which takes minutes; with CONTINUO_SCRATCH it is kept in
// that folder for the next time.
func BenchmarkSearch(b *testing.B) {
	sizes := []int64{1_000, 10_000}
	if os.Getenv("CONTINUO_LONG") != "" {
		sizes = append(sizes, 1_000_000)
	}
	for _, size := range sizes {
		p := newFixture(b, indextest.Kept(b, fmt.Sprintf("search-%d", size)))
		c := p.long(size)
		for name, request := range map[string]index.Request{
			"rare": {Query: "zebra"}, "common": {Query: "words"}, "two": {Query: "words zebra"}, "phrase": {Query: `"number seven"`},
			"common phrase": {Query: `"and more to say"`}, "absent phrase": {Query: `"more words"`}, "none": {Query: "nowhere"},
		} {
			for scope, conversation := range map[string]*continuo.Conversation{"project": nil, "conversation": &c} {
				request.Conversation, request.ProjectID = conversation, continuo.DefaultProject
				b.Run(fmt.Sprintf("%d/%s/%s", size, name, scope), func(b *testing.B) {
					b.ReportAllocs()
					found := 0
					for b.Loop() {
						found = len(p.search(request).Items)
					}
					b.ReportMetric(float64(found), "found")
				})
			}
		}
		b.Run(fmt.Sprintf("%d/right after an append", size), func(b *testing.B) {
			for b.Loop() {
				needle := fmt.Sprintf("needle%dx", c.LastSeq)
				c = p.append(c, userEntries(needle)...)
				if found := p.search(index.Request{Query: needle, Conversation: &c}); len(found.Items) != 1 {
					b.Fatalf("found %s", names(found.Items))
				}
			}
		})
	}
}

// long is the indexed conversation of so many entries, made when it is not there. One entry of 1 000 has the word
// zebra, up to 5 000 of them.
func (p *fixture) long(size int64) continuo.Conversation {
	p.Helper()
	c, err := p.log.Find(p.Context(), continuo.Scope{ProjectID: continuo.DefaultProject}, "long")
	if err != nil {
		if c, err = p.log.Create(p.Context(), continuo.Conversation{Key: "long", Title: "long"}); err != nil {
			p.Fatal(err)
		}
	}
	const batch = 1000
	for c.LastSeq < size {
		entries := make([]continuo.Entry, batch)
		for i := range entries {
			n := c.LastSeq + int64(i)
			text := fmt.Sprintf("entry %d has words, number w%d of group%d %s", n, n%7919, n%97, strings.Repeat("and more to say ", int(n%5)))
			if i == 500 && (size < 100_000 || n%200_000 < 1000) {
				text += " zebra number seven"
			}
			entries[i] = continuo.Entry{Role: []continuo.Role{continuo.User, continuo.Assistant}[n%2], Content: continuo.Text(text), CreatedAt: p.now.Add(time.Duration(n) * time.Millisecond)}
		}
		c = p.append(c, entries...)
	}
	began := time.Now()
	p.run(index.Indexer{}, index.Scope{ConversationID: c.ID})
	p.Logf("%d entries: indexed in %v", c.LastSeq, time.Since(began).Round(time.Millisecond))
	return c
}
