package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/term"
)

// replaying is one run of continuo replay.
type replaying struct {
	*replayCommand
	app      *app
	services *services
	request  engine.Replay
	file     *replayFile
	report   *os.File // nil for none
	results  []engine.ReplayResult
}

// run plans the requests, asks whether they may be sent, sends them, and shows the results.
func (r *replaying) run(ctx context.Context) error {
	a := r.app
	if len(r.request.Conversations) == 0 {
		a.note("No conversations to replay.")
	}
	dry := r.request
	dry.DryRun = true
	planned, err := r.pass(ctx, dry, "planning")
	if err != nil {
		return r.stopped(ctx, err)
	}
	if r.DryRun {
		r.results = planned
		return r.show()
	}
	if allowed, err := r.confirm(planned); err != nil || !allowed {
		return err
	}
	r.request.Known = r.file.known
	r.results, err = r.pass(ctx, r.request, "asking")
	if err != nil && (ctx.Err() == nil || len(r.results) == 0) {
		return r.stopped(ctx, err)
	}
	if shown := r.show(); shown != nil {
		return shown
	}
	if err != nil {
		return r.stopped(ctx, err)
	}
	if slices.ContainsFunc(r.results, func(result engine.ReplayResult) bool { return result.State == engine.ReplayFailed }) {
		return errSilent
	}
	return nil
}

// stopped explains why the requests were not all sent.
func (r *replaying) stopped(ctx context.Context, err error) error {
	switch {
	case ctx.Err() == nil:
		return fmt.Errorf("replay: %w", err)
	case r.Output != "":
		return fmt.Errorf("stopped: %w; the same command with --resume continues", context.Canceled)
	}
	return fmt.Errorf("stopped: %w", context.Canceled)
}

// pass runs the requests with a progress bar, and returns their results in the order of conversations, variants and entries.
func (r *replaying) pass(ctx context.Context, request engine.Replay, label string) (results []engine.ReplayResult, err error) {
	bar := r.app.newProgress(label)
	defer bar.Close()
	whole := int64(0)
	for _, conversation := range request.Conversations {
		whole += conversation.LastSeq * int64(len(request.Variants))
	}
	newest := map[string]int64{}
	done := int64(0)
	err = r.services.engine.Replays.Run(ctx, request, func(result engine.ReplayResult) error {
		results = append(results, result)
		place := result.Conversation + "\x00" + result.Variant
		done += result.Seq - newest[place]
		newest[place] = result.Seq
		bar.Set(done, whole, term.Count(len(results), "answer"))
		if request.DryRun {
			return nil
		}
		return r.file.add(&result)
	})
	r.sort(results)
	return results, err
}

// sort orders results by conversation, entry and variant.
func (r *replaying) sort(results []engine.ReplayResult) {
	conversations, variants := map[string]int{}, map[string]int{}
	for i, conversation := range r.request.Conversations {
		name := conversation.Name
		if name == "" {
			name = conversation.ID
		}
		conversations[name] = i
	}
	for i, variant := range r.request.Variants {
		variants[variant.Name] = i
	}
	slices.SortStableFunc(results, func(a, b engine.ReplayResult) int {
		if by := conversations[a.Conversation] - conversations[b.Conversation]; by != 0 {
			return by
		}
		if a.Seq != b.Seq {
			return int(a.Seq - b.Seq)
		}
		return variants[a.Variant] - variants[b.Variant]
	})
}

// confirm shows what is about to be sent, and asks whether it may be. Nothing is asked where nothing is sent, or only to the
// built-in model.
func (r *replaying) confirm(planned []engine.ReplayResult) (bool, error) {
	var sums engine.ReplayTotals
	models, real := []string{}, false
	for i := range planned {
		result := &planned[i]
		if result.State != "built" || r.file.has(result) {
			continue
		}
		sums.AddReplayed(result)
		if name := result.Replayed.Model; !slices.Contains(models, name) {
			models = append(models, name)
		}
		real = real || result.Replayed.Provider != "demo"
	}
	if r.LimitCost > 0 && sums.Unpriced > 0 {
		return false, usage("--limit-cost: there is no price for %s of %s; give models.NAME.input_price and output_price, or --limit instead", term.Count(sums.Unpriced, "request"), strings.Join(models, ", "))
	}
	if sums.Requests == 0 || !real {
		return true, nil
	}
	cost := "about " + money(sums.ExpectedNano) + " without a cache"
	switch {
	case sums.Unpriced == sums.Requests:
		cost = "of unknown price"
	case sums.Unpriced > 0:
		cost += fmt.Sprintf(", and %s of unknown price", term.Count(sums.Unpriced, "request"))
	}
	text := fmt.Sprintf("%s to %s: about %s tokens in and %s out, %s.", term.Count(sums.Requests, "request"), term.OneLine(strings.Join(models, ", "), 100),
		term.Number(sums.InputTokens), term.Number(sums.OutputTokens), cost)
	if bounds := r.bounds(); bounds != "" {
		text += " " + bounds
	}
	if r.Yes {
		r.app.note("%s", text)
		return true, nil
	}
	return r.app.ask(text + " Send them?")
}

