package main

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/render"
	"github.com/continuo-log/continuo/token"
	"github.com/continuo-log/continuo/window"
)

// Of replayed conversations, errors count from the report after so many; of recorded sessions, which are short, sooner.
const (
	afterReports  = 10
	afterRecorded = 3
)

// report is a provider's report on a request, with the correction by the reports before it.
type report struct {
	estimated, reported int
	by                  continuo.Correction
}

// errors are relative errors of estimates, before and after their correction, once so many reports are known.
type errors struct {
	after            int
	recorded         bool
	plain, corrected []float64
	consistent       []float64 // corrected, of recorded sessions, without the reports that contradict others
	contradicting    float64   // the sum of the errors of those, if every other report were known beforehand
	followed         int       // how many of those changed the correction of the next request
}

// contradicts reports whether a report contradicts an earlier one of its session: the request is at least as large as that one,
// and the report is on less than four fifths of its tokens. No estimate can know it before.
func contradicts(session []report, at int) bool {
	return slices.ContainsFunc(session[:at], func(earlier report) bool {
		return earlier.estimated <= session[at].estimated && 5*session[at].reported < 4*earlier.reported
	})
}

// add adds the reports of a session, in order.
func (e *errors) add(session []report) {
	var ratios []float64
	for _, r := range session {
		ratios = append(ratios, float64(r.reported)/float64(r.estimated))
	}
	median := quantile(ratios, 0.5)
	for i, r := range session {
		if r.by.Reports < e.after {
			continue
		}
		e.plain = append(e.plain, off(float64(r.estimated), r.reported))
		corrected := off(float64(r.by.Tokens(r.estimated)), r.reported)
		e.corrected = append(e.corrected, corrected)
		switch {
		case !e.recorded:
		case contradicts(session, i):
			e.contradicting += off(median*float64(r.estimated), r.reported)
			if r.by.With(r.estimated, r.reported).Ratio != r.by.Ratio {
				e.followed++
			}
		default:
			e.consistent = append(e.consistent, corrected)
		}
	}
}

// off is how far a guess is from a report, as a part of the smaller one.
func off(guess float64, reported int) float64 {
	return max(guess/float64(reported), float64(reported)/guess) - 1
}

func (e *errors) row(w io.Writer, name string) {
	all := len(e.plain)
	fmt.Fprintf(w, "| %s\t| %d\t| %.1f %%\t| %.2f %%\t| %.2f %%\t|", name, all, 100*mean(e.plain), 100*mean(e.corrected), 100*quantile(e.corrected, 0.95))
	if e.recorded {
		fmt.Fprintf(w, " %d\t| %d\t| %.2f %%\t| %.2f %%\t|\n", all-len(e.consistent), e.followed, 100*e.contradicting/float64(max(all, 1)), 100*mean(e.consistent))
		return
	}
	fmt.Fprintln(w, "\t|\t|\t|\t|") // such a provider counts whole requests
}

func mean(all []float64) (sum float64) {
	for _, one := range all {
		sum += one
	}
	return sum / float64(max(len(all), 1))
}

func quantile(all []float64, q float64) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[int(q*float64(len(sorted)-1))]
}

// counts are the ways in which a provider may count tokens, other than o200k.
var counts = []struct {
	name  string
	count func(text string) int
}{
	{"characters / 4", func(text string) int { return len([]rune(text)) / 4 }},
	{"cl100k × 1.3", func(text string) int { return token.CL100k().Count(text) * 13 / 10 }},
}

