package telegram

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/continuo-log/continuo/internal/plaintext"
)

// origin is the original sender of a forwarded message: a MessageOrigin.
type origin struct {
	User     *account `json:"sender_user"`
	UserName string   `json:"sender_user_name"` // of an account that is hidden
	Sender   *chat    `json:"sender_chat"`      // a group, for an anonymous administrator
	Channel  *chat    `json:"chat"`
}

// quotation is the part of a message that a reply quotes: a TextQuote.
type quotation struct {
	Text string `json:"text"`
}

// externalReply is a message of another chat that a reply answers: an ExternalReplyInfo.
type externalReply struct {
	Origin origin `json:"origin"`
}

// entity is a part of a message with its own formatting, in UTF-16 units.
type entity struct {
	Type   string `json:"type"`
	Offset int    `json:"offset"`
	Length int    `json:"length"`
}

// The headers of quoted text. The text follows a header, each line with a ">" before it.
const (
	repliesTo     = "[replies to "
	forwardedFrom = "[forwarded from "
)

// maxQuoted is how many characters of a message a reply to it repeats.
const maxQuoted = 300

// withQuote formats a message for the roles: with the text that it replies to, or under the name of the original sender
// of a forwarded message. The person's own lines that look like such headers get a backslash.
func (f *FrontEnd) withQuote(m *message, text string) string {
	if m.Forward != nil {
		return forwardedFrom + m.Forward.name() + "]\n" + quote(text)
	}
	author, quoted, ok := f.repliedTo(m)
	if !ok {
		return escapeHeaders(text, false)
	}
	header := repliesTo + author + "]\n"
	if !plaintext.IsBlank(quoted) {
		header += quote(shorten(strings.TrimSpace(clean(quoted)), maxQuoted)) + "\n"
	}
	return header + escapeHeaders(text, true)
}

// repliedTo returns the writer of the message that m answers, and its relevant text; ok is false if m is no reply.
func (f *FrontEnd) repliedTo(m *message) (author, quoted string, ok bool) {
	switch replied := m.ReplyTo; {
	case replied != nil:
		author, quoted = f.writer(replied)
		if quoted == "" && !replied.has() && m.Quote == nil {
			return "", "", false // Telegram's service message, such as the beginning of a topic
		}
	case m.External != nil:
		author = m.External.Origin.name()
	default:
		return "", "", false
	}
	if m.Quote != nil {
		quoted = m.Quote.Text
	}
	return author, quoted, true
}

// writer returns the writer of a message, and its text. For a role's answer the writer is the role, whichever bot has
// sent it.
func (f *FrontEnd) writer(m *message) (author, quoted string) {
	quoted = cmp.Or(m.Text, m.Caption)
	switch {
	case m.Forward != nil:
		return m.Forward.name(), quoted
	case m.isBots():
		name, quoted := f.roleOf(m)
		return "Assistant" + inBrackets(name), quoted
	default:
		return "User" + inBrackets(m.name()), quoted
	}
}

// roleOf returns the display name of the role whose answer a bot has sent, and the answer without the name above it.
// The name is "" where it cannot be determined, as for a later part of an answer that the listener has sent.
func (f *FrontEnd) roleOf(m *message) (name, quoted string) {
	header, rest, _ := strings.Cut(m.Text, "\n")
	isHeader := slices.Contains(m.Entities, entity{"underline", 0, countUnits(header)})
	for role, token := range f.options.RoleTokens {
		if tokenPattern.FindStringSubmatch(token)[1] == m.From.id() {
			name = cmp.Or(f.options.DisplayNames[role], role)
		}
	}
	for _, known := range f.options.DisplayNames {
		if isHeader && header == headerOf(known, f.options.MaxMessageLength) {
			return cmp.Or(name, known), rest
		}
	}
	return name, cmp.Or(m.Text, m.Caption)
}

// name is the name of a forwarded message's original sender.
func (o *origin) name() string {
	switch {
	case o.User != nil && o.User.IsBot:
		return "Assistant" + inBrackets(o.User.name())
	case o.User != nil:
		return "User" + inBrackets(o.User.name())
	case o.UserName != "":
		return "User" + inBrackets(o.UserName)
	case o.Sender != nil:
		return "User" + inBrackets(o.Sender.Title)
	case o.Channel != nil:
		return "the channel" + inBrackets(o.Channel.Title)
	}
	return "User"
}

// inBrackets formats a name in brackets, without characters that could end the header around it; "" for no name.
func inBrackets(name string) string {
	name = oneLine(strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune("()[]{}<>:", plaintext.PlainRune(r)):
			return ' '
		case !plaintext.IsVisible(r) && r != ' ' && r != '\n' && r != '\t':
			return -1
		}
		return r
	}, plaintext.Clean(name)), maxName)
	if name == "" {
		return ""
	}
	return " (" + name + ")"
}

// quote puts "> " before each line.
func quote(text string) string { return "> " + strings.ReplaceAll(text, "\n", "\n> ") }

// shorten truncates a text to a number of characters.
func shorten(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return strings.TrimSpace(string([]rune(text)[:limit-1])) + "…"
}

// escapeHeaders puts a backslash before the person's lines that look like one of our headers and, after a quote, before
// those that would extend it.
func escapeHeaders(text string, behindQuote bool) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		seen := plaintext.TrimInvisible(line, "")
		first, _ := utf8.DecodeRuneInString(seen)
		if looksLikeHeader(seen) || behindQuote && plaintext.PlainRune(first) == '>' {
			lines[i] = `\` + line
		}
	}
	return strings.Join(lines, "\n")
}

// looksLikeHeader reports whether a line could be taken for a header of quoted text, regardless of the form of its
// letters, spaces and brackets, and of leading marks.
func looksLikeHeader(line string) bool {
	line = plaintext.TrimInvisible(line, "\\*_#>~`")
	first, _ := utf8.DecodeRuneInString(line)
	if plaintext.PlainRune(first) != '[' {
		return false
	}
	head := lettersOf(line, len("forwardedfrom"))
	return strings.HasPrefix(head, "repliesto") || head == "forwardedfrom"
}

// lettersOf returns the first letters of a line in the form that they look like.
func lettersOf(line string, limit int) string {
	var head strings.Builder
	for _, r := range line {
		if r = plaintext.PlainRune(r); r >= 'a' && r <= 'z' {
			if head.WriteRune(r); head.Len() == limit {
				break
			}
		}
	}
	return head.String()
}
