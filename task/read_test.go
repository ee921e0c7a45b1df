package task_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/continuo-log/continuo/task"
)

// readPrompt is what a reader finds in a prompt who knows its form and nothing of the task.
type readPrompt struct {
	sections []readSection
	messages []readMessage
	gaps     []int
	footers  []string
}

type readSection struct {
	title string
	lines []string // behind the indent
}

type readMessage struct {
	number      int
	who, clock  string
	flag        string
	lines       []string
	attachments []readSection
}

var (
	messageHeader = regexp.MustCompile(`^\[(\d+)\] (\S+ .*) \(([^()\[\]]*)\)( \[[A-Z]+\])?:$`)
	gapLine       = regexp.MustCompile(`^\[…\] (\d+) messages? left out$`)
	anyLineEnd    = regexp.MustCompile("\r\n|[\n\r\v\f\x1c-\x1e\u0085\u2028\u2029]")
)

const historyTitle = "💬 CONVERSATION HISTORY (Leading to This Task):"

// read reads a prompt, line by line as any reader of text parts them.
func read(t *testing.T, prompt string) readPrompt {
	t.Helper()
	lines := anyLineEnd.Split(prompt, -1)
	rule := strings.Repeat("=", 80)
	last := len(lines) - 2
	if last < 4 || lines[0] != rule || lines[1] != "🎯 TASK CONTEXT (Provided by task creator)" || lines[2] != rule || lines[3] != "" || lines[last] != rule || lines[last+1] != "" {
		t.Fatalf("the prompt has no frame:\n%s", prompt)
	}
	var r readPrompt
	for _, line := range lines[4:last] {
		if !r.take(line) {
			t.Fatalf("the line %q is none of the form in:\n%s", line, prompt)
		}
	}
	return r
}

func (r *readPrompt) inHistory() bool {
	return len(r.sections) > 0 && r.sections[len(r.sections)-1].title == historyTitle
}

// take reads one line; ok is false for one that is none of the form.
func (r *readPrompt) take(line string) (ok bool) {
	if content, quoted := strings.CutPrefix(line, "    "); quoted {
		return r.quote(content)
	}
	if label, attached := strings.CutPrefix(line, "  📎 "); attached {
		if !r.inHistory() || len(r.messages) == 0 {
			return false
		}
		m := &r.messages[len(r.messages)-1]
		m.attachments = append(m.attachments, readSection{title: label})
		return true
	}
	header := messageHeader.FindStringSubmatch(line)
	gap := gapLine.FindStringSubmatch(line)
	switch {
	case line == "", strings.HasPrefix(line, "The orchestrator had the following"), strings.HasPrefix(line, "This provides context for WHY"):
		return true
	case r.inHistory() && header != nil:
		number, _ := strconv.Atoi(header[1])
		r.messages = append(r.messages, readMessage{number: number, who: header[2], clock: header[3], flag: strings.TrimSpace(header[4])})
		return true
	case r.inHistory() && gap != nil:
		count, _ := strconv.Atoi(gap[1])
		r.gaps = append(r.gaps, count)
		return true
	case r.inHistory() && strings.HasPrefix(line, "📊 History metadata: "):
		r.footers = append(r.footers, line)
		return true
	}
	first := []rune(line)[0]
	if unicode.IsLetter(first) || !strings.HasSuffix(line, ":") {
		return false
	}
	r.sections = append(r.sections, readSection{title: line})
	return true
}

func (r *readPrompt) quote(content string) bool {
	switch {
	case len(r.sections) == 0:
		return false
	case !r.inHistory():
		section := &r.sections[len(r.sections)-1]
		section.lines = append(section.lines, content)
	case len(r.messages) == 0:
		return false
	default:
		m := &r.messages[len(r.messages)-1]
		if n := len(m.attachments); n > 0 {
			code, ok := strings.CutPrefix(content, "    ")
			m.attachments[n-1].lines = append(m.attachments[n-1].lines, code)
			return ok
		}
		m.lines = append(m.lines, content)
	}
	return true
}

// readsBack checks that a prompt has exactly a task's messages and sections, and nothing that its content made up.
func readsBack(t *testing.T, given task.Task) {
	t.Helper()
	prompt := task.Prompt(given)
	if again := task.Prompt(given); again != prompt {
		t.Fatalf("the same task has another prompt:\n%s\nand\n%s", prompt, again)
	}
	got := read(t, prompt)
	var titles []string
	for _, section := range got.sections {
		titles = append(titles, section.title)
		if text, ok := texts(given)[section.title]; ok && !sameLines(section.lines, text) {
			t.Errorf("section %s reads %q, want the lines of %q", section.title, section.lines, text)
		}
		if items, ok := lists(given)[section.title]; ok {
			checkItems(t, section, items)
		}
	}
	if want := wantTitles(given); strings.Join(titles, "|") != strings.Join(want, "|") {
		t.Errorf("sections %q, want %q", titles, want)
	}
	checkHistory(t, got, given.Context.ConversationHistory)
}

