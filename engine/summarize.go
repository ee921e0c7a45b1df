package engine

import (
	"context"
	_ "embed"
	"strconv"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/turn"
)

// summarizer has a model shorten messages.
type summarizer struct{ upstream Upstream }

// summaryRules tell the model what a summary is.
//
//go:embed summarize.md
var summaryRules string

// Summarize is part of task.Summarizer.
func (s summarizer) Summarize(ctx context.Context, text string, most int) (string, error) {
	return s.ask(ctx, summaryRules, text, most)
}

// maxSummaryAnswer bounds the bytes of an answer; what comes after it is not read.
const maxSummaryAnswer = 64 << 10

// ask has the model make something of a text by rules, which are told how many characters it may have.
func (s summarizer) ask(ctx context.Context, rules, text string, most int) (string, error) {
	info := s.upstream.Model.Info()
	rules = strings.TrimSpace(strings.ReplaceAll(rules, "{{most}}", strconv.Itoa(most)))
	envelope := continuo.Envelope{Model: info.Name, System: []string{rules}, MaxOutputTokens: s.upstream.MaxOutputTokens, Temperature: s.upstream.Temperature, Stream: true}
	plan := &continuo.Plan{Messages: []continuo.Message{{Role: continuo.User, Content: continuo.Text(text)}}}
	body, err := turn.Render(envelope, plan, info)
	if err != nil {
		return "", err
	}
	var said strings.Builder
	for delta, err := range s.upstream.Model.Stream(ctx, body) {
		if err != nil {
			return "", err
		}
		said.WriteString(delta.Text)
		if said.Len() > maxSummaryAnswer {
			break
		}
	}
	return strings.TrimSpace(said.String()), nil
}
