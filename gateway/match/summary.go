package match

import (
	"context"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
)

// A client that compacts its history begins the next one with the summary that a side call made for it. A client
// without sessions is recognised by that: the answer of such a call has a prefix for each of its first and last long lines.
const (
	summaryTag     = 'S'
	summaryLine    = 40 // the least length of a line that is looked for
	summaryLines   = 4  // how many are stored of an answer's begin, and of its end: some clients drop the reasoning before the summary
	summaryLookUps = 64
)

// SummaryPrefixes returns the prefixes of the answer to a side call that summarises: the caller adds them to those of
// the answer. They are none for any other call.
func (m *Match) SummaryPrefixes(answer *continuo.Entry) []continuo.Prefix {
	if m.Side != sideCompaction {
		return nil
	}
	lines := longLines(answer.Content.String())
	if between := len(lines) - summaryLines; between > summaryLines {
		lines = slices.Delete(lines, summaryLines, between)
	}
	var prefixes []continuo.Prefix
	for _, line := range lines {
		p := m.chain.prefix(answer.Seq)
		p.Hash = hashOf(continuo.PrefixHash{}, summaryTag, line)
		prefixes = append(prefixes, p)
	}
	return prefixes
}

func longLines(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); len(line) >= summaryLine {
			lines = append(lines, line)
		}
	}
	return lines
}

// fromSummary decides about a request whose messages are not known: it may begin with a summary.
func (s *search) fromSummary(ctx context.Context) (*Match, error) {
	var hashes []continuo.PrefixHash
	for i := range s.entries()[:min(3, len(s.entries()))] {
		for _, text := range texts(&s.entries()[i]) {
			lines := longLines(withoutReminders(text))
			for _, line := range lines[:min(len(lines), summaryLookUps-len(hashes))] {
				hashes = append(hashes, hashOf(continuo.PrefixHash{}, summaryTag, line))
			}
		}
	}
	m := s.made()
	if len(hashes) == 0 {
		return m, nil
	}
	rows, sides, err := s.prefixes.Prefixes(ctx, continuo.PrefixQuery{ProjectID: s.query.Scope.ProjectID, Hashes: slices.Compact(hashes), Limit: 1})
	if err != nil || len(rows) == 0 {
		return m, err
	}
	side := sides[slices.IndexFunc(sides, func(c continuo.Conversation) bool { return c.ID == rows[0].ConversationID })]
	if side.ParentID == "" || !s.mayReach(side) {
		return m, nil
	}
	parent, err := s.log.Conversation(ctx, side.ParentID)
	if err != nil {
		return m, nil // it was deleted
	}
	m.By, m.Conversation, m.Fork, m.Rewritten, m.Parent = ByPrefix, parent, true, true, parent.ID
	return m, nil
}
