package memories

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/audit"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/memory"
)

// derivation names the mark with the time of the newest derivation, in microseconds.
const derivation = "memory derive"

// deriveConversations bounds how many conversations are counted, the newest first.
const deriveConversations = 500

// Derive adds the patterns that at least three messages of at least two conversations of a user have in common: what the
// built-in counting of topics, tools, times and repeated instructions and corrections finds, and what the model of the
// settings finds in the facts. It returns the facts that are new. Messages of which a pattern was forgotten are not counted
// again. It fails with ErrDisabled.
func (m *Memories) Derive(ctx context.Context, scope continuo.Scope, owner Owner) ([]Fact, error) {
	if err := owner.checkWritable(scope); err != nil {
		return nil, err
	}
	if !m.options.Enabled {
		return nil, ErrDisabled
	}
	if owner.Project {
		return nil, fmt.Errorf("derive: %w: patterns are of a user", continuo.ErrInvalid)
	}
	if err := m.Extract(ctx, scope, owner); err != nil {
		return nil, err
	}
	conversation, err := m.find(ctx, scope, owner)
	if err != nil {
		return nil, err
	}
	audit.About(ctx, conversation.ID)
	counted, err := m.count(ctx, conversation)
	if err != nil {
		return nil, err
	}
	s := &scanning{m: m, memory: conversation}
	if err := s.load(ctx); err != nil {
		return nil, err
	}
	added, err := s.derive(ctx, counted, memory.ByCounts)
	if err == nil && m.options.Extractor != "" {
		var more []Fact
		more, err = m.deriveByModel(ctx, s)
		added = append(added, more...)
	}
	if err != nil {
		return added, err
	}
	if len(added) > 0 {
		err = m.updateProfile(ctx, conversation)
	}
	if err == nil {
		_, err = m.log.AdvanceMark(ctx, conversation.ID, derivation, continuo.Mark{Seq: m.log.Now().UnixMicro()})
	}
	return added, err
}

// deriveWhenDue derives for a user after a turn, where the settings say how often and that time has passed.
func (m *Memories) deriveWhenDue(ctx context.Context, user continuo.Scope) error {
	if m.options.DeriveEvery <= 0 {
		return nil
	}
	scope, owner := continuo.Scope{ProjectID: user.ProjectID}, Owner{UserID: user.UserID}
	conversation, err := m.find(ctx, scope, owner)
	if err != nil {
		return err
	}
	mark, err := m.log.Mark(ctx, conversation.ID, derivation)
	if err != nil && !errors.Is(err, continuo.ErrNotFound) {
		return err
	}
	if m.log.Now().Sub(time.UnixMicro(mark.Seq)) < m.options.DeriveEvery {
		return nil
	}
	_, err = m.Derive(ctx, scope, owner)
	return err
}

// count counts what the user of a memory has said.
func (m *Memories) count(ctx context.Context, conversation continuo.Conversation) ([]memory.Pattern, error) {
	said, err := m.changed(ctx, conversation, time.Time{})
	if err != nil {
		return nil, err
	}
	s := &scanning{m: m, memory: conversation}
	if err := s.load(ctx); err != nil {
		return nil, err
	}
	var counts memory.Counts
	said = said[:min(len(said), deriveConversations)]
	for _, c := range slices.Backward(said) { // the oldest first: the newest sources are kept
		skipped := map[string]bool{}
		for from := c.ForkSeq + 1; from <= c.LastSeq; {
			chunk, last, err := s.chunk(ctx, c, from, skipped)
			if err != nil {
				return nil, fmt.Errorf("read conversation %s for memory: %w", c.ID, err)
			}
			for i := range chunk {
				if !s.removed[source{c.ID, chunk[i].Seq}] {
					counts.Add(&chunk[i])
				}
			}
			from = last + 1
		}
	}
	return counts.Patterns(), nil
}

