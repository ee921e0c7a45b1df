package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/internal/term"
)

type redactCommand struct {
	Conversation string `arg:"" name:"conv" help:"Which one: id, key or @1."`
	Entries      string `arg:"" help:"Which entries: SEQ, FROM-TO, or FROM- up to the newest."`
	Reason       string `placeholder:"TEXT" help:"The reason, which is recorded in the log."`
	Tools        bool   `help:"Remove the names of tools too, also of entries that were redacted before."`
	Yes          bool   `short:"y" help:"Do not ask."`
	JSON         bool   `help:"Write JSON: {conversation_id, redacted: [seq, …], residue}."`
}

func (redactCommand) Help() string {
	return `Removes what entries say, permanently: text, who spoke (author, agent, name), arguments of calls, thinking, large outputs, attachments, the events of their turns, and what a search finds; with --tools also which tools were called. The entries stay in their places with role, time and calls, so that the conversation can go on. Forks that begin with them show it too.

Archived conversations that recalled or summarized an entry are restored for that and archived again. Entries of an archived conversation cannot be shown before: give --yes. Not reached are exports and backups that were made before, and what providers have kept of the requests.

Examples:

    continuo conversations redact s1 12
    continuo conversations redact s1 12-15 --reason "a password"
    continuo conversations redact s1 1- --yes`
}

// maxReason bounds a reason, in characters.
const maxReason = 500

func (c *redactCommand) check() error {
	if len([]rune(c.Reason)) > maxReason {
		return usage("--reason: give at most %d characters", maxReason)
	}
	_, _, err := parseSeqs(c.Entries)
	return err
}

// Run shows what would be removed, asks and redacts.
func (c *redactCommand) Run(ctx context.Context, a *app, w *services) error {
	from, to, err := parseSeqs(c.Entries)
	if err != nil {
		return err
	}
	conversation, err := w.find(ctx, c.Conversation)
	if err != nil {
		return err
	}
	if !c.Yes {
		n, err := a.showRedaction(ctx, w, conversation, from, to)
		if err != nil || n == 0 {
			return err
		}
		a.note("It is removed permanently, in all forks too. Exports, backups and what providers keep are not reached.")
		if yes, err := a.ask(fmt.Sprintf("Redact %s of %s?", term.Count(n, "entry"), nameOf(conversation))); err != nil || !yes {
			return err
		}
	}
	redacted, err := w.engine.Conversations.Redact(ctx, conversation, continuo.RedactRequest{From: from, To: to, Reason: c.Reason, Tools: c.Tools})
	if err != nil {
		return err
	}
	return c.print(a, conversation, redacted, w.engine.Conversations.HasResidue())
}

func (c *redactCommand) print(a *app, conversation continuo.Conversation, redacted []continuo.Entry, residue bool) error {
	seqs := []int64{}
	for i := range redacted {
		seqs = append(seqs, redacted[i].Seq)
	}
	if c.JSON {
		return a.json(api.Redacted{ConversationID: conversation.ID, Redacted: seqs, Residue: residue})
	}
	if len(seqs) == 0 {
		a.note("Nothing to do: they were redacted before.")
		return nil
	}
	a.print("redacted %s of %s: %s", term.Count(len(seqs), "entry"), nameOf(conversation), seqRangesText(seqs))
	if residue {
		a.note("Another program reads the store: its write-ahead log holds the redacted bytes until that program's store is written again or closed.")
	}
	return nil
}

// parseSeqs reads SEQ, FROM-TO or FROM-; to is 0 for the newest.
func parseSeqs(text string) (from, to int64, err error) {
	first, last, isRange := strings.Cut(text, "-")
	from, err = strconv.ParseInt(first, 10, 64)
	switch {
	case err != nil:
	case !isRange:
		to = from
	case last != "":
		to, err = strconv.ParseInt(last, 10, 64)
		if err == nil && to < from {
			err = continuo.ErrBadRange
		}
	}
	if err != nil || from < 1 {
		return 0, 0, usage("entries %q: give a seq, such as 12, or a range, such as 12-15 or 12-", text)
	}
	return from, to, nil
}

// redactionLines is how many entries are shown before they are redacted.
const redactionLines = 20

// showRedaction shows the beginnings of the entries that would be redacted, and counts them.
func (a *app) showRedaction(ctx context.Context, w *services, conversation continuo.Conversation, from, to int64) (n int64, err error) {
	if from > conversation.LastSeq || to > conversation.LastSeq {
		return 0, fmt.Errorf("redact entries %d to %d: %w: the conversation has entries 1 to %d", from, to, continuo.ErrBadRange, conversation.LastSeq)
	}
	for entry, err := range w.engine.Conversations.Read(ctx, conversation, continuo.Range{From: from, To: to}) {
		if err != nil {
			return n, err
		}
		if entry.Redacted != nil {
			continue
		}
		if n++; n <= redactionLines {
			a.note("%6s %s %s", term.Number(entry.Seq), term.Pad(string(entry.Role), 9), term.OneLine(firstSearchTerms(&entry), 90))
		}
	}
	switch {
	case n == 0:
		a.note("Nothing to do: they were redacted before.")
	case n > redactionLines:
		a.note("       … and %s more", term.Number(n-redactionLines))
	}
	return n, nil
}

// firstSearchTerms is the beginning of an entry's text, or the tools that it calls.
func firstSearchTerms(entry *continuo.Entry) string {
	text := entry.Content.String()
	for _, call := range entry.ToolCalls {
		text += fmt.Sprintf(" → %s(%s)", call.Name, call.Arguments)
	}
	return text
}

// seqRangesText formats seqs in ascending order, with ranges: 3, 5–9, 12.
func seqRangesText(seqs []int64) string {
	var words []string
	for i := 0; i < len(seqs); {
		last := i
		for last+1 < len(seqs) && seqs[last+1] == seqs[last]+1 {
			last++
		}
		word := term.Number(seqs[i])
		if last > i {
			word += "–" + term.Number(seqs[last])
		}
		words = append(words, word)
		i = last + 1
	}
	return strings.Join(words, ", ")
}
