package continuo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
)

// RedactedText replaces content that a person removed.
const RedactedText = "[redacted]"

// maxRedacted bounds how many entries one redaction reads.
const maxRedacted = 10_000

// Redact permanently removes the content of the entries from and to (0: the newest) of a conversation, as a person
// asked; reason may be empty. The entries keep their seqs, roles, calls and results, so that the log can still be
// rendered. Removed are: texts, arguments, reasoning, vendors' data and objects; the events of their turns; their terms
// in the index; the facts that were taken from them; titles made of their text, of this conversation, of those that the entries were written to,
// and of their forks; and the summaries, notes and recalls that repeat one of the entries, in all forks, and the recalls in
// other conversations. Inherited entries are redacted where they were written, so that all forks show it. Archived
// conversations that have something of it are restored for that and archived again. Redact returns the
// redacted entries, without those that had been redacted before. It fails with a *BusyError while one of their turns
// runs, with ErrBadRange and ErrNotFound, and with ErrArchived where the log has no Archives.
func (l *Log) Redact(ctx context.Context, conversation Conversation, from, to int64, reason string) ([]Entry, error) {
	return l.RedactWith(ctx, conversation, RedactRequest{From: from, To: to, Reason: reason})
}

// RedactRequest says what to redact.
type RedactRequest struct {
	From, To int64 // To 0: the newest
	Reason   string
	// Tools removes the names of tools too, also in entries that were redacted before.
	Tools bool
}

// RedactWith is Redact with more options.
func (l *Log) RedactWith(ctx context.Context, conversation Conversation, request RedactRequest) ([]Entry, error) {
	from, to := request.From, request.To
	if to == 0 {
		to = conversation.LastSeq
	}
	if from < 1 || to < from || to > conversation.LastSeq {
		return nil, fmt.Errorf("redact entries %d to %d: %w: the conversation has entries 1 to %d", from, to, ErrBadRange, conversation.LastSeq)
	}
	if to-from >= maxRedacted {
		return nil, fmt.Errorf("redact entries %d to %d: %w: at most %d at once", from, to, ErrInvalid, maxRedacted)
	}
	request.From, request.To = from, to
	lineage, err := l.lineageFrom(ctx, conversation, from)
	if err != nil {
		return nil, fmt.Errorf("redact: %w", err)
	}
	var redacted []Entry
	err = l.whileRestored(ctx, lineage, func() (err error) {
		if now, err := l.Conversation(ctx, conversation.ID); err == nil { // it may have newer summaries
			conversation = now
		}
		redacted, err = l.redactRange(ctx, conversation, request)
		return err
	})
	return redacted, err
}

// redactRange redacts entries of a conversation that is not archived, nor those that it inherits them from.
func (l *Log) redactRange(ctx context.Context, conversation Conversation, request RedactRequest) ([]Entry, error) {
	said, err := l.unredacted(ctx, conversation, Range{From: request.From, To: request.To}, request.Tools)
	if err == nil {
		said, err = l.withOutputs(ctx, conversation, said)
	}
	asked := said
	if err == nil {
		said, err = l.withSummaries(ctx, conversation, said)
	}
	sources := said
	if err == nil {
		said, err = l.withFacts(ctx, conversation, said)
	}
	if err == nil {
		said, err = l.withQuotes(ctx, said)
	}
	if err != nil {
		return nil, fmt.Errorf("redact: %w", err)
	}
	// Before the entries: a title is found by the text that it repeats.
	if err := l.redactTitles(ctx, conversation.ID, said); err != nil {
		return nil, fmt.Errorf("redact: %w", err)
	}
	redacted := make([]Entry, len(said))
	for i := range said {
		redacted[i] = l.redact(&said[i], request)
	}
	facts := len(said) - len(sources) // they and the recalls of other conversations come first
	if done, err := l.storeRedacted(ctx, redacted); err != nil {
		return redacted[facts:max(done, facts)], err
	}
	redacted = redacted[facts:]
	late, err := l.redactLate(ctx, conversation.ID, asked)
	redacted = append(redacted, late...)
	if err != nil {
		return redacted, fmt.Errorf("the entries are redacted, but summaries of them that were made meanwhile may be left: %w", err)
	}
	if err := l.retractAgain(ctx, conversation, sources); err != nil {
		return redacted, fmt.Errorf("the entries are redacted, but facts that were taken from them meanwhile may be left: %w", err)
	}
	slices.SortStableFunc(redacted, func(a, b Entry) int { return cmp.Compare(a.Seq, b.Seq) })
	if _, err := l.Sweep(ctx); err != nil {
		return redacted, fmt.Errorf("the entries are redacted, but objects of theirs are still there and will be tried again: %w", err)
	}
	return redacted, nil
}

