package task

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
)

// The limits of a group's text: the calls of an assistant entry and their results.
const (
	maxText      = 1000 // characters of the text before the calls
	maxArguments = 60   // characters of a call's arguments
	maxResult    = 80   // characters of a result
	maxCalls     = 8    // calls of a group
)

// maxAttachments is the most attachments of a message; the first ones are kept.
const maxAttachments = 10

// FromEntries converts entries of the log, in order, to the messages of a history. It omits system entries, hidden
// entries and empty entries. A group becomes one line of the assistant: its text, its calls and their results. An
// incomplete answer begins with the reason, redacted content reads [redacted], and the speaker is named where the log
// knows it. Images and files are attachments, by their web address or else by the part's path in the API.
func FromEntries(entries []continuo.Entry) []Message {
	var messages []Message
	for i := 0; i < len(entries); i++ {
		e := &entries[i]
		group := entries[i : i+1]
		var text string
		role := Assistant
		switch {
		case e.Hidden:
			continue
		case e.Role == continuo.User:
			role, text = User, userText(e)
		case e.HasCalls():
			results := resultsAfter(entries[i+1:])
			group = entries[i : i+1+len(results)]
			i += len(results)
			text = groupLine(e, results)
		case e.Role == continuo.Assistant:
			text = userText(e)
		case e.Role == continuo.Tool: // its call is before the range
			text = oneLine(e.ToolName, maxLabel) + " -> " + resultLine(e)
		}
		if strings.TrimSpace(text) != "" && !e.IsPlaceholder() {
			messages = append(messages, Message{
				Role: role, Content: named(e, text), Timestamp: timestampOf(e.CreatedAt),
				Attachments: attachmentsOf(group),
			})
		}
	}
	return messages
}

// resultsAfter returns the tool entries that follow a call, with the hidden ones between them.
func resultsAfter(entries []continuo.Entry) []continuo.Entry {
	end := 0
	for i := range entries {
		if entries[i].Role == continuo.Tool {
			end = i + 1
		} else if !entries[i].Hidden {
			break
		}
	}
	return entries[:end]
}

// userText is the text of an entry, with the reason before it if it is incomplete.
func userText(e *continuo.Entry) string {
	text := entryText(e)
	if e.Error == nil {
		return text
	}
	what := "failed"
	if strings.TrimSpace(text) != "" {
		what = "broke off"
	}
	note := fmt.Sprintf("[%s: %s]", what, label(string(e.Error.Reason)+" "+e.Error.Message, 100))
	return strings.TrimSpace(note + " " + text)
}

// entryText is an entry's text, with placeholders for its non-text parts.
func entryText(e *continuo.Entry) string {
	if e.Redacted != nil {
		return continuo.RedactedText
	}
	if !e.Content.IsParts() {
		return clean(e.Content.String())
	}
	texts := make([]string, 0, len(e.Content.Parts()))
	for _, part := range e.Content.Parts() {
		if part.IsText() {
			texts = append(texts, clean(part.Text))
		} else {
			texts = append(texts, placeholder(part.Type, attachmentOf(part.Type, part.Raw), ""))
		}
	}
	return strings.Join(texts, "\n")
}

// attachmentsOf are the images and files of entries.
func attachmentsOf(entries []continuo.Entry) []Attachment {
	var attachments []Attachment
	for i := range entries {
		e := &entries[i]
		if e.Hidden || e.Redacted != nil {
			continue
		}
		for index, part := range e.Content.Parts() {
			attached := attachmentOf(part.Type, part.Raw)
			if attached.Type == "" {
				continue
			}
			if len(attachments) == maxAttachments {
				return attachments
			}
			if attached.URL == "" {
				attached.Ref = partPath(e, index)
			}
			attached.Name = cmp.Or(attached.Name, mediaTypeOf(e, index))
			attachments = append(attachments, attached)
		}
	}
	return attachments
}

// partPath is the API's path of a part of an entry's content.
func partPath(e *continuo.Entry, index int) string {
	return fmt.Sprintf("/api/conversations/%s/entries/%d/parts/%d", url.PathEscape(e.ConversationID), e.Seq, index)
}

// mediaTypeOf is the media type that the log has for a part stored as an object; the part's name is in that object.
func mediaTypeOf(e *continuo.Entry, index int) string {
	at := slices.IndexFunc(e.Attachments, func(a continuo.Attachment) bool { return a.Part == index })
	if at < 0 {
		return ""
	}
	return e.Attachments[at].MediaType
}

// groupLine writes a group on one line.
func groupLine(e *continuo.Entry, results []continuo.Entry) string {
	var group []string
	for i, call := range e.ToolCalls {
		if i == maxCalls {
			group = append(group, fmt.Sprintf("and %d more", len(e.ToolCalls)-i))
			break
		}
		line := fmt.Sprintf("%s(%s) -> ", oneLine(call.Name, maxLabel), oneLine(call.Arguments, maxArguments))
		if result := resultOf(results, call.ID, i); result != nil {
			line += resultLine(result)
		} else {
			line += "no result"
		}
		group = append(group, line)
	}
	return strings.TrimSpace(oneLine(userText(e), maxText) + " called " + strings.Join(group, "; "))
}

// resultOf finds the result of a call, nil if there is none to show. Imported calls may share an id or have none; then
// the position decides.
func resultOf(results []continuo.Entry, id string, at int) *continuo.Entry {
	if at < len(results) && results[at].ToolCallID == id && !results[at].Hidden {
		return &results[at]
	}
	for i := range results {
		if results[i].ToolCallID == id && !results[i].Hidden {
			return &results[i]
		}
	}
	return nil
}

// resultLine describes the result of a call: the tool's own outcome, or the first line of its output.
func resultLine(e *continuo.Entry) string {
	text := e.Outcome
	switch {
	case e.Redacted != nil:
		text = continuo.RedactedText
	case text != "":
	default:
		text = entryText(e)
		if preview, ok := e.Preview(); ok {
			text = preview.Head
		}
		text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	}
	text = oneLine(text, maxResult)
	switch {
	case e.PartType == continuo.PartInterrupted:
		return strings.TrimSpace("interrupted: " + text)
	case e.ToolFailed():
		return strings.TrimSpace("failed: " + text)
	case text == "":
		return "(no output)"
	}
	return text
}

// named puts the speaker's name before a text, in a crew or where the protocol gives a name.
func named(e *continuo.Entry, text string) string {
	name := e.Name
	if author := e.Author; author != nil {
		name = cmp.Or(author.DisplayName, author.RoleName, author.AgentName, name)
	}
	if name = oneLine(name, maxLabel); name == "" {
		return text
	}
	return name + ": " + text
}
