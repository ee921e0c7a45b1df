package window

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// candidate is an entry whose content a move gives up before it shortens outputs by their age.
type candidate struct {
	unit   *Unit
	index  int // of the entry
	reason string
	weight int // tokens
}

// maxGivenUp bounds how many entries a window gives up for their use, so that what each answer records stays small.
const maxGivenUp = 256

// needless returns what the units before the required ones hold that is needed least: results whose lines later results have
// again, failed calls that succeeded later, and images that an answer followed. What is needed least comes first, of that
// the largest. A first window gives nothing up for its use, nor does a view that wants whole outputs.
func (b *build) needless(need required) []candidate {
	if b.previous == nil || b.view.History > 0 || b.view.Outputs == WholeOutputs || !b.view.ByUse {
		return nil
	}
	if recorded := b.in.Recorded; recorded != nil {
		return b.recordedCandidates(recorded.GivenUp)
	}
	var found []candidate
	later := laterReads{view: &b.view, worked: map[string]bool{}, lines: map[string]bool{}}
	for i, u := range slices.Backward(b.units) {
		if i < need.from && u != b.newestUser && u != b.opener {
			for at := range u.Entries {
				if reason := later.reason(u, at); reason != "" {
					found = append(found, candidate{unit: u, index: at, reason: reason, weight: u.Entries[at].Tokens})
				}
			}
		}
		later.add(u)
	}
	slices.SortStableFunc(found, func(x, y candidate) int {
		return cmp.Or(cmp.Compare(usefulness[x.reason], usefulness[y.reason]), cmp.Compare(y.weight, x.weight))
	})
	return found[:min(len(found), maxGivenUp)]
}

// givenUpLevels are the levels at which results are shown that are given up for a reason. The message of a failure may still be
// needed, so that it is previewed.
var givenUpLevels = map[string]Level{ReasonReadAgain: Line, ReasonFailedCall: Preview}

// usefulness orders the reasons for which entries are given up.
var usefulness = map[string]int{ReasonReadAgain: 0, ReasonFailedCall: 1, ReasonDescribed: 2}

// laterReads is what is known of the units after the one that is looked at.
type laterReads struct {
	view     *View
	worked   map[string]bool // targets of calls that succeeded
	lines    map[string]bool // of results that are short enough to be shown whole
	answered bool            // an answer has text
}

// reason is the reason for which an entry of a unit is needed little; "" for none.
func (l *laterReads) reason(u *Unit, at int) string {
	e := u.Entries[at]
	call := callOf(u, at)
	switch {
	case l.answered && hasImage(e):
		return ReasonDescribed
	case call == nil || !e.Content.IsText() || e.Chars <= lineChars(e.Chars, e.OutputRef):
		return ""
	case failed(e):
		if e.Chars > l.view.PreviewChars+previewSlack && l.succeeded(call) {
			return ReasonFailedCall
		}
	case e.Output == nil && l.covers(e):
		return ReasonReadAgain
	}
	return ""
}

// coveredShare is the share of a result's bytes, in lines that later results have too, from which the result was read again. The
// calls are not compared: the same call may return something else each time, and different ones the same file.
const coveredShare = 0.9

// covers reports whether later results have the lines of a result.
func (l *laterReads) covers(e *continuo.Entry) bool {
	all, covered := 0, 0
	for line := range strings.Lines(e.Content.String()) {
		line = strings.TrimSpace(line)
		all += len(line)
		if l.lines[line] {
			covered += len(line)
		}
	}
	return all > 0 && float64(covered) >= coveredShare*float64(all)
}

// add adds an older unit.
func (l *laterReads) add(u *Unit) {
	head := u.Entries[0]
	l.answered = l.answered || head.Role == continuo.Assistant && strings.TrimSpace(head.Content.String()) != ""
	for at := range u.Entries {
		call, e := callOf(u, at), u.Entries[at]
		if call == nil || failed(e) {
			continue
		}
		for _, target := range targets(call) {
			l.worked[target] = true
		}
		if limit := l.view.ToolOutputChars; e.Output == nil && e.Content.IsText() && (limit == 0 || e.Chars <= limit) {
			for line := range strings.Lines(e.Content.String()) {
				l.lines[strings.TrimSpace(line)] = true
			}
		}
	}
}

