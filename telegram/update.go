package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/plaintext"
)

// update is an update from Telegram, with the fields that are used here.
type update struct {
	ID      int64    `json:"update_id"`
	Message *message `json:"message"`
	Edited  *message `json:"edited_message"`
	invalid bool     // its content cannot be parsed
}

// readUpdate parses an update. If its fields have unexpected types only its id is read: it must be confirmed all the
// same, or it would come again before all others.
func readUpdate(data []byte) (update, error) {
	var u update
	err := json.Unmarshal(data, &u)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && u.ID != 0 {
		return update{ID: u.ID, invalid: true}, nil
	}
	if err != nil || u.ID == 0 {
		return update{}, errors.New("an update cannot be read")
	}
	return u, nil
}

type message struct {
	From        *account       `json:"from"`
	SenderChat  *chat          `json:"sender_chat"` // of an anonymous administrator, and of a channel
	Chat        chat           `json:"chat"`
	Text        string         `json:"text"`
	Entities    []entity       `json:"entities"`
	Caption     string         `json:"caption"`
	Album       string         `json:"media_group_id"`
	Forward     *origin        `json:"forward_origin"`
	ReplyTo     *message       `json:"reply_to_message"`
	External    *externalReply `json:"external_reply"`
	Quote       *quotation     `json:"quote"`
	MigrateTo   int64          `json:"migrate_to_chat_id"`
	MigrateFrom int64          `json:"migrate_from_chat_id"`
	media
}

type account struct {
	ID        int64  `json:"id"`
	IsBot     bool   `json:"is_bot"`
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
	Username  string `json:"username"`
	ReadsAll  bool   `json:"can_read_all_group_messages"` // of getMe: its privacy mode is off
}

type chat struct {
	ID        int64  `json:"id"`
	Type      string `json:"type"`
	Title     string `json:"title"`
	FirstName string `json:"first_name"` // of a private chat, as is Username
	Username  string `json:"username"`
}

// media are the kinds of content other than text. A message with neither text nor media is a service message of Telegram.
type media struct {
	Animation json.RawMessage `json:"animation"`
	Audio     json.RawMessage `json:"audio"`
	Checklist json.RawMessage `json:"checklist"`
	Contact   json.RawMessage `json:"contact"`
	Dice      json.RawMessage `json:"dice"`
	Document  json.RawMessage `json:"document"`
	Game      json.RawMessage `json:"game"`
	Location  json.RawMessage `json:"location"`
	PaidMedia json.RawMessage `json:"paid_media"`
	Photo     json.RawMessage `json:"photo"`
	Poll      json.RawMessage `json:"poll"`
	Sticker   json.RawMessage `json:"sticker"`
	Story     json.RawMessage `json:"story"`
	Venue     json.RawMessage `json:"venue"`
	Video     json.RawMessage `json:"video"`
	VideoNote json.RawMessage `json:"video_note"`
	Voice     json.RawMessage `json:"voice"`
}

// has reports whether there is any.
func (m media) has() bool {
	for _, one := range []json.RawMessage{
		m.Animation, m.Audio, m.Checklist, m.Contact, m.Dice, m.Document, m.Game, m.Location, m.PaidMedia, m.Photo, m.Poll,
		m.Sticker, m.Story, m.Venue, m.Video, m.VideoNote, m.Voice,
	} {
		if len(one) > 0 {
			return true
		}
	}
	return false
}

// The replies to messages that are refused, or not accepted completely.
const (
	replyEdited      = "Edits are not read. Please send the change as a new message."
	replyTextOnly    = "Only text is supported: pictures, files and voice messages are not read."
	replyCaptionOnly = "Only the caption was read: pictures, files and voice messages are not supported."
	replyTooLong     = "The message is too long: the limit is 4096 characters. Please send it in parts."
	replyEmpty       = "The message is empty."
	replyInvalid     = "The message is not valid text."
	replyWaiting     = "Your message could not be delivered to the crew yet. Delivery is retried; /stop and /status still work."
)

// handle processes an update. An error means that it has to be handled again: all its effects have the update's key,
// and only replies may be repeated.
func (f *FrontEnd) handle(ctx context.Context, u update) error {
	m := u.Message
	if m == nil {
		m = u.Edited
	}
	switch {
	case u.invalid:
		f.log.ErrorContext(ctx, "telegram_update_unreadable", "update_id", u.ID)
		return nil
	case m == nil:
		return nil
	case m.MigrateFrom == f.options.ChatID:
		return f.moved(ctx, m.Chat.ID)
	case m.isBots():
		return nil
	case m.Chat.ID != f.options.ChatID:
		f.ignore(ctx, m.Chat)
		return nil
	case u.Edited != nil:
		return f.notify(ctx, replyEdited)
	case m.MigrateTo != 0:
		return f.moved(ctx, m.MigrateTo)
	case m.Text != "":
		return f.read(ctx, u, m, m.Text)
	case !m.has():
		return nil
	case m.Caption == "":
		return f.refuseMedia(ctx, m)
	}
	if err := f.submit(ctx, u, m, m.Caption); err != nil {
		return err
	}
	return f.notify(ctx, replyCaptionOnly)
}

