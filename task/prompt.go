package task

import (
	_ "embed"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

//go:embed conversation-history.md
var historyIntroduction string

// contentIndent begins every line of quoted text in a prompt; no other line begins with it.
const contentIndent = "    "

// Prompt writes a task for the agent that takes it on: the block TASK CONTEXT with a section for each given field. The
// result is deterministic. Unindented lines are structure, all given text is indented, so that no text looks like a
// header, a message or a footer.
//
// The footer of the history counts the truncated messages only if there are some.
func Prompt(task Task) string {
	var b strings.Builder
	rule := strings.Repeat("=", 80) + "\n"
	b.WriteString(rule + "🎯 TASK CONTEXT (Provided by task creator)\n" + rule + "\n")
	c := &task.Context
	writeText(&b, "📝 DESCRIPTION", task.Description)
	writeText(&b, "🚦 PRIORITY", string(task.Priority))
	writeText(&b, "📁 WORKING DIRECTORY", task.ClientCwd)
	writeText(&b, "📋 BACKGROUND CONTEXT", c.BackgroundContext)
	writeList(&b, "📦 EXPECTED DELIVERABLES", c.ExpectedDeliverables)
	writeList(&b, "✅ SUCCESS CRITERIA", c.SuccessCriteria)
	writeList(&b, "🚧 CONSTRAINTS", c.Constraints)
	writeList(&b, "📄 RELEVANT FILES", c.RelevantFiles)
	writeHistory(&b, c.ConversationHistory)
	writeList(&b, "📚 RELATED DOCUMENTATION", c.RelatedDocumentation)
	b.WriteString(rule)
	return b.String()
}

// writeText writes the section of a text; nothing for a blank one.
func writeText(b *strings.Builder, title, text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	b.WriteString(title + ":\n\n")
	writeIndented(b, contentIndent, contentIndent, text)
	b.WriteByte('\n')
}

// writeList writes the section of a list; nothing for an empty one.
func writeList(b *strings.Builder, title string, items []string) {
	if len(items) == 0 {
		return
	}
	b.WriteString(title + ":\n\n")
	for _, item := range items {
		writeIndented(b, contentIndent+"- ", contentIndent+"  ", item)
	}
	b.WriteByte('\n')
}

func writeHistory(b *strings.Builder, history *History) {
	if history == nil || len(history.Messages) == 0 {
		return
	}
	b.WriteString("💬 CONVERSATION HISTORY (Leading to This Task):\n\n" + historyIntroduction + "\n")
	gaps, leftOut := history.Gaps, 0
	for i := range history.Messages {
		for len(gaps) > 0 && gaps[0].Before <= i {
			fmt.Fprintf(b, "[…] %s left out\n\n", count(gaps[0].LeftOut))
			leftOut += gaps[0].LeftOut
			gaps = gaps[1:]
		}
		history.Messages[i].write(b, i+1)
	}
	fmt.Fprintf(b, "📊 History metadata: %d messages", len(history.Messages))
	for _, part := range []struct {
		count int
		what  string
	}{{history.TruncatedCount, "truncated"}, {history.SummarizedCount, "summarized"}, {leftOut, "left out"}} {
		if part.count > 0 {
			fmt.Fprintf(b, ", %d %s", part.count, part.what)
		}
	}
	b.WriteString("\n\n")
}

func count(messages int) string {
	if messages == 1 {
		return "1 message"
	}
	return fmt.Sprintf("%d messages", messages)
}

func (m *Shaped) write(b *strings.Builder, number int) {
	flag := ""
	switch {
	case m.Truncated:
		flag = " [TRUNCATED]"
	case m.Summarized:
		flag = " [SUMMARIZED]"
	}
	fmt.Fprintf(b, "[%d] %s %s (%s)%s:\n", number, m.Role.sign(), m.Role.title(), clockOf(m.Timestamp), flag)
	writeIndented(b, contentIndent, contentIndent, m.Content)
	for i := range m.Attachments {
		m.Attachments[i].write(b)
	}
	b.WriteByte('\n')
}

// sign is the emoji of a role.
func (r Role) sign() string {
	switch r {
	case User:
		return "👤"
	case Assistant:
		return "🤖"
	case Orchestrator:
		return "🎯"
	}
	return "💬"
}

// title is the role as a header names it: capitalized.
func (r Role) title() string {
	name := strings.ToLower(label(string(r), 40))
	if name == "" {
		return "Unknown"
	}
	first, size := utf8.DecodeRuneInString(name)
	return string(unicode.ToUpper(first)) + name[size:]
}
