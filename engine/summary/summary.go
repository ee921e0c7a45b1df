package summary

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/continuo-log/continuo/engine/internal/brief"
	"github.com/continuo-log/continuo/engine/internal/logtext"
	"github.com/continuo-log/continuo/engine/metrics"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/task"
)

// The system messages for summaries of a conversation, and for the notes of a role.
var (
	//go:embed summary.md
	conversationRules string
	//go:embed notes.md
	notesRules string
)

const (
	// MaxDecisions bounds the decisions of a role's notes, maxDecisionChars one of them.
	MaxDecisions     = 12
	MaxDecisionChars = 300
)

// Make makes, without appending it, the entry with a summary of a conversation's entries from and through, or
// with a role's notes on them, of at most so many characters. It includes the newest earlier summary or notes; known
// is the seq of an earlier one to include however old it is, 0 for none. By names the model; "" is the built-in
// summarizer, which is also used where the model fails or is late. It fails with ErrNotFound where the entries have
// no text. The request is charged to the conversation's user, and to the key of the context's payer.
func (s *Summaries) Make(ctx context.Context, conversation continuo.Conversation, from, through, known int64, role, by string, most int) (continuo.Entry, error) {
	g, err := s.readSummaryInput(ctx, conversation, from, through, role, known)
	if err != nil {
		return continuo.Entry{}, err
	}
	payer, _ := continuo.PayerOf(ctx)
	payer.ProjectID, payer.UserID = conversation.ProjectID, conversation.UserID
	return s.summaryOf(continuo.WithPayer(ctx, payer), conversation, g, by, most)
}

// summaryOf makes the entry from the input that was read.
func (s *Summaries) summaryOf(ctx context.Context, conversation continuo.Conversation, g *summaryInput, by string, most int) (continuo.Entry, error) {
	if len(g.entries) == 0 && g.before == nil {
		return continuo.Entry{}, fmt.Errorf("summarize entries %d to %d: %w: they say nothing", g.from, g.through, continuo.ErrNotFound)
	}
	made, err := s.summaryByModel(ctx, g, by, most)
	if made == nil && ctx.Err() != nil {
		return continuo.Entry{}, context.Cause(ctx)
	}
	logger := s.options.Logger.With("conversation_id", conversation.ID, "from", g.from, "through", g.through)
	if err != nil {
		logger.WarnContext(ctx, "summary_fell_back", "model", by, "error", err.Error())
	}
	if made == nil {
		made = g.extracted(most)
	}
	left := ""
	if g.skipped > 0 {
		left = fmt.Sprintf(skippedNote, g.skipped)
	}
	if made.text = cleaned(made.text, most-len(left)); made.text == "" {
		return continuo.Entry{}, fmt.Errorf("summarize entries %d to %d: %w: they say nothing", g.from, g.through, continuo.ErrNotFound)
	}
	logger.InfoContext(ctx, "summary_made", "by", made.by, "chars", utf8.RuneCountInString(made.text), "entries", len(g.entries), "skipped", g.skipped)
	s.metrics.Summarized(made.by)
	part := continuo.PartSummary
	if g.role != "" {
		part = continuo.PartNotes
	}
	return continuo.Entry{
		Role: continuo.System, Hidden: true, PartType: part, Content: continuo.Text(made.text + left),
		Summary: &continuo.Summary{From: g.from, Through: g.through, Role: g.role, Decisions: made.decisions, By: made.by},
	}, nil
}

// madeSummary is the output of a summarizer.
type madeSummary struct {
	text      string
	decisions []string // of a role's notes
	by        string
}

// summaryByModel asks a model; nil where by names none or the demo model, or with the model's error.
func (s *Summaries) summaryByModel(ctx context.Context, g *summaryInput, by string, most int) (*madeSummary, error) {
	if by == "" {
		return nil, nil
	}
	upstream, err := s.catalog.Upstream(by)
	if err != nil {
		return nil, err
	}
	info := upstream.Model.Info()
	if info.Demo { // it cannot summarize
		return nil, nil
	}
	rules := conversationRules
	if g.role != "" {
		rules = notesRules
	}
	upstream.Model = s.options.Requests.Model(upstream.Model)
	answer, err := NewSummarizer(upstream, s.options.Logger).ask(ctx, rules, g.text(true), most)
	if err == nil && strings.TrimSpace(answer) == "" {
		err = fmt.Errorf("%w: the model answered nothing", continuo.ErrInvalid)
	}
	if err != nil {
		return nil, logtext.Error(s.options.LogText, info, err)
	}
	made := &madeSummary{text: answer, by: info.Name}
	if g.role != "" {
		made.readNotes(answer, g)
	}
	return made, nil
}