// bounds describes the limits of the command.
func (r *replaying) bounds() string {
	var bounds []string
	if r.Limit > 0 {
		bounds = append(bounds, term.Count(r.Limit, "request"))
	}
	if r.LimitCost > 0 {
		bounds = append(bounds, money(nano(r.LimitCost)))
	}
	if len(bounds) == 0 {
		return ""
	}
	return "They stop at " + strings.Join(bounds, " or ") + "."
}

// money is an amount in billionths of a dollar.
func money(nano int64) string {
	if nano > 0 && nano < 100_000 {
		return "less than $0.0001"
	}
	return fmt.Sprintf("$%.4f", float64(nano)/continuoNano)
}

const continuoNano = 1e9

// replayFile is the file of results; the nil file of a replay without one keeps nothing.
type replayFile struct {
	file    *os.File
	results map[string]*engine.ReplayResult
}

// openReplayFile opens the file of results: a new one, or one that is continued, without a last line that is not complete.
func openReplayFile(path string, resume bool) (*replayFile, error) {
	kept := &replayFile{results: map[string]*engine.ReplayResult{}}
	if path == "" {
		return kept, nil
	}
	flags := os.O_RDWR | os.O_CREATE
	if !resume {
		flags |= os.O_EXCL
	}
	file, err := os.OpenFile(path, flags, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil, fmt.Errorf("write %s: the file %w; --resume continues it", path, continuo.ErrExists)
	case err != nil:
		return nil, usage("--output: %v", err)
	}
	kept.file = file
	if err := kept.read(); err != nil {
		_ = file.Close() // only read from
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return kept, nil
}

// read reads the results, and goes to the end of the last complete line.
func (f *replayFile) read() error {
	lines, end := bufio.NewReader(f.file), int64(0)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // the rest is no complete line
			if err := f.file.Truncate(end); err != nil {
				return err
			}
			_, err := f.file.Seek(end, io.SeekStart)
			return err
		}
		if err != nil {
			return err
		}
		var result engine.ReplayResult
		if err := json.Unmarshal(line, &result); err != nil || result.Conversation == "" {
			return fmt.Errorf("line %d is not a result of continuo replay: %w", number, continuo.ErrInvalid)
		}
		end += int64(len(line))
		f.results[placeOf(&result)] = &result
	}
}

func placeOf(result *engine.ReplayResult) string {
	return fmt.Sprintf("%s\x00%s\x00%d", result.Conversation, result.Variant, result.Seq)
}

// known is the result that the file has.
func (f *replayFile) known(conversation, variant string, seq int64) *engine.ReplayResult {
	return f.results[placeOf(&engine.ReplayResult{Conversation: conversation, Variant: variant, Seq: seq})]
}

// has reports whether the file has an answer to the request of a result.
func (f *replayFile) has(result *engine.ReplayResult) bool {
	kept := f.results[placeOf(result)]
	return kept != nil && kept.State == engine.ReplayAnswered && result.Replayed.Request != nil && kept.Replayed.Request.SHA256 == result.Replayed.Request.SHA256
}

// add writes a result, unless the file has it.
func (f *replayFile) add(result *engine.ReplayResult) error {
	if f.file == nil || f.has(result) {
		return nil
	}
	line, err := rawjson.Marshal(result)
	if err == nil {
		_, err = f.file.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", f.file.Name(), err)
	}
	return nil
}

// Close closes the file.
func (f *replayFile) Close() {
	if f.file != nil {
		_ = f.file.Close() // each line was written, or its error reported
	}
}
