package summary

import (
	"log/slog"
	"strings"

	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/engine/internal/brief"
	"github.com/continuo-log/continuo/engine/internal/charged"
	"github.com/continuo-log/continuo/engine/internal/lifecycle"
	"github.com/continuo-log/continuo/engine/metrics"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/token"
	"github.com/continuo-log/continuo/turn"
)

// Summaries makes the summaries that views and roles need.
type Summaries struct {
	log     *continuo.Log
	catalog *catalog.Catalog
	metrics *metrics.Metrics
	life    *lifecycle.Lifecycle
	keeper  *turn.Keeper
	options Options
	pending lifecycle.Latest[string, job] // by the conversation's id
	working chan struct{}                 // has an element for each summary that is made in the background
}

// Options configures summaries.
type Options struct {
	Summarizer string // the model that makes them; "": the built-in one, which picks sentences
	Requests   charged.Requests
	Logger     *slog.Logger
	LogText    bool
}

// New makes Summaries.
func New(log *continuo.Log, catalog *catalog.Catalog, life *lifecycle.Lifecycle, keeper *turn.Keeper, metrics *metrics.Metrics, options Options) *Summaries {
	return &Summaries{log: log, catalog: catalog, metrics: metrics, life: life, keeper: keeper, options: options, working: make(chan struct{}, maxWorking)}
}

// The bounds of a summary's size, in characters: it is a tenth of the view's limits, within these bounds.
const (
	leastSummary = 400
	mostSummary  = 4000
)

// Size is the maximum size of a summary.
type Size struct {
	Chars   int
	Tokens  int // 0 for any number
	Counter continuo.Counter
}

func SizeFor(limits continuo.Size, modelName string) Size {
	size := Size{Chars: mostSummary}
	size.Counter, _ = token.ForModel(modelName)
	const tokenChars = 4 // of English
	for _, limit := range []int{limits.Chars, limits.Tokens * tokenChars} {
		if limit > 0 {
			size.Chars = max(min(size.Chars, limit/10), leastSummary)
		}
	}
	if limits.Tokens > 0 {
		size.Tokens = size.Counter.Count(size.Filler())
	}
	return size
}

// Filler is a text of the maximum size, to plan with a summary before it is made: a real one is no larger.
func (s Size) Filler() string {
	const word = "and "
	return strings.TrimSpace(strings.Repeat(word, s.Chars/len(word)))
}

// Cut shortens a text to the size.
func (s Size) Cut(text string) string {
	chars := s.Chars
	for text = brief.Shorten(text, chars); s.Tokens > 0 && chars > 1; text = brief.Shorten(text, chars) {
		tokens := s.Counter.Count(text)
		if tokens <= s.Tokens {
			break
		}
		chars = min(chars-1, chars*s.Tokens/tokens)
		chars = max(chars, 1)
	}
	return strings.TrimSpace(text)
}
