package memories

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine/catalog"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/memory"
	"github.com/continuo-log/continuo/render"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// byModel extracts with a model. What it answers is only a proposal: a fact whose quote does not stand in the named message
// of the user is dropped, and the log would refuse it.
type byModel struct {
	upstream catalog.Upstream
	model    string // its name in the settings
}

func (b byModel) name() string { return "model " + b.model }

//go:embed extract.md
var extractRules string

const (
	// modelPatience bounds the time of the model for one chunk.
	modelPatience = 60 * time.Second
	// maxModelAnswer bounds the bytes of its answer; the rest is not read.
	maxModelAnswer = 256 << 10
	// maxPerMessage bounds the facts of one message, maxModelConfidence how sure a model can be.
	maxPerMessage      = 12
	maxModelConfidence = 0.9
)

// shownMessage is a message as the model is shown it.
type shownMessage struct {
	Seq  int64         `json:"seq"`
	Role continuo.Role `json:"role"`
	Time time.Time     `json:"time"`
	Text string        `json:"text"`
}

func (b byModel) extract(ctx context.Context, entries []continuo.Entry) (map[int64][]memory.Candidate, error) {
	var shown []shownMessage
	users := map[int64]*continuo.Entry{}
	for i := range entries {
		e := &entries[i]
		if text := e.Content.String(); (e.Role == continuo.User || e.Role == continuo.Assistant) && strings.TrimSpace(text) != "" {
			shown = append(shown, shownMessage{e.Seq, e.Role, e.CreatedAt, text})
		}
		if e.Role == continuo.User {
			users[e.Seq] = e
		}
	}
	if len(users) == 0 {
		return nil, nil
	}
	answer, err := b.ask(ctx, extractRules, string(rawjson.MustMarshal(shown)))
	if err != nil {
		return nil, fmt.Errorf("ask %s for facts: %w", b.model, err)
	}
	return proposals(answer, users), nil
}

// byModel is the extractor that asks the model of the settings. Its requests are charged to the memory's user and project,
// and to no key: they read what several callers have said.
func (m *Memories) byModel(ctx context.Context, conversation continuo.Conversation) (context.Context, byModel, error) {
	upstream, err := m.catalog.Upstream(m.options.Extractor)
	if err != nil {
		return ctx, byModel{}, err
	}
	upstream.Model = m.options.Requests.Model(upstream.Model)
	payer := continuo.Payer{ProjectID: conversation.ProjectID, UserID: conversation.UserID}
	return continuo.WithPayer(ctx, payer), byModel{upstream, m.options.Extractor}, nil
}

// ask sends data to the model with rules that say what to do with it.
func (b byModel) ask(ctx context.Context, rules, messages string) (string, error) {
	info := b.upstream.Model.Info()
	envelope := continuo.Envelope{
		Model: info.Name, System: []string{strings.TrimSpace(rules)}, MaxOutputTokens: b.upstream.MaxOutputTokens,
		Temperature: b.upstream.Temperature, Stream: true, NoEncryptedReasoning: true,
	}
	if _, ok := info.Transcript(); ok {
		var err error
		if envelope.Instruction, err = render.Instruction(nil); err != nil {
			return "", err
		}
	}
	message := window.Message{Seq: 1, Role: continuo.User, Content: continuo.Text(messages)}
	body, err := turn.Render(envelope, &window.Plan{Messages: []window.Message{message}}, info)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, modelPatience)
	defer cancel()
	var answer strings.Builder
	for delta, err := range b.upstream.Model.Stream(ctx, body) {
		if err != nil {
			return "", err
		}
		if answer.WriteString(delta.Text); answer.Len() > maxModelAnswer {
			break
		}
	}
	return answer.String(), nil
}

// proposals reads an answer. Whatever is not as it must be is dropped: an answer without any JSON has no facts.
func proposals(answer string, users map[int64]*continuo.Entry) map[int64][]memory.Candidate {
	begin, end := strings.Index(answer, "{"), strings.LastIndex(answer, "}")
	if begin < 0 || end < begin {
		return nil
	}
	var read struct {
		Facts []struct {
			Seq                                   int64
			Quote, Text, Kind, Subject, Attribute string
			Confidence                            float64
		}
	}
	if json.Unmarshal([]byte(answer[begin:end+1]), &read) != nil {
		return nil
	}
	found := map[int64][]memory.Candidate{}
	for _, fact := range read.Facts {
		entry, kind, text := users[fact.Seq], continuo.FactKind(fact.Kind), strings.TrimSpace(fact.Text)
		switch {
		case entry == nil || strings.TrimSpace(fact.Quote) == "" || !continuo.Quotes(entry, fact.Quote):
			continue
		case text == "" || len(text) > continuo.MaxFactChars || len(fact.Quote) > continuo.MaxFactChars || len(fact.Subject)+len(fact.Attribute) > 400:
			continue
		case !slices.Contains(continuo.FactKinds, kind) || len(found[fact.Seq]) == maxPerMessage:
			continue
		}
		if !memory.Supports(entry.Content.String(), text) { // a true quote does not make the model's words true
			text = strings.TrimSpace(fact.Quote)
		}
		subject := fact.Subject
		if subject == "" {
			subject = memory.UserSubject
		}
		found[fact.Seq] = append(found[fact.Seq], memory.Candidate{
			Text: text, Quote: fact.Quote, Kind: kind, Subject: subject, Attribute: fact.Attribute,
			Confidence: min(max(fact.Confidence, 0), maxModelConfidence),
			ValidTo:    cmp.Or(memory.Ending(kind, text, entry.CreatedAt), memory.Ending(kind, fact.Quote, entry.CreatedAt)),
		})
	}
	return found
}
