package vector_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/internal/indextest"
	"github.com/continuo-log/continuo/internal/pgtest"
	"github.com/continuo-log/continuo/maintenance"
	"github.com/continuo-log/continuo/recall/vector"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// about makes near vectors of texts with the same first word, and counts what it was asked.
type about struct {
	name    string
	asked   *int
	wrong   string // in texts that it refuses
	refuses string // a user, for now
}

func (a about) Name() string { return a.name }

func (a about) Model() (provider, model string) { return "test", a.name }

func (a about) Embed(ctx context.Context, texts []string) ([][]float32, int, error) {
	if payer, _ := continuo.PayerOf(ctx); a.refuses != "" && payer.UserID == a.refuses {
		return nil, 0, vector.ErrLater
	}
	made := make([][]float32, len(texts))
	for i, text := range texts {
		*a.asked++
		if a.wrong != "" && strings.Contains(text, a.wrong) {
			return nil, 0, vector.ErrRefused
		}
		word, _, _ := strings.Cut(text, " ")
		for k, seed := range []string{word, text} {
			hash := fnv.New64a()
			_, _ = hash.Write([]byte(seed))
			random := rand.New(rand.NewPCG(hash.Sum64(), 1))
			for d := range 64 {
				v := float32(random.NormFloat64())
				if k == 0 {
					made[i] = append(made[i], 3*v)
					continue
				}
				made[i][d] += v
			}
		}
	}
	return made, 0, nil
}

// fixture is a log with a conversation of which one entry is about pianos.
type fixture struct {
	*testing.T
	store maintenance.Store
	log   *continuo.Log
	asked int
	c     continuo.Conversation
}

func newFixture(t *testing.T, store maintenance.Store) *fixture {
	p := &fixture{T: t, store: store, log: continuo.NewLog(store, continuo.LogOptions{})}
	var entries []continuo.Entry
	for i := range 60 {
		text := fmt.Sprintf("topic%d of the day", i)
		if i == 20 {
			text = "piano lessons begin"
		}
		entries = append(entries, continuo.Entry{Role: []continuo.Role{continuo.User, continuo.Assistant}[i%2], Content: continuo.Text(text)})
	}
	var err error
	if p.c, err = p.log.Import(t.Context(), continuo.Conversation{UserID: "ada"}, entries); err != nil {
		t.Fatal(err)
	}
	return p
}

// run indexes and embeds.
func (p *fixture) run(embedder about) {
	p.Helper()
	embedder.asked = &p.asked
	if _, err := (index.Indexer{Log: p.log, Store: p.store}).Run(p.Context(), index.Scope{}, time.Time{}); err != nil {
		p.Fatal(err)
	}
	if err := (vector.Runner{Log: p.log, Store: p.store, Embedder: embedder}).Run(p.Context()); err != nil {
		p.Fatal(err)
	}
}

func (p *fixture) near(embedder about, text string, in ...continuo.Conversation) vector.Near {
	p.Helper()
	embedder.asked = new(int)
	found, err := (&vector.Finder{Store: p.store, Embedder: embedder}).Near(p.Context(), text, in)
	if err != nil {
		p.Fatal(err)
	}
	return found
}

func (p *fixture) expect(what string, near vector.Near, c *continuo.Conversation, seqs ...int64) {
	p.Helper()
	for _, seq := range seqs {
		if near.Of(c, seq) == 0 {
			p.Errorf("%s: entry %d is not near", what, seq)
		}
	}
	if len(seqs) == 0 && near[vector.PlaceOf(c, 21)] != 0 {
		p.Errorf("%s: the entry is near: %v", what, near)
	}
}

func everywhere(t *testing.T, test func(p *fixture)) {
	indextest.Everywhere(t, func(t *testing.T, store maintenance.Store) { test(newFixture(t, store)) })
}

