package search_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/internal/indextest"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/recall"
	"github.com/continuo-log/continuo/recall/lookup"
)

// BenchmarkRecall ranks in a conversation of 1 000 and of 10 000 entries, with CONTINUO_LONG=1 also of 100 000 and of
// 1 000 000, and says how many entries a second were indexed.
func BenchmarkRecall(b *testing.B) {
	sizes := []int64{1_000, 10_000}
	if os.Getenv("CONTINUO_LONG") != "" {
		sizes = append(sizes, 100_000, 1_000_000)
	}
	for _, size := range sizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			indextest.OnDisk(b, func(b *testing.B, store maintenance.Store) { benchRecall(b, store, size) })
		})
	}
}

func benchRecall(b *testing.B, store maintenance.Store, size int64) {
	p := newFixture(b, store)
	c := p.talk(size)
	began := time.Now()
	if _, err := (index.Indexer{Log: p.log, Store: p.store}).Run(b.Context(), index.Scope{}, time.Time{}); err != nil {
		b.Fatal(err)
	}
	b.Logf("%d entries indexed, %.0f a second", size, float64(size)/time.Since(began).Seconds())
	question := "When did Gina decide to sell the lantern of the harbour to the carpenter?"
	for name, query := range map[string]string{
		"search": question, "phrase": `"and the lantern"`, "absent phrase": `"lantern and"`, "rare": "word701", "common": "told",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if found := p.search(index.Request{Query: query, Conversation: &c, Patience: -1}); len(found.Items) == 0 && name != "absent phrase" {
					b.Fatal("nothing is found")
				}
			}
		})
	}
	b.Run("before a turn", func(b *testing.B) {
		finder := lookup.Finder{Log: p.log, Store: p.store, Lists: &lookup.TermLists{}, Entries: &lookup.Entries{}, Analyzer: &recall.Analyzer{}}
		for b.Loop() {
			if found, err := finder.Find(b.Context(), lookup.Request{Text: question, Conversation: c, Candidates: 100}); err != nil || len(found) == 0 {
				b.Fatal("nothing is found", err)
			}
		}
	})
	b.Run("in memory", func(b *testing.B) {
		var documents []recall.Document
		for entry, err := range p.log.ReadShared(b.Context(), c, continuo.Range{From: 1, To: 800}) {
			if err != nil {
				b.Fatal(err)
			}
			documents = append(documents, recall.Document{ConversationID: c.ID, Seq: entry.Seq, Role: entry.Role, Text: entry.Content.String(), Tokens: entry.Tokens})
		}
		for b.Loop() {
			recall.Rank(question, recall.Statistics{}, documents)
		}
	})
}

// talk is a conversation of so many entries, whose words are as rare as those of languages.
func (p *fixture) talk(size int64) continuo.Conversation {
	p.Helper()
	c, err := p.log.Create(p.Context(), continuo.Conversation{Key: "long"})
	if err != nil {
		p.Fatal(err)
	}
	subjects := strings.Fields("lantern harbour carpenter garden piano river engine winter letter window copper bridge")
	for n := int64(0); n < size; {
		batch := make([]continuo.Entry, min(1_000, size-n))
		for i := range batch {
			text := fmt.Sprintf("Entry %d: Gina told us about word%d and word%d", n, n%7919, n*n%97)
			for k, subject := range subjects {
				if (n*31+int64(k)*17)%(int64(k+2)*int64(k+2)*9) == 0 {
					text += " and the " + subject
				}
			}
			batch[i] = continuo.Entry{Role: []continuo.Role{continuo.User, continuo.Assistant}[n%2], Content: continuo.Text(text), CreatedAt: p.now.Add(time.Duration(n) * time.Second)}
			n++
		}
		if _, err := p.log.Append(p.Context(), c.ID, batch, continuo.AppendOptions{}); err != nil {
			p.Fatal(err)
		}
	}
	if c, err = p.log.Conversation(p.Context(), c.ID); err != nil {
		p.Fatal(err)
	}
	return c
}
