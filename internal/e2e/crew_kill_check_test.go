//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	crews "github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/wire/prompt"
	"github.com/continuo-log/continuo/window"
)

// check checks everything that was left of the crew.
func (s *crewHarness) check(ctx context.Context) (found evidence) {
	s.t.Helper()
	rounds, begun := 0, map[string]int{}
	for _, p := range s.clients {
		entries, err := p.readLog(ctx, s.any())
		if err != nil {
			p.errorf("%v", err)
			continue
		}
		failed := s.t.Failed()
		p.checkRules(entries)
		p.checkNoneRunning(ctx, s.any())
		p.checkMessages(entries)
		p.checkTurns(entries)
		w := newRoleChecker(p, entries)
		for i := range entries {
			if isCutAnswer(entries[i]) {
				found.cut++
			}
			if event := entries[i].RunEvent; event != nil && event.Kind == continuo.RunNodeBegan {
				begun[entries[i].NodeID]++
			}
			if entries[i].Round != nil {
				rounds++
				w.checkRequest(ctx, &entries[i])
			}
		}
		w.checkEnd(ctx)
		s.repeated += w.repeated
		if !failed && s.t.Failed() {
			p.logEntries(entries)
		}
	}
	asked := 0
	for role, times := range s.roleServer.asked {
		asked += times
		if times > begun[role] {
			s.t.Errorf("%s was asked %d times, and its turns began %d times", role, times, begun[role])
		}
	}
	s.t.Logf("%d kills, %d people, %d requests of which %d are recorded; %d answers were cut; %d sessions were loaded, %d lost; "+
		"%d prompts repeated the current request", s.kills, len(s.clients), asked, rounds, found.cut, s.roleServer.loads, s.roleServer.lost, s.repeated)
	return found
}

// checkMessages checks that everything that the client sent is in the log once.
func (p *crewClient) checkMessages(entries []continuo.Entry) {
	var said []string
	for i := range entries {
		if entries[i].Role == continuo.User {
			said = append(said, entries[i].Content.String())
		}
	}
	if !slices.Equal(said, p.messages) {
		p.errorf("the log has the messages %q, and what was said is %q", said, p.messages)
	}
}

// checkTurns checks that the roles had their turns in the order of the crew's file, from the first to the last cycle,
// and that none failed: that a program was killed is not the role's fault.
func (p *crewClient) checkTurns(entries []continuo.Entry) {
	turns := 0
	for i := range entries {
		e := &entries[i]
		switch {
		case e.RunEvent == nil:
			continue
		case e.RunEvent.Kind == continuo.CrewRoleFailed:
			p.errorf("entry %d: a turn of %s failed: %s", e.Seq, e.NodeID, e.RunEvent.Reason)
		case e.RunEvent.Kind != continuo.RunNodeFinished:
			continue
		}
		if want := trioRoles[turns%len(trioRoles)]; e.NodeID != want {
			p.errorf("entry %d: turn %d was %s's, not %s's", e.Seq, turns, e.NodeID, want)
			return
		}
		turns++
	}
}

// roleChecker follows what each role was shown of a conversation.
type roleChecker struct {
	*crewClient
	messages map[int64]*continuo.Entry // what was said, by seq
	first    int64                     // of them: the request that is never out of sight
	prompts  []rolePrompt
	asks     map[string]int64 // the seq of the entry that a turn began with, by turn

	cursors map[string]int64
	newSeqs map[string]map[int64]int64 // by role and seq: the answer behind which it was news
	shown   map[string][]string        // by session: the prompts of its answers

	repeated int // prompts that repeated the current request
}

func newRoleChecker(p *crewClient, entries []continuo.Entry) *roleChecker {
	w := &roleChecker{
		crewClient: p, messages: map[int64]*continuo.Entry{}, prompts: p.harness.roleServer.received(), asks: map[string]int64{},
		cursors: map[string]int64{}, newSeqs: map[string]map[int64]int64{}, shown: map[string][]string{},
	}
	for _, role := range trioRoles {
		w.newSeqs[role] = map[int64]int64{}
	}
	for i := range entries {
		e := &entries[i]
		if e.RunEvent != nil && e.RunEvent.Kind == continuo.RunNodeBegan {
			w.asks[e.TurnID] = e.Seq
		}
		if e.Role == continuo.User || e.Role == continuo.Assistant && !e.Hidden && !e.IsPlaceholder() && e.Error == nil {
			w.messages[e.Seq] = e
			if w.first == 0 {
				w.first = e.Seq
			}
		}
	}
	return w
}