// storeRedacted replaces entries in the store by their redacted forms, and returns how many of them it has replaced.
func (l *Log) storeRedacted(ctx context.Context, redacted []Entry) (done int, err error) {
	for first := 0; first < len(redacted); { // entries of one conversation in one call
		owner, last := redacted[first].ConversationID, first+1
		for last < len(redacted) && redacted[last].ConversationID == owner {
			last++
		}
		if err := l.store.Redact(ctx, owner, redacted[first:last]); err != nil {
			return first, fmt.Errorf("redact entries of conversation %s: %w", owner, err)
		}
		l.cache.drop(owner, math.MaxInt64)
		l.announce(owner)
		first = last
	}
	return len(redacted), nil
}

// redactLate redacts the summaries and recalls that were appended while the entries that they repeat were redacted. Whoever
// appends a summary checks after it whether these were redacted before: a summary is found there or here.
func (l *Log) redactLate(ctx context.Context, id string, asked []Entry) ([]Entry, error) {
	if len(asked) == 0 {
		return nil, nil
	}
	conversation, err := l.Conversation(ctx, id)
	if errors.Is(err, ErrNotFound) {
		return nil, nil // it was deleted meanwhile
	}
	if err != nil {
		return nil, err
	}
	found, err := l.withSummaries(ctx, conversation, asked)
	if err != nil || len(found) == len(asked) {
		return nil, err
	}
	late := found[:len(found)-len(asked)]
	redacted := make([]Entry, len(late))
	for i := range late {
		redacted[i] = l.redact(&late[i], RedactRequest{Reason: retracted})
	}
	done, err := l.storeRedacted(ctx, redacted)
	return redacted[:done], err
}

// retractAgain redacts the facts that were taken from entries while these were redacted: an append that has read a
// source before its redaction either finds the redaction after it, or is found here.
func (l *Log) retractAgain(ctx context.Context, conversation Conversation, sources []Entry) error {
	if len(sources) == 0 {
		return nil
	}
	if err := l.redactProfiles(ctx, sources, RedactRequest{Reason: retracted}); err != nil {
		return err
	}
	if err := l.redactQuotes(ctx, owners(sources), showsAny(sources)); err != nil {
		return err
	}
	return l.retract(ctx, conversation, owners(sources), func(source FactSource) bool {
		return slices.ContainsFunc(sources, func(e Entry) bool { return e.ConversationID == source.ConversationID && e.Seq == source.Seq })
	})
}

// withOutputs adds the run events that repeat an answer as a step's outputs: they directly follow the answer. Outputs
// that later steps derived from it are not added.
func (l *Log) withOutputs(ctx context.Context, conversation Conversation, said []Entry) ([]Entry, error) {
	if len(said) == 0 {
		return said, nil
	}
	last := &said[len(said)-1]
	if last.Role != Assistant || last.RunID == "" || last.Seq == conversation.LastSeq {
		return said, nil
	}
	behind, err := l.unredacted(ctx, conversation, Range{From: last.Seq + 1, To: min(last.Seq+maxBehind, conversation.LastSeq)}, false)
	if err != nil {
		return nil, err
	}
	for i := range behind {
		if behind[i].RunEvent == nil || behind[i].TurnID != last.TurnID {
			break
		}
		said = append(said, behind[i])
	}
	return said, nil
}