// readNotes parses notes from a model's answer. An answer in another form is used as the summary, and the decisions
// are extracted from the messages.
func (m *madeSummary) readNotes(answer string, g *summaryInput) {
	var notes struct {
		Summary   string   `json:"summary"`
		Decisions []string `json:"decisions"`
	}
	begin, end := strings.IndexByte(answer, '{'), strings.LastIndexByte(answer, '}')
	if begin < 0 || end < begin || json.Unmarshal([]byte(answer[begin:end+1]), &notes) != nil || strings.TrimSpace(notes.Summary) == "" {
		m.decisions = g.decisions()
		return
	}
	m.text, m.decisions = notes.Summary, decisionsOf(notes.Decisions)
}

// decisionsOf bounds a list of decisions: each once, on one line, and only the last of them.
func decisionsOf(all []string) []string {
	var decisions []string
	for _, one := range all {
		one = cleaned(strings.Join(strings.Fields(one), " "), MaxDecisionChars)
		if one != "" && !slices.Contains(decisions, one) {
			decisions = append(decisions, one)
		}
	}
	return decisions[max(0, len(decisions)-MaxDecisions):]
}

// decisions are those of the earlier notes, and those in the messages since.
func (h *summaryInput) decisions() []string {
	var decided []string
	if h.before != nil {
		decided = h.before.Summary.Decisions
	}
	return decisionsOf(append(slices.Clone(decided), task.Decisions(conversationText(h.entries, false), MaxDecisions)...))
}

// firstRequest is the prefix of the conversation's first request, which every extracted summary repeats.
const firstRequest = "First request: "

// extracted makes a summary without a model. A quarter is for the first request, at most half of the rest for the
// earlier summary, and half of the remainder for messages of the user since.
func (h *summaryInput) extracted(most int) *madeSummary {
	pick := func(text string, most int) string {
		text, _ = task.Extractive{}.Summarize(context.Background(), strings.TrimSpace(text), most) // it never fails
		return text
	}
	made := &madeSummary{by: metrics.Extractive}
	var parts []string
	left := most
	add := func(label, text string, share int) {
		if text = pick(text, share-utf8.RuneCountInString(label)-1); text != "" {
			parts = append(parts, label+text)
			left -= utf8.RuneCountInString(parts[len(parts)-1]) + 1
		}
	}
	if h.first != nil {
		add(firstRequest, strings.Join(strings.Fields(h.first.Content.String()), " "), cmp.Or(most/4, most))
	}
	if h.before != nil {
		add("", withoutFirst(h.previousText()), left/2)
	}
	since := h.entries
	if h.first != nil && len(since) > 0 && since[0].Seq == h.first.Seq {
		since = since[1:]
	}
	asked, answered := apart(since)
	add("", conversationText(asked, false), left/2)
	add("", conversationText(answered, false), left)
	made.text = strings.Join(parts, "\n")
	if h.role != "" {
		made.decisions = h.decisions()
	}
	return made
}

// apart separates the messages of the user from the others.
func apart(entries []continuo.Entry) (asked, answered []continuo.Entry) {
	for _, entry := range entries {
		if entry.Role == continuo.User {
			asked = append(asked, entry)
		} else {
			answered = append(answered, entry)
		}
	}
	return asked, answered
}

// withoutFirst is an extracted summary without its first request.
func withoutFirst(summary string) string {
	if !strings.HasPrefix(summary, firstRequest) {
		return summary
	}
	_, rest, _ := strings.Cut(summary, "\n")
	return rest
}

// cleaned is a text that can be stored, of at most so many characters.
func cleaned(text string, most int) string {
	text = strings.TrimSpace(strings.ToValidUTF8(text, "�"))
	return brief.Shorten(text, max(most, 1))
}