// firstLine distinguishes a message from all others.
func firstLine(e *continuo.Entry) string {
	line, _, _ := strings.Cut(e.Content.String(), "\n")
	return line
}

// others are the seqs of what everybody but a role said up to a seq.
func (w *roleChecker) others(role string, through int64) (seqs []int64) {
	for seq, e := range w.messages {
		if seq <= through && e.NodeID != role {
			seqs = append(seqs, seq)
		}
	}
	slices.Sort(seqs)
	return seqs
}

// shownRequest is a request that is made again.
type shownRequest struct {
	Same   bool            `json:"same"`
	Body   json.RawMessage `json:"body"`
	SHA256 string          `json:"sha256"`
	Plan   window.Plan     `json:"plan"`
}

// checkRequest checks the request of an answer.
func (w *roleChecker) checkRequest(ctx context.Context, e *continuo.Entry) {
	var same shownRequest
	path := fmt.Sprintf("/api/crews/trio/context?session_id=%s&role=%s&request=%d", url.QueryEscape(w.key), e.NodeID, e.Seq)
	if code, err := w.harness.any().get(ctx, path, &same); err != nil || code != http.StatusOK || !same.Same {
		w.errorf("the request of entry %d is made again with status %d, %v, same: %t", e.Seq, code, err, same.Same)
		return
	}
	if e.Error != nil {
		return // its cursor stays: whatever was shown is shown again
	}
	asked := w.promptOf(e, &same)
	if asked < 0 {
		w.errorf("entry %d belongs to a request that %s did not get:\n%s", e.Seq, e.NodeID, same.Body)
		return
	}
	if e.Round.Cursor < w.cursors[e.NodeID] {
		w.errorf("entry %d: the cursor of %s goes back from %d to %d", e.Seq, e.NodeID, w.cursors[e.NodeID], e.Round.Cursor)
	}
	w.cursors[e.NodeID] = e.Round.Cursor
	w.checkNewMarks(e, &same.Plan)
	w.checkKnowledge(e, asked)
	current := w.current(e)
	if current == 0 {
		w.errorf("entry %d: %s answered, and there was no message of the user when its turn began", e.Seq, e.NodeID)
		return
	}
	w.checkRequests(e, current, w.prompts[asked].text)
	if w.prompts[asked].session != "" {
		w.checkOnce(e, current, w.prompts[asked])
	}
}

// promptOf finds the prompt of an answer.
func (w *roleChecker) promptOf(e *continuo.Entry, request *shownRequest) int {
	session, same := "", func(text string) bool { return sha256Of([]byte(text)) == request.SHA256 }
	if e.NodeID != modelRole {
		asked, err := prompt.Parse(request.Body)
		if err != nil {
			w.errorf("entry %d: %v", e.Seq, err)
			return -1
		}
		same = func(text string) bool { return text == asked.Text() }
	}
	if recorded, err := crews.ReadSnapshot(e.RunEvent); e.NodeID == trioRoles[0] && err == nil && recorded != nil {
		session = recorded.Role(e.NodeID).Session
	}
	for i := len(w.prompts) - 1; i >= 0; i-- { // the newest: an earlier one was not answered
		if c := w.prompts[i]; c.role == e.NodeID && c.session == session && same(c.text) {
			return i
		}
	}
	return -1
}

// checkNewMarks checks by the plan that nothing is news to a role twice.
func (w *roleChecker) checkNewMarks(e *continuo.Entry, plan *window.Plan) {
	for _, item := range plan.Items {
		if item.Reason != "new" {
			continue
		}
		for seq := item.Seq; seq <= max(item.Seq, item.Through); seq++ {
			said := w.messages[seq]
			if said == nil || said.NodeID == e.NodeID {
				continue
			}
			if before := w.newSeqs[e.NodeID][seq]; before != 0 {
				w.errorf("entry %d was news to %s in the requests of the entries %d and %d", seq, e.NodeID, before, e.Seq)
			}
			w.newSeqs[e.NodeID][seq] = e.Seq
		}
	}
}