// isBots reports whether a bot has written the message: roles must not receive their own messages. Anonymous
// administrators and channels write in the name of a bot of Telegram's.
func (m *message) isBots() bool { return m.From != nil && m.From.IsBot && m.SenderChat == nil }

// refuseMedia replies that media are not supported, once for an album.
func (f *FrontEnd) refuseMedia(ctx context.Context, m *message) error {
	if m.Album != "" && m.Album == f.album {
		return nil
	}
	if err := f.notify(ctx, replyTextOnly); err != nil {
		return err
	}
	f.album = m.Album
	return nil
}

// read processes a text: a command, or a message to the crew.
func (f *FrontEnd) read(ctx context.Context, u update, m *message, text string) error {
	if c, ok := parseCommand(text); ok && m.Forward == nil {
		return f.command(ctx, u, c)
	}
	return f.submit(ctx, u, m, text)
}

// submit appends a message to the crew's conversation.
func (f *FrontEnd) submit(ctx context.Context, u update, m *message, text string) error {
	text, complaint := checkText(text)
	if complaint != "" {
		return f.notify(ctx, complaint)
	}
	err := f.crew.Send(ctx, f.key(u), continuo.Text(f.withQuote(m, text)), m.author())
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return f.notify(ctx, refused.Reason)
	}
	if err != nil {
		return fmt.Errorf("hand the message in: %w", err)
	}
	return nil
}

// checkText returns the accepted text, or why it is refused.
func checkText(text string) (taken, complaint string) {
	switch {
	case strings.ToValidUTF8(text, "") != text:
		return "", replyInvalid
	case countUnits(text) > maxUnits:
		return "", replyTooLong
	}
	if text = clean(text); plaintext.IsBlank(text) {
		return "", replyEmpty
	}
	return text, ""
}

// author returns the writer of the message in a group; nil in the chat of one person.
func (m *message) author() *continuo.Author {
	if m.Chat.Type == "private" {
		return nil
	}
	name := oneLine(m.name(), maxName)
	if name == "" {
		return nil
	}
	return &continuo.Author{DisplayName: name}
}

// maxName is how many characters of a person's name the crew sees.
const maxName = 64

// name is the name of the message's writer; "" if Telegram does not give it.
func (m *message) name() string {
	switch {
	case m.SenderChat != nil:
		return m.SenderChat.Title
	case m.From != nil:
		return m.From.name()
	}
	return ""
}

func (a *account) name() string {
	if name := a.FirstName + " " + a.LastName; !plaintext.IsBlank(name) {
		return name
	}
	return a.Username
}

// id is the account's id in the form that a bot's token has.
func (a *account) id() string { return strconv.FormatInt(a.ID, 10) }

// key is the idempotency key of an update.
func (f *FrontEnd) key(u update) string { return fmt.Sprintf("telegram/%s/%d", f.botID, u.ID) }

// ignore logs that the listener received a message from another chat; once per chat.
func (f *FrontEnd) ignore(ctx context.Context, c chat) {
	const most = 100 // how many chats are remembered
	if f.ignored[c.ID] || len(f.ignored) >= most {
		return
	}
	f.ignored[c.ID] = true
	f.log.WarnContext(ctx, "telegram_chat_ignored", "chat_id", c.ID, "chat_type", c.Type, "reason", "it is not the chat of the crew")
}

// moved reports, in the log and in the supergroup, that the chat has become a supergroup with another id. It does so
// once.
func (f *FrontEnd) moved(ctx context.Context, to int64) error {
	if f.movedTo == to {
		return nil
	}
	f.movedTo = to
	f.log.ErrorContext(ctx, "telegram_chat_moved", "chat_id", f.options.ChatID, "new_chat_id", to, "do", "set telegram.chat_id to the new one")
	return f.notifyChat(ctx, to, fmt.Sprintf("This group is a supergroup now, with the id %d. The crew receives its messages after telegram.chat_id is set to that id.", to))
}

// notify sends the chat a reply from the listener. A reply that Telegram will never accept is dropped.
func (f *FrontEnd) notify(ctx context.Context, text string) error {
	return f.notifyChat(ctx, f.options.ChatID, text)
}

func (f *FrontEnd) notifyChat(ctx context.Context, chatID int64, text string) error {
	for _, p := range split("", verbatim(text), f.options.MaxMessageLength) {
		if err := f.sendTo(ctx, f.listener, chatID, p); err != nil {
			if ctx.Err() != nil || isPassing(err) {
				return err
			}
			f.log.ErrorContext(ctx, "telegram_reply_refused", "error", err.Error())
			return nil
		}
	}
	return nil
}

// one handles an update while no other is being handled.
func (f *FrontEnd) one(ctx context.Context, u update) error {
	select {
	case f.handling <- struct{}{}:
		defer func() { <-f.handling }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return f.handle(ctx, u)
}

// readTime limits the time of a command that reads.
const readTime = 30 * time.Second
