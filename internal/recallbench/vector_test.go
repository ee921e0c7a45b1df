package recallbench

import (
	"context"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"testing"
)

// planted makes a vector of each text from its hash, and of a question the mean of the vectors of its evidence, with noise.
type planted struct {
	evidence map[string][]string // texts, by question
	noise    float32
	isDown   bool
}

func (p planted) Name() string { return "planted" }

const (
	plantedDimensions = 256
	plantedBytes      = 200 // of a text, whose end the embedder is not sent
)

func direction(text string) []float32 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(text[:min(len(text), plantedBytes)]))
	random := rand.New(rand.NewPCG(hash.Sum64(), 1))
	made := make([]float32, plantedDimensions)
	for i := range made {
		made[i] = float32(random.NormFloat64())
	}
	return made
}

func (p planted) Model() (provider, model string) { return "test", "planted" }

func (p planted) Embed(_ context.Context, texts []string) ([][]float32, int, error) {
	if p.isDown {
		return nil, 0, errors.New("there is no server")
	}
	made := make([][]float32, len(texts))
	for i, text := range texts {
		made[i] = direction(text)
		about := p.evidence[text]
		if len(about) == 0 {
			continue
		}
		for k := range made[i] {
			made[i][k] *= p.noise
		}
		for _, one := range about {
			for k, v := range direction(one) {
				made[i][k] += v
			}
		}
	}
	return made, 0, nil
}

// TestEmbeddings measures what vectors add where they are right, and that they take nothing away where they are wrong or
// cannot be made.
func TestEmbeddings(t *testing.T) {
	for name, gain := range map[string]float64{"locomo.jsonl.gz": .03, "beam.jsonl.gz": .03} {
		conversations := dataFile(t, name)
		if os.Getenv("CONTINUO_LONG") == "" {
			conversations = conversations[:1]
		}
		right := evidenceOf(conversations)
		share := func(options Options) float64 {
			options.Settings = []Setting{{Tokens: 2_000}}
			found, err := Measure(t.Context(), conversations, options)
			if err != nil {
				t.Fatal(err)
			}
			recall, full := found[0][""].Means()
			t.Logf("%s %v: %.3f / %.3f", name, options.Embedder != nil, recall, full)
			return recall
		}
		words := share(Options{})
		if with := share(Options{Embedder: planted{evidence: right, noise: 1}}); with < words+gain && with < .99 {
			t.Errorf("%s: right vectors give %.3f, words alone %.3f", name, with, words)
		}
		if with := share(Options{Embedder: planted{}}); with < words-.01 {
			t.Errorf("%s: vectors that say nothing give %.3f, words alone %.3f", name, with, words)
		}
		if with := share(Options{Embedder: planted{isDown: true}}); with != words {
			t.Errorf("%s: without a server %.3f, words alone %.3f", name, with, words)
		}
	}
}