// checkKnowledge checks by the prompts that a role received that it knows everything up to its cursor, one that
// remembers in the process that has answered.
func (w *roleChecker) checkKnowledge(e *continuo.Entry, asked int) {
	c := w.prompts[asked]
	known := c.text
	if c.session != "" {
		var all []string
		for _, before := range w.prompts[:asked+1] {
			if before.process == c.process {
				all = append(all, before.text)
			}
		}
		known = strings.Join(all, "\n")
	}
	for _, seq := range w.others(e.NodeID, e.Round.Cursor) {
		if line := firstLine(w.messages[seq]); !strings.Contains(known, line) {
			w.errorf("entry %d: the cursor of %s stands at %d, and it was not shown entry %d, %q:\n%s", e.Seq, e.NodeID, e.Round.Cursor, seq, line, c.text)
		}
	}
}

// checkRequests checks that the user's original request and the current one are in sight of every role.
func (w *roleChecker) checkRequests(e *continuo.Entry, current int64, text string) {
	for _, seq := range []int64{w.first, current} {
		if line := firstLine(w.messages[seq]); !strings.Contains(text, line) {
			w.errorf("entry %d: %s was not shown the request of entry %d, %q:\n%s", e.Seq, e.NodeID, seq, line, text)
		}
	}
}

// current is the seq of the user's newest message before the turn of an answer began; 0 for none.
func (w *roleChecker) current(answer *continuo.Entry) (newest int64) {
	for seq, e := range w.messages {
		if e.Role == continuo.User && seq < w.asks[answer.TurnID] {
			newest = max(newest, seq)
		}
	}
	return newest
}

// requestBlock is a request of the user that a prompt repeats.
var requestBlock = regexp.MustCompile(`(?ms)^\[(ORIGINAL|CURRENT) REQUEST\]\n(.*?)\n\[END REQUEST\]$`)

// checkOnce checks that a session that remembers is shown each message once, however often its process was killed. Only
// the original request and the current one are repeated, between lines that say so.
func (w *roleChecker) checkOnce(e *continuo.Entry, current int64, c rolePrompt) {
	requests := map[string]int64{"ORIGINAL": w.first, "CURRENT": current}
	for _, block := range requestBlock.FindAllStringSubmatch(c.text, -1) {
		if request := w.messages[requests[block[1]]]; block[2] != "User: "+request.Content.String() {
			w.errorf("entry %d: the %s REQUEST of %s is not entry %d, %q:\n%s", e.Seq, block[1], e.NodeID, request.Seq, request.Content, c.text)
		}
		if block[1] == "CURRENT" {
			w.repeated++
		}
	}
	messages := requestBlock.ReplaceAllString(c.text, "")
	for _, seq := range w.others(e.NodeID, e.Round.Cursor) {
		line := firstLine(w.messages[seq])
		if strings.Count(c.text, line) > 1 {
			w.errorf("entry %d: %s, which remembers, was shown %q twice:\n%s", e.Seq, e.NodeID, line, c.text)
		}
		same := slices.IndexFunc(w.shown[c.session], func(text string) bool { return strings.Contains(text, line) })
		if same >= 0 && strings.Contains(messages, line) {
			w.errorf("entry %d: %s, which remembers, was shown %q again:\n%s\n\nand before\n%s", e.Seq, e.NodeID, line, c.text, w.shown[c.session][same])
		}
	}
	w.shown[c.session] = append(w.shown[c.session], c.text)
}

// checkEnd checks that in the end every role received every message.
func (w *roleChecker) checkEnd(ctx context.Context) {
	var status engine.CrewStatus
	if code, err := w.harness.any().get(ctx, "/api/crews/trio/status?session_id="+url.QueryEscape(w.key), &status); err != nil || code != http.StatusOK {
		w.errorf("status %d, %v", code, err)
		return
	}
	for i := range status.Roles {
		role := &status.Roles[i]
		var received []int64
		for seq := range w.newSeqs[role.Name] {
			received = append(received, seq)
		}
		slices.Sort(received)
		if want := w.others(role.Name, status.LastSeq); role.HasNews || !slices.Equal(received, want) {
			w.errorf("to %s, whose cursor stands at %d of %d (news: %t), the entries %v were news, and others said %v", role.Name, role.Cursor, status.LastSeq, role.HasNews, received, want)
		}
	}
}
