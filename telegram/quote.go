package telegram

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/continuo-log/continuo/internal/plaintext"
)

// origin says who wrote a forwarded message first: a MessageOrigin.
type origin struct {
	User     *account `json:"sender_user"`
	UserName string   `json:"sender_user_name"` // of who hides the account
	Sender   *chat    `json:"sender_chat"`      // a group, for an anonymous administrator
	Channel  *chat    `json:"chat"`
}

// quotation is the part of a message that a reply quotes: a TextQuote.
type quotation struct {
	Text string `json:"text"`
}

// elsewhere is a message of another chat that a reply answers: an ExternalReplyInfo.
type elsewhere struct {
	Origin origin `json:"origin"`
}

// entity is a part of a message that is shown in a way of its own, in UTF-16 units.
type entity struct {
	Type   string `json:"type"`
	Offset int    `json:"offset"`
	Length int    `json:"length"`
}

// The lines that introduce words of somebody else. Each is followed by those words, each line behind a ">".
const (
	repliesTo     = "[replies to "
	forwardedFrom = "[forwarded from "
)

// maxQuoted is how many characters of a message are repeated in a reply to it.
const maxQuoted = 300

// told is a message as the roles are told it: with the words that it replies to, or under the name of who wrote what is
// forwarded. What the person typed cannot pass for either: such lines get a backslash.
func (f *FrontEnd) told(m *message, text string) string {
	if m.Forward != nil {
		return forwardedFrom + m.Forward.name() + "]\n" + quote(text)
	}
	who, words, ok := f.repliedTo(m)
	if !ok {
		return escapeHeaders(text, false)
	}
	header := repliesTo + who + "]\n"
	if !plaintext.IsBlank(words) {
		header += quote(shorten(strings.TrimSpace(clean(words)), maxQuoted)) + "\n"
	}
	return header + escapeHeaders(text, true)
}

// repliedTo says who wrote the message that m answers, and the words of it that matter; ok is false for no reply.
func (f *FrontEnd) repliedTo(m *message) (who, words string, ok bool) {
	switch replied := m.ReplyTo; {
	case replied != nil:
		who, words = f.writer(replied)
		if words == "" && !replied.has() && m.Quote == nil {
			return "", "", false // Telegram's own, such as the beginning of a topic
		}
	case m.External != nil:
		who = m.External.Origin.name()
	default:
		return "", "", false
	}
	if m.Quote != nil {
		words = m.Quote.Text
	}
	return who, words, true
}

// writer says who wrote a message, and what. A role's answer is the role's, whichever bot has sent it.
func (f *FrontEnd) writer(m *message) (who, words string) {
	words = cmp.Or(m.Text, m.Caption)
	switch {
	case m.Forward != nil:
		return m.Forward.name(), words
	case m.isBots():
		name, words := f.roleOf(m)
		return "Assistant" + inBrackets(name), words
	default:
		return "User" + inBrackets(m.name()), words
	}
}

// roleOf returns the display name of the role whose answer a bot has sent, and the answer without that name above it.
// The name is "" where it cannot be told, as for a later part of an answer that the listener has sent.
func (f *FrontEnd) roleOf(m *message) (name, words string) {
	header, rest, _ := strings.Cut(m.Text, "\n")
	isHeader := slices.Contains(m.Entities, entity{"underline", 0, countUnits(header)})
	for role, token := range f.options.RoleTokens {
		if tokenForm.FindStringSubmatch(token)[1] == m.From.id() {
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

// name is who wrote a forwarded message first.
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

// inBrackets is a name behind what it names, without what could end the header that it stands in; "" for no name.
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

// quote puts a ">" before each line.
func quote(text string) string { return "> " + strings.ReplaceAll(text, "\n", "\n> ") }

// shorten cuts a text to so many characters.
func shorten(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return strings.TrimSpace(string([]rune(text)[:most-1])) + "…"
}

// escapeHeaders puts a backslash before the lines of a person that read like a header of ours and, behind a quote, before
// those that would lengthen it.
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

// looksLikeHeader reports whether a line could be taken for one that introduces words of somebody else, whatever its
// letters, blanks and brackets are, and whatever marks stand before it.
func looksLikeHeader(line string) bool {
	line = plaintext.TrimInvisible(line, "\\*_#>~`")
	first, _ := utf8.DecodeRuneInString(line)
	if plaintext.PlainRune(first) != '[' {
		return false
	}
	head := lettersOf(line, len("forwardedfrom"))
	return strings.HasPrefix(head, "repliesto") || head == "forwardedfrom"
}

// lettersOf are the first letters of a line, as they look at a glance.
func lettersOf(line string, most int) string {
	var head strings.Builder
	for _, r := range line {
		if r = plaintext.PlainRune(r); r >= 'a' && r <= 'z' {
			if head.WriteRune(r); head.Len() == most {
				break
			}
		}
	}
	return head.String()
}