// estimates prints how far estimates were from the provider's counts once some reports were known: of recorded traffic, and
// of replayed conversations whose provider counts in another way, with a prompt of its own.
func estimates(w io.Writer, o options, logs map[string][]*conversation) error {
	fmt.Fprintln(w, "| reports of\t| requests\t| error\t| corrected\t| 95 % within\t| contradict others\t| were followed\t| they alone\t| without them\t|")
	fmt.Fprintln(w, "|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|")
	files, err := filepath.Glob(filepath.Join(o.data, "agent-traffic", "*.jsonl.gz"))
	if err != nil {
		return err
	}
	for _, file := range files {
		e := errors{after: afterRecorded, recorded: true}
		if err := recordedReports(file, &e); err != nil {
			return err
		}
		e.row(w, "recorded: "+strings.TrimSuffix(filepath.Base(file), ".jsonl.gz"))
	}
	for _, count := range counts {
		for _, budget := range budgets {
			e := errors{after: afterReports}
			for _, name := range strings.Split(o.sources, ",") {
				for _, c := range logs[name] {
					if err := c.reports(budget.limits, count.count, &e); err != nil {
						return err
					}
				}
			}
			e.row(w, "replayed, "+budget.name+": "+count.name)
		}
	}
	return nil
}

// reports replays a conversation whose provider counts the request's bytes, and a prompt of its own, in its own way.
func (c *conversation) reports(limits window.Limits, count func(string) int, e *errors) error {
	view, err := window.DefaultSettings().View(window.Codex)
	if err != nil {
		return err
	}
	view.Limits, c.entries = limits, c.all[:0:0]
	const prompt, promptCounted = 1500, 1900 // tokens as estimated, and as counted
	sizes := map[shownAs]int{}
	var session []report
	for _, entry := range c.all {
		if entry.Role == continuo.Assistant && !entry.Hidden && len(c.entries) > 0 {
			plan, err := view.Build(c, window.Input{At: int64(len(c.entries)), Counter: token.O200k(), Provider: "p", Model: "m", Estimated: true, Prompt: continuo.Size{Tokens: prompt}})
			if err != nil {
				return err
			}
			reported := promptCounted
			for i := range plan.Messages {
				reported += countedAs(&plan.Messages[i], sizes, count)
			}
			round := &continuo.Round{
				View: plan.View, ViewHash: plan.ViewHash, At: plan.At, Window: plan.Window, Provider: "p", Model: "m",
				EstimatedTokens: plan.Totals.Tokens + prompt, Usage: &continuo.Usage{InputTokens: reported},
			}
			if plan.Correction != nil {
				round.Correction = *plan.Correction
			}
			session = append(session, report{round.EstimatedTokens, reported, round.Correction})
			entry.Round = round
		}
		c.entries = append(c.entries, entry)
	}
	e.add(session)
	return nil
}

// countedAs is how many tokens a provider counts for a message, with its JSON.
func countedAs(m *window.Message, sizes map[shownAs]int, count func(string) int) int {
	as := shownAs{m.Seq, m.Size}
	n, ok := sizes[as]
	if !ok {
		text := m.Content.String()
		if messages, err := render.OpenAIChat([]window.Message{*m}, render.Options{}); err == nil {
			text = ""
			for _, message := range messages {
				text += string(message)
			}
		}
		n = count(text)
		sizes[as] = n
	}
	return n
}

var usage = regexp.MustCompile(`(?:prompt_tokens|input_tokens|promptTokenCount)\\?":\s*([1-9]\d*)`)

// inflated is the scenario whose answers report a multiple of their requests, to make agents compact.
const inflated = "autocompact"

// recordedReports compares the counts that recorded answers report with estimates of their requests' bytes.
func recordedReports(path string, e *errors) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	sessions := map[string][]report{}
	lines := bufio.NewScanner(unpacked)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var r struct {
			Scenario string `json:"scenario"`
			Kind     string `json:"kind"`
			Stream   string `json:"stream"`
			Request  string `json:"request_body"`
			Response string `json:"response_body"`
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return err
		}
		found := usage.FindStringSubmatch(r.Response)
		if r.Kind != "main" || found == nil || r.Scenario == inflated {
			continue
		}
		reported, _ := strconv.Atoi(found[1])
		estimated, session := token.O200k().Count(r.Request), r.Scenario+" "+r.Stream
		var by continuo.Correction
		if known := sessions[session]; len(known) > 0 {
			last := known[len(known)-1]
			by = last.by.With(last.estimated, last.reported)
		}
		sessions[session] = append(sessions[session], report{estimated, reported, by})
	}
	for _, name := range slices.Sorted(maps.Keys(sessions)) {
		e.add(sessions[name])
	}
	return lines.Err()
}