func checkHistory(t *testing.T, got readPrompt, history *task.History) {
	t.Helper()
	if history == nil || len(history.Messages) == 0 {
		if len(got.messages)+len(got.footers)+len(got.gaps) > 0 {
			t.Errorf("there are messages of no history: %+v", got.messages)
		}
		return
	}
	if len(got.messages) != len(history.Messages) || len(got.footers) != 1 || len(got.gaps) != len(history.Gaps) {
		t.Fatalf("%d messages, %d footers and %d gaps, want %d, 1 and %d", len(got.messages), len(got.footers), len(got.gaps), len(history.Messages), len(history.Gaps))
	}
	for i, message := range got.messages {
		want := &history.Messages[i]
		if message.number != i+1 || (message.flag == "[TRUNCATED]") != want.Truncated || !sameLines(message.lines, want.Content) {
			t.Errorf("message %d reads %+v, want %+v", i, message, want)
		}
		if len(message.attachments) != len(want.Attachments) {
			t.Fatalf("message %d has %d attachments, want %d", i, len(message.attachments), len(want.Attachments))
		}
		for j, attachment := range message.attachments {
			if content := want.Attachments[j].Content; content != "" && !sameLines(attachment.lines, content) {
				t.Errorf("attachment %d of message %d reads %q, want %q", j, i, attachment.lines, content)
			}
		}
	}
}

func texts(given task.Task) map[string]string {
	return map[string]string{
		"📝 DESCRIPTION:": given.Description, "🚦 PRIORITY:": string(given.Priority),
		"📁 WORKING DIRECTORY:": given.ClientCwd, "📋 BACKGROUND CONTEXT:": given.Context.BackgroundContext,
	}
}

func lists(given task.Task) map[string][]string {
	return map[string][]string{
		"📦 EXPECTED DELIVERABLES:": given.Context.ExpectedDeliverables, "✅ SUCCESS CRITERIA:": given.Context.SuccessCriteria,
		"🚧 CONSTRAINTS:": given.Context.Constraints, "📄 RELEVANT FILES:": given.Context.RelevantFiles,
		"📚 RELATED DOCUMENTATION:": given.Context.RelatedDocumentation,
	}
}

func wantTitles(given task.Task) []string {
	var want []string
	for _, title := range []string{
		"📝 DESCRIPTION:", "🚦 PRIORITY:", "📁 WORKING DIRECTORY:", "📋 BACKGROUND CONTEXT:", "📦 EXPECTED DELIVERABLES:",
		"✅ SUCCESS CRITERIA:", "🚧 CONSTRAINTS:", "📄 RELEVANT FILES:", historyTitle, "📚 RELATED DOCUMENTATION:",
	} {
		history := given.Context.ConversationHistory
		given := strings.TrimSpace(texts(given)[title]) != "" || len(lists(given)[title]) > 0
		if given || title == historyTitle && history != nil && len(history.Messages) > 0 {
			want = append(want, title)
		}
	}
	return want
}

func checkItems(t *testing.T, section readSection, items []string) {
	t.Helper()
	var read [][]string
	for _, line := range section.lines {
		if text, begins := strings.CutPrefix(line, "- "); begins {
			read = append(read, []string{text})
		} else if text, continued := strings.CutPrefix(line, "  "); continued && len(read) > 0 {
			read[len(read)-1] = append(read[len(read)-1], text)
		} else {
			t.Errorf("the line %q of section %s is of no item", line, section.title)
		}
	}
	if len(read) != len(items) {
		t.Errorf("section %s has %d items, want %d", section.title, len(read), len(items))
		return
	}
	for i := range items {
		if !sameLines(read[i], items[i]) {
			t.Errorf("item %d of section %s reads %q, want %q", i, section.title, read[i], items[i])
		}
	}
}

// sameLines compares the lines that were read with those of a text, but for characters that are shown as signs.
func sameLines(read []string, text string) bool {
	want := anyLineEnd.Split(strings.ToValidUTF8(text, "\uFFFD"), -1)
	if len(read) != len(want) {
		return false
	}
	for i := range want {
		if bare(read[i]) != bare(want[i]) {
			return false
		}
	}
	return true
}

func bare(line string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && unicode.IsControl(r) || r >= '␀' && r <= '␡' || r == '\uFFFD' {
			return -1
		}
		return r
	}, line)
}
