package summary

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/continuo-log/continuo/engine/catalog"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/render"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// summarizer shortens messages with a model.
type summarizer struct {
	upstream catalog.Upstream
	logger   *slog.Logger
}

// NewSummarizer returns the summarizer that asks a model.
func NewSummarizer(upstream catalog.Upstream, logger *slog.Logger) summarizer {
	return summarizer{upstream, logger}
}

// summaryRules is the system message for summaries.
//
//go:embed summarize.md
var summaryRules string

// Summarize is part of task.Summarizer.
func (s summarizer) Summarize(ctx context.Context, text string, most int) (summary string, err error) {
	defer func() {
		if cause := recover(); cause != nil { // in a goroutine without another recover
			s.logger.ErrorContext(ctx, "summary_failed", "error", fmt.Sprint(cause), "stack", string(debug.Stack()))
			err = fmt.Errorf("summarize: %v", cause)
		}
	}()
	return s.ask(ctx, summaryRules, text, most)
}

const (
	// summaryPatience bounds the time of a model for a summary.
	summaryPatience = 30 * time.Second
	// maxSummaryAnswer bounds the bytes of an answer: several times what a summary may have.
	maxSummaryAnswer = 64 << 10
)

// errEndless says that a model does not come to an end: what it repeats is no summary.
var errEndless = fmt.Errorf("%w: the model answered more than %d bytes", continuo.ErrInvalid, maxSummaryAnswer)

// ask has the model process a text by rules, in which {{most}} is replaced by the maximum number of characters.
func (s summarizer) ask(ctx context.Context, rules, text string, most int) (string, error) {
	body, err := s.request(strings.TrimSpace(strings.ReplaceAll(rules, "{{most}}", strconv.Itoa(most))), text)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, summaryPatience)
	defer cancel()
	var summary strings.Builder
	for delta, err := range s.upstream.Model.Stream(ctx, body) {
		if err != nil {
			return "", err
		}
		summary.WriteString(delta.Text)
		if summary.Len() > maxSummaryAnswer {
			return "", errEndless
		}
	}
	return strings.TrimSpace(summary.String()), nil
}

// request is the request body with the rules and the text.
func (s summarizer) request(rules, text string) ([]byte, error) {
	info := s.upstream.Model.Info()
	envelope := continuo.Envelope{
		Model: info.Name, System: []string{rules}, MaxOutputTokens: s.upstream.MaxOutputTokens, Temperature: s.upstream.Temperature, Stream: true,
		NoEncryptedReasoning: true, // nothing is sent back
	}
	if _, ok := info.Transcript(); ok {
		var err error
		if envelope.Instruction, err = render.Instruction(nil); err != nil {
			return nil, err
		}
	}
	message := window.Message{Seq: 1, Role: continuo.User, Content: continuo.Text(text)} // without a seq it would mark a gap
	return turn.Render(envelope, &window.Plan{Messages: []window.Message{message}}, info)
}