// succeeded reports whether a call of the same tool with a same argument succeeded later.
func (l *laterReads) succeeded(call *continuo.ToolCall) bool {
	return slices.ContainsFunc(targets(call), func(target string) bool { return l.worked[target] })
}

// targets are what a call may be about: its tool with each of its arguments that is a text, such as a path, a command or a query.
func targets(call *continuo.ToolCall) (found []string) {
	object, err := rawjson.ParseObject(json.RawMessage(call.Arguments))
	if err != nil {
		return nil
	}
	for _, member := range object {
		if len(member.Value) > 2 && member.Value[0] == '"' {
			found = append(found, call.Name+"\n"+member.Key+"\n"+string(member.Value))
		}
	}
	return found
}

// callOf is the call whose result an entry of a group is; nil for none.
func callOf(u *Unit, at int) *continuo.ToolCall {
	if at == 0 || !u.Group {
		return nil
	}
	calls := u.Entries[0].ToolCalls
	for i := range calls {
		if calls[i].ID == u.Entries[at].ToolCallID {
			return &calls[i]
		}
	}
	return nil
}

// failed reports whether an entry is the result of a call that failed, by the log or by the client that ran it.
func failed(e *continuo.Entry) bool {
	if e.ToolFailed() {
		return true
	}
	if len(e.Extra) == 0 {
		return false
	}
	extra, err := rawjson.ParseObject(e.Extra)
	return err == nil && string(extra.Get("is_error")) == "true"
}

// recordedCandidates are the candidates of a request that is rebuilt.
func (b *build) recordedCandidates(recorded continuo.GivenUp) (found []candidate) {
	for _, u := range b.units {
		for at, e := range u.Entries {
			if reason := givenUpAs(&recorded, e.Seq); reason != "" {
				found = append(found, candidate{unit: u, index: at, reason: reason})
			}
		}
	}
	return found
}

// givenUpAs is the reason for which a window gives an entry up; "" for none.
func givenUpAs(g *continuo.GivenUp, seq int64) string {
	for _, list := range []struct {
		seqs   []int64
		reason string
	}{{g.ReadAgain, ReasonReadAgain}, {g.Failed, ReasonFailedCall}, {g.Described, ReasonDescribed}} {
		if _, ok := slices.BinarySearch(list.seqs, seq); ok {
			return list.reason
		}
	}
	return ""
}

// giveUp shows units as a window does that gives up some entries. The newest message of a user is shown whole.
func (b *build) giveUp(g continuo.GivenUp) {
	for _, u := range b.units {
		if u != b.newestUser {
			u.giveUp(&g)
		}
	}
}

// givenUp lists candidates at or after a seq.
func givenUp(all []candidate, start int64) (g continuo.GivenUp) {
	for _, c := range all {
		seq := c.unit.Entries[c.index].Seq
		if seq < start {
			continue
		}
		switch c.reason {
		case ReasonReadAgain:
			g.ReadAgain = append(g.ReadAgain, seq)
		case ReasonFailedCall:
			g.Failed = append(g.Failed, seq)
		case ReasonDescribed:
			g.Described = append(g.Described, seq)
		}
	}
	for _, list := range [][]int64{g.ReadAgain, g.Failed, g.Described} {
		slices.Sort(list)
	}
	return g
}

// imageLeftOut replaces an image.
const imageLeftOut = "[Image left out: see the answers after it.]"

// hasImage reports whether an entry has an image in its content.
func hasImage(e *continuo.Entry) bool { return slices.ContainsFunc(e.Content.Parts(), isImage) }

func isImage(p continuo.Part) bool { return !p.IsText() && strings.Contains(p.Type, "image") }

// cutsImages reports whether an entry at a level is shown without its images, because they are given up.
func cutsImages(e *continuo.Entry, at Level, givenUp string) bool {
	return givenUp == ReasonDescribed && (e.Role != continuo.Tool || at < Line)
}

// cutImages replaces the images of a message.
func cutImages(m *Message) Verdict {
	parts := slices.Clone(m.Content.Parts())
	for i, p := range parts {
		if isImage(p) {
			parts[i] = continuo.TextPart(imageLeftOut)
		}
	}
	m.Content = continuo.Parts(parts...)
	return Truncated
}