// derive appends the patterns that the memory does not have.
func (s *scanning) derive(ctx context.Context, patterns []memory.Pattern, by string) (added []Fact, err error) {
	for _, pattern := range patterns {
		if memory.Same(s.known, memory.UserSubject, pattern.Text, s.m.log.Now()) != nil {
			continue
		}
		entry := continuo.Entry{
			Role: continuo.System, PartType: continuo.PartFact, Content: continuo.Text(pattern.Text),
			Fact: &continuo.Fact{
				Kind: continuo.FactOther, Subject: memory.UserSubject, Attribute: pattern.Attribute, ValidFrom: s.m.log.Now(), Sources: pattern.Sources,
				Confidence: derivedConfidence, Derived: true, By: by,
			},
		}
		stored, err := s.m.log.Append(ctx, s.memory.ID, []continuo.Entry{entry}, continuo.AppendOptions{})
		var rule *continuo.RuleError
		if errors.As(err, &rule) && rule.Rule == continuo.RuleFact {
			s.m.options.Logger.InfoContext(ctx, "fact_refused", "by", by, "error", rule.Error())
			continue // a source was removed meanwhile
		}
		if err != nil {
			return added, err
		}
		known := memory.Fold(stored)
		s.known = append(s.known, known...)
		for i := range known {
			added = append(added, factOf(s.memory, &known[i]))
		}
	}
	return added, nil
}

// derivedConfidence is how sure a pattern is.
const derivedConfidence = 0.6

//go:embed derive.md
var deriveRules string

// shownFact is a fact as the model is shown it.
type shownFact struct {
	ID   int64             `json:"id"`
	Kind continuo.FactKind `json:"kind"`
	Text string            `json:"text"`
}

// maxShownFacts bounds the facts that the model is shown, the newest.
const maxShownFacts = 300

// deriveByModel has the model of the settings find patterns in the facts. A pattern has the quotes of the facts that it names:
// a model cannot add sources.
func (m *Memories) deriveByModel(ctx context.Context, s *scanning) ([]Fact, error) {
	ctx, by, err := m.byModel(ctx, s.memory)
	if err != nil {
		return nil, err
	}
	return s.deriveBy(ctx, by)
}

func (s *scanning) deriveBy(ctx context.Context, by byModel) ([]Fact, error) {
	shown, now := []shownFact{}, s.m.log.Now()
	for i := range s.known {
		if k := &s.known[i]; k.Holds(now) && !k.Derived && len(k.Sources) > 0 {
			shown = append(shown, shownFact{k.Seq, k.Kind, k.Text})
		}
	}
	if len(shown) < continuo.MinDerivedSources {
		return nil, nil
	}
	shown = shown[max(0, len(shown)-maxShownFacts):]
	answer, err := by.ask(ctx, deriveRules, string(rawjson.MustMarshal(shown)))
	if err != nil {
		return nil, fmt.Errorf("ask %s for patterns: %w", by.model, err)
	}
	return s.derive(ctx, s.proposed(answer), by.name())
}

// proposed reads the patterns of an answer. What names facts that were not shown, or too few, is dropped.
func (s *scanning) proposed(answer string) (patterns []memory.Pattern) {
	begin, end := strings.Index(answer, "{"), strings.LastIndex(answer, "}")
	if begin < 0 || end < begin {
		return nil
	}
	var read struct {
		Patterns []struct {
			Text  string
			Facts []int64
		}
	}
	if json.Unmarshal([]byte(answer[begin:end+1]), &read) != nil {
		return nil
	}
	for _, proposal := range read.Patterns {
		pattern := memory.Pattern{Text: strings.TrimSpace(proposal.Text)}
		said, conversations := map[source]bool{}, map[string]bool{}
		for _, id := range proposal.Facts {
			k := memory.Find(s.known, id)
			if k == nil || !k.Holds(s.m.log.Now()) || k.Derived {
				continue
			}
			for _, from := range k.Sources {
				if at := (source{from.ConversationID, from.Seq}); !said[at] && len(pattern.Sources) < continuo.MaxFactSources {
					said[at], conversations[from.ConversationID] = true, true
					pattern.Sources = append(pattern.Sources, from)
				}
			}
		}
		isEnough := len(said) >= continuo.MinDerivedSources && len(conversations) >= continuo.MinDerivedConversations
		if isEnough && pattern.Text != "" && len(pattern.Text) <= continuo.MaxFactChars {
			patterns = append(patterns, pattern)
		}
	}
	return patterns
}