func TestNearEntriesAreFound(t *testing.T) {
	everywhere(t, func(p *fixture) {
		one := about{name: "one"}
		p.run(one)
		p.expect("the conversation", p.near(one, "piano", p.c), &p.c, 21)
		fork, err := p.log.Fork(p.Context(), p.c.ID, 40, continuo.Conversation{})
		if err != nil {
			p.Fatal(err)
		}
		p.expect("a fork", p.near(one, "piano", fork), &fork, 21)
		early, err := p.log.Fork(p.Context(), p.c.ID, 20, continuo.Conversation{})
		if err != nil {
			p.Fatal(err)
		}
		p.expect("a fork from before", p.near(one, "piano", early), &early)
		p.expect("another model", p.near(about{name: "two"}, "piano", p.c), &p.c)

		asked := p.asked
		p.run(one)
		if p.asked != asked {
			p.Errorf("%d texts are embedded again", p.asked-asked)
		}
		p.run(about{name: "two"})
		p.expect("the new model", p.near(about{name: "two"}, "piano", p.c), &p.c, 21)
		p.expect("the old model", p.near(one, "piano", p.c), &p.c)
	})
}

// TestNothingStaysOfARedaction looks for the vector of an entry after a redaction, an archiving of its index, and a deletion.
func TestNothingStaysOfARedaction(t *testing.T) {
	one := about{name: "one"}
	for what, remove := range map[string]func(p *fixture) error{
		"redaction": func(p *fixture) error { _, err := p.log.Redact(p.Context(), p.c, 21, 21, ""); return err },
		"deletion":  func(p *fixture) error { return p.log.Delete(p.Context(), p.c.ID) },
		"index":     func(p *fixture) error { return p.store.ForgetIndex(p.Context(), p.c.ID) },
	} {
		t.Run(what, func(t *testing.T) {
			everywhere(t, func(p *fixture) {
				p.run(one)
				if err := remove(p); err != nil {
					p.Fatal(err)
				}
				left, err := p.store.Vectors(p.Context(), index.VectorQuery{ConversationID: p.c.ID, Model: "one", From: 1, To: math.MaxInt64, Limit: 1000})
				if err != nil {
					p.Fatal(err)
				}
				for _, v := range left {
					if v.Seq == 21 || what != "redaction" {
						p.Errorf("the vector of entry %d is left", v.Seq)
					}
				}
				p.expect(what, p.near(one, "piano", p.c), &p.c)
				p.run(one)
				if what == "redaction" {
					p.expect("after another run", p.near(one, "piano", p.c), &p.c)
				}
			})
		})
	}
}

func TestARefusedTextHoldsNothingUp(t *testing.T) {
	everywhere(t, func(p *fixture) {
		one := about{name: "one", wrong: "topic7 "}
		p.run(one)
		p.expect("beside a refused text", p.near(one, "piano", p.c), &p.c, 21)
		waiting, err := p.store.Unembedded(p.Context(), index.UnembeddedQuery{Model: "one", Limit: 10})
		if err != nil || len(waiting) > 0 {
			p.Errorf("%v still wait, %v", waiting, err)
		}
	})
}

// TestEachUserIsChargedForItsOwn: a runner's requests name the user of the conversation. One whose requests are refused holds up no other
// user, and its entries get their vectors later.
func TestEachUserIsChargedForItsOwn(t *testing.T) {
	everywhere(t, func(p *fixture) {
		bos, err := p.log.Import(p.Context(), continuo.Conversation{UserID: "bo"}, []continuo.Entry{{Role: continuo.User, Content: continuo.Text("piano of bo")}})
		if err != nil {
			p.Fatal(err)
		}
		vectors := func(id string) int {
			found, err := p.store.Vectors(p.Context(), index.VectorQuery{ConversationID: id, Model: "one", From: 1, To: math.MaxInt64, Limit: 1000})
			if err != nil {
				p.Fatal(err)
			}
			return len(found)
		}
		if _, err := (index.Indexer{Log: p.log, Store: p.store}).Run(p.Context(), index.Scope{}, time.Time{}); err != nil {
			p.Fatal(err)
		}
		for _, refused := range []string{"ada", "bo"} {
			one := about{name: "one", asked: &p.asked, refuses: refused}
			if err := (vector.Runner{Log: p.log, Store: p.store, Embedder: one}).Run(p.Context()); refused == "ada" && !errors.Is(err, vector.ErrLater) {
				p.Errorf("where ada is refused the runner returns %v", err)
			}
			if isAda := refused == "ada"; vectors(bos.ID) != 1 || vectors(p.c.ID) > 0 == isAda {
				p.Errorf("where %s is refused there are %d vectors of bo and %d of ada", refused, vectors(bos.ID), vectors(p.c.ID))
			}
		}
	})
}
