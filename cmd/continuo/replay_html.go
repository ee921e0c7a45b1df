package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/term"
)

//go:embed replay.html
var replayPage string

// replayTemplate escapes what it is given; the page loads nothing and has no script.
var replayTemplate = template.Must(template.New("replay.html").Parse(replayPage))

// replayReport is what the page shows.
type replayReport struct {
	DryRun        bool
	Made, Version string
	Columns       []string
	Rows          [][]string
	Notes         []string
	Conversations []reportedConversation
}

type reportedConversation struct {
	Name    string
	Entries []*reportedEntry
}

// reportedEntry is a recorded answer and those that were given in its place.
type reportedEntry struct {
	Seq     int64
	Message *engine.ReplayMessage // nil where it is that of the entry before
	Answers []reportedAnswer
}

type reportedAnswer struct {
	Title, Figures, Text string
	Failed               bool
}

// createReport makes the file of the report, so that nothing is sent in vain; "" is none.
func createReport(path string) (*os.File, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil, fmt.Errorf("write %s: the file %w", path, continuo.ErrExists)
	case err != nil:
		return nil, usage("--html: %v", err)
	}
	return file, nil
}

// closeReport closes the file of the report, and removes one that was not written.
func closeReport(file *os.File) {
	if file == nil {
		return
	}
	info, err := file.Stat()
	_ = file.Close() // it was written, or the error reported
	if err == nil && info.Size() == 0 {
		_ = os.Remove(file.Name()) // an empty file harms nobody
	}
}

// writeReport writes the results as a page.
func (r *replaying) writeReport(recorded engine.ReplayTotals, variants []replayedVariant) error {
	if r.report == nil {
		return nil
	}
	page := replayReport{
		DryRun: r.DryRun, Made: time.Now().UTC().Format("2006-01-02 15:04 UTC"), Version: readVersion().Version,
		Columns: []string{"recorded"}, Rows: r.totalsCells(recorded, variants), Notes: r.problems(), Conversations: r.reported(),
	}
	for _, variant := range variants {
		page.Columns = append(page.Columns, variant.Name)
	}
	var written bytes.Buffer
	if err := replayTemplate.Execute(&written, page); err != nil {
		return fmt.Errorf("make the report: %w", err)
	}
	if _, err := r.report.Write(written.Bytes()); err != nil {
		return fmt.Errorf("write %s: %w", r.report.Name(), err)
	}
	r.app.note("The report is in %s.", r.report.Name())
	return nil
}

// reported groups the results, which are sorted, by conversation and entry.
func (r *replaying) reported() (all []reportedConversation) {
	conversation, entry, asked := "", (*reportedEntry)(nil), int64(0)
	for i := range r.results {
		result := &r.results[i]
		if !wasBuilt(result) {
			continue
		}
		if len(all) == 0 || result.Conversation != conversation {
			conversation, entry, asked = result.Conversation, nil, 0
			all = append(all, reportedConversation{Name: r.titleOf(conversation)})
		}
		last := &all[len(all)-1]
		if entry == nil || entry.Seq != result.Seq {
			entry = &reportedEntry{Seq: result.Seq, Answers: []reportedAnswer{reportedOf("recorded", &result.Recorded)}}
			if message := result.Message; message != nil && message.Seq != asked {
				entry.Message, asked = message, message.Seq
			}
			last.Entries = append(last.Entries, entry)
		}
		answer := reportedOf(result.Variant, &result.Replayed)
		if result.State == engine.ReplayAnswered {
			answer.Figures += " · " + percent(result.Similarity) + " alike"
		}
		entry.Answers = append(entry.Answers, answer)
	}
	return all
}

func reportedOf(title string, answer *engine.ReplayAnswer) reportedAnswer {
	var figures []string
	if answer.Model != "" {
		figures = append(figures, answer.Model)
	}
	used := answer.Usage
	if used == nil && answer.Error == nil {
		used = answer.Expected
	}
	if used != nil {
		figures = append(figures, term.Number(used.InputTokens)+" tokens in", term.Number(used.OutputTokens)+" out")
		if used.Cost.Currency != "" {
			figures = append(figures, fmt.Sprintf("$%.4f", float64(used.Cost.Nano)/continuoNano))
		}
	}
	if answer.Request != nil && answer.Request.SharedBytes != nil {
		figures = append(figures, sharedOf(answer)+" of the request as before")
	}
	if took := milliseconds(answer.LatencyMS); took != "" {
		figures = append(figures, took)
	}
	return reportedAnswer{Title: title, Figures: strings.Join(figures, " · "), Text: said(answer), Failed: answer.Error != nil}
}

// titleOf is a conversation's name, and its title where it has one.
func (r *replaying) titleOf(name string) string {
	for _, conversation := range r.request.Conversations {
		if conversation.Name != name && (conversation.Name != "" || conversation.ID != name) {
			continue
		}
		if conversation.Name == "" {
			name = nameOf(conversation.Conversation)
		}
		if conversation.Title != "" && conversation.Title != name {
			name += " · " + conversation.Title
		}
		break
	}
	return name
}