// withSummaries adds the summaries and notes whose range includes one of the entries, and the recalls that show one or were
// made for one, because they repeat its content. They are recorded after it, in the conversation, in its ancestors or in
// forks of these. They come first in the result: if a redaction fails between them and the entries, a retry still finds
// them by the entries.
func (l *Log) withSummaries(ctx context.Context, conversation Conversation, said []Entry) ([]Entry, error) {
	if len(said) == 0 {
		return said, nil
	}
	var summaries []Entry
	known := map[string]bool{}
	for i := range said {
		known[said[i].ID] = true
	}
	find := func(in Conversation) error {
		repeats := func(e *Entry) bool { return summarizesAny(e, in, said) || recallsAny(e, in, said) }
		if !in.ArchivedAt.IsZero() {
			return l.redactArchived(ctx, in, repeats)
		}
		for entry, err := range l.Read(ctx, in, Range{From: max(1, said[0].Seq-1)}) { // a recall comes before its input
			if err != nil {
				return err
			}
			if entry.Redacted == nil && !known[entry.ID] && repeats(&entry) {
				known[entry.ID] = true
				summaries = append(summaries, entry)
			}
		}
		return nil
	}
	looked := map[string]bool{conversation.ID: true}
	for _, segment := range conversation.Lineage {
		if segment.Through < said[0].Seq {
			continue // it ends before the first entry
		}
		looked[segment.ConversationID] = true
		ancestor, err := l.Conversation(ctx, segment.ConversationID)
		if errors.Is(err, ErrNotFound) {
			continue // deleted: its remaining entries are read with the conversation
		}
		if err == nil {
			err = find(ancestor)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := find(conversation); err != nil {
		return nil, err
	}
	if conversation.Kind == KindMemory {
		return append(summaries, said...), nil // it has no forks
	}
	for _, owner := range slices.Sorted(maps.Keys(looked)) {
		if err := l.eachFork(ctx, conversation.ProjectID, owner, said[0].Seq, looked, find); err != nil {
			return nil, err
		}
	}
	return append(summaries, said...), nil
}

// forkKinds are the kinds of conversations that forks may have.
var forkKinds = []Kind{KindUser, KindBranch, KindSide}

// forkPage is how many forks are listed at once.
const forkPage = 100

// eachFork calls a function for the forks of a conversation that begin with an entry of it, and for their forks, each once;
// archived ones too.
func (l *Log) eachFork(ctx context.Context, projectID, id string, seq int64, looked map[string]bool, do func(Conversation) error) error {
	for _, kind := range forkKinds {
		for _, archived := range []bool{false, true} {
			query := ConversationQuery{ProjectID: projectID, ParentID: id, Kind: kind, Archived: archived, Limit: forkPage}
			for fork, err := range l.each(ctx, query) {
				if err != nil {
					return err
				}
				if looked[fork.ID] || fork.ForkSeq < seq {
					continue
				}
				looked[fork.ID] = true
				if err := do(fork); err != nil {
					return err
				}
				if err := l.eachFork(ctx, projectID, fork.ID, seq, looked, do); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// each yields the conversations of a query, a page at a time.
func (l *Log) each(ctx context.Context, query ConversationQuery) iter.Seq2[Conversation, error] {
	return func(yield func(Conversation, error) bool) {
		for {
			page, err := l.Conversations(ctx, query)
			if err != nil {
				yield(Conversation{}, err)
				return
			}
			for _, conversation := range page {
				if !yield(conversation, nil) {
					return
				}
			}
			if len(page) < query.Limit {
				return
			}
			last := page[len(page)-1]
			query.Before = ConversationCursor{UpdatedAt: last.UpdatedAt, ID: last.ID}
		}
	}
}

// summarizesAny reports whether an entry that a conversation shows is a summary that covers one of some entries.
func summarizesAny(e *Entry, in Conversation, entries []Entry) bool {
	s := e.Summary
	return s != nil && slices.ContainsFunc(entries, func(said Entry) bool {
		return s.From <= said.Seq && said.Seq <= s.Through && segmentOf(&in, said.Seq).id == said.ConversationID
	})
}

// maxBehind bounds how many run events follow a step's answer: one for it, one for each approval, one for the run.
const maxBehind = 256

// unredacted reads the entries that are not redacted and, with tools, redacted ones that still name a tool.
func (l *Log) unredacted(ctx context.Context, conversation Conversation, r Range, tools bool) ([]Entry, error) {
	var found []Entry
	for entry, err := range l.Read(ctx, conversation, r) {
		if err != nil {
			return nil, err
		}
		if entry.Redacted == nil && !entry.IsPlaceholder() || entry.Redacted != nil && tools && namesTool(&entry) {
			found = append(found, entry)
		}
	}
	return found, nil
}

// redactedName replaces a tool's name, which a call must have.
const redactedName = "redacted"

// namesTool reports whether an entry names the tool that was called.
func namesTool(e *Entry) bool {
	return e.ToolName != "" || slices.ContainsFunc(e.ToolCalls, func(call ToolCall) bool { return call.Name != redactedName })
}

// knownParts are the PartTypes that this program writes. Any other is a client's text.
var knownParts = []string{
	PartResume, PartStep, PartToolError, PartInterrupted, PartUndecided, PartSummary, PartNotes, PartRecall, PartDeletion, PartFact, PartProfile, "tool_result", "run_event", "task_event", "crew_event",
}

// redactedAuthor keeps the RoleName, which the windows of a crew's roles need, and no other names. A person's message
// keeps no author.
func redactedAuthor(e *Entry) *Author {
	if e.Author == nil || e.Role == User || e.Author.RoleName == "" {
		return nil
	}
	return &Author{RoleName: e.Author.RoleName}
}

// redact returns an entry with only the fields that the protocol and later plans need.
func (l *Log) redact(e *Entry, request RedactRequest) Entry {
	kept := Entry{
		ID: e.ID, ConversationID: e.ConversationID, Seq: e.Seq, CreatedAt: e.CreatedAt, Role: e.Role, ToolCallID: e.ToolCallID,
		Mode: e.Mode, RunID: e.RunID, WorkflowID: e.WorkflowID, NodeID: e.NodeID, TurnID: e.TurnID, Author: redactedAuthor(e),
		Hidden: e.Hidden, ToolName: e.ToolName, DurationMS: e.DurationMS, IsCollapsed: e.IsCollapsed,
		OutputRef: e.OutputRef, Round: e.Round, Repairs: e.Repairs,
		Redacted: &Redaction{At: l.now(), Reason: request.Reason},
	}
	if slices.Contains(knownParts, e.PartType) {
		kept.PartType = e.PartType
	}
	if request.Tools {
		kept.ToolName = ""
	}
	if event := e.RunEvent; event != nil { // the index of runs needs these fields
		kept.RunEvent = &RunEvent{
			Kind: event.Kind, Workflow: event.Workflow, Visit: event.Visit, Attempt: event.Attempt, Cut: event.Cut, Next: event.Next,
			Branch: event.Branch, Until: event.Until, Followed: event.Followed, Dropped: event.Dropped, KeyID: event.KeyID, Crew: event.Crew,
		}
	}
	if s := e.Summary; s != nil {
		kept.Summary = &Summary{From: s.From, Through: s.Through, Role: s.Role, By: s.By}
	}
	if r := e.Recall; r != nil {
		kept.Recall = &Recall{Scope: r.Scope, Role: r.Role, Ranker: r.Ranker}
	}
	if event := e.TaskEvent; event != nil {
		kept.TaskEvent = &TaskEvent{Kind: event.Kind, AgentID: event.AgentID, AgentType: event.AgentType}
	}
	kept.Fact, kept.NoMemory = redactedFact(e.Fact), e.NoMemory
	if e.Profile != nil {
		kept.Profile = &Profile{Facts: e.Profile.Facts}
	}
	kept.Content = Text(RedactedText)
	if e.Content.IsNull() {
		kept.Content = e.Content
	}
	for _, call := range e.ToolCalls {
		if request.Tools {
			call.Name = redactedName
		}
		kept.ToolCalls = append(kept.ToolCalls, ToolCall{ID: call.ID, Type: call.Type, Name: call.Name, Arguments: "{}"})
	}
	if e.Error != nil {
		kept.Error = &TurnError{
			Code: e.Error.Code, Reason: e.Error.Reason, Message: RedactedText, Retryable: e.Error.Retryable, ProviderStatus: e.Error.ProviderStatus, RetryAfter: e.Error.RetryAfter,
		}
	}
	kept.count(l.options.Counter)
	return kept
}

// redactTitles replaces the titles that repeat text of the entries: of a conversation, of those that the entries were
// written to, and of the forks of these, which copy titles.
func (l *Log) redactTitles(ctx context.Context, id string, said []Entry) error {
	ids := []string{id}
	for i := range said {
		if owner := said[i].ConversationID; !slices.Contains(ids, owner) {
			ids = append(ids, owner)
		}
	}
	looked := map[string]bool{}
	for _, owner := range slices.Clone(ids) {
		looked[owner] = true
		conversation, err := l.Conversation(ctx, owner)
		if errors.Is(err, ErrNotFound) || err == nil && conversation.Kind == KindMemory {
			continue
		}
		if err == nil {
			err = l.eachFork(ctx, conversation.ProjectID, owner, 0, looked, func(fork Conversation) error {
				ids = append(ids, fork.ID)
				return nil
			})
		}
		if err != nil {
			return err
		}
	}
	for _, id := range ids {
		if err := l.redactTitle(ctx, id, said); err != nil && !errors.Is(err, ErrNotFound) { // a deleted conversation has no title
			return err
		}
	}
	return nil
}

func (l *Log) redactTitle(ctx context.Context, id string, said []Entry) error {
	conversation, err := l.Conversation(ctx, id)
	if err != nil {
		return err
	}
	title := strings.TrimSpace(strings.TrimSuffix(conversation.Title, "…"))
	for i := range said {
		if title != "" && strings.Contains(onOneLine(said[i].Content.String()), onOneLine(title)) {
			redacted := RedactedText
			return l.whileRestored(ctx, []Conversation{conversation}, func() error { // an archive has the title, too
				_, err := l.Update(ctx, id, ConversationChange{Title: &redacted})
				return err
			})
		}
	}
	return nil
}

// onOneLine replaces control characters by spaces, as titles have them.
func onOneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}
