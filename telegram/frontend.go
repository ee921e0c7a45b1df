package telegram

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"sync/atomic"
	"time"
)

// Options says which bots speak for a crew, and where.
type Options struct {
	// Token is the listener bot's.
	Token string
	// RoleTokens are those of the bots of roles, by role. A role without one is spoken for by the listener.
	RoleTokens map[string]string
	// DisplayNames are what people call the roles, by role. Replies to a role are told to the crew under its name.
	DisplayNames map[string]string
	// ChatID is the one chat that is listened to.
	ChatID int64
	// MaxMessageLength is how long a message is at most, in UTF-16 units: 100 to 4096. Default 4096.
	MaxMessageLength int
	// PollTime is how long Telegram holds a question for updates open: 1 to 50 s, in whole seconds. Default 30 s.
	PollTime time.Duration
	// Webhook has Telegram post updates to [FrontEnd.Handler], in the place of long polling. Default nil.
	Webhook *Webhook
	// URL is that of the Bot API. Default [DefaultURL].
	URL string
	// HTTP makes the calls. Its time limit and its policy for redirects are not used. Default [http.DefaultClient].
	HTTP *http.Client
	// Log is told of what goes wrong, without texts and tokens. Default none.
	Log *slog.Logger
}

// Webhook says where Telegram posts updates to.
type Webhook struct {
	URL string // https, as the world sees the handler
	// Secret is what Telegram has to send with each update: 1 to 256 letters, digits, _ and -.
	Secret string
}

// FrontEnd is a crew's front end in a chat.
type FrontEnd struct {
	crew     Crew
	options  Options
	log      *slog.Logger
	botID    string
	listener *bot
	roles    map[string]*bot

	ready    atomic.Bool   // username is set
	username string        // the listener's
	handling chan struct{} // has room for one: who handles an update

	// Of who handles an update.
	ignored map[int64]bool // chats
	album   string         // the newest one that was refused
	movedTo int64          // the supergroup that the chat has become; 0
}

var (
	tokenForm  = regexp.MustCompile(`^([0-9]{1,20}):[A-Za-z0-9_-]{1,200}$`)
	secretForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,256}$`)
)

// New makes a front end. Nothing is called before [FrontEnd.Run].
func New(crew Crew, options Options) (*FrontEnd, error) {
	options.URL = cmp.Or(options.URL, DefaultURL)
	options.MaxMessageLength = cmp.Or(options.MaxMessageLength, maxUnits)
	options.PollTime = cmp.Or(options.PollTime, 30*time.Second)
	options.HTTP = cmp.Or(options.HTTP, http.DefaultClient)
	options.Log = cmp.Or(options.Log, slog.New(slog.DiscardHandler))
	if err := options.check(); err != nil {
		return nil, err
	}
	f := &FrontEnd{
		crew: crew, options: options, log: options.Log, roles: map[string]*bot{}, ignored: map[int64]bool{},
		handling: make(chan struct{}, 1), botID: tokenForm.FindStringSubmatch(options.Token)[1],
	}
	f.listener = f.bot("listener", options.Token)
	for role, token := range options.RoleTokens {
		f.roles[role] = f.bot(role, token)
	}
	return f, nil
}

func (f *FrontEnd) bot(name, token string) *bot {
	return &bot{client: newClient(f.options.HTTP, f.options.URL, token), name: name, log: f.log}
}

func (o Options) check() error {
	if !tokenForm.MatchString(o.Token) {
		return errors.New("the listener's token has not the form of one (123456:ABC…): take it over from BotFather as it is")
	}
	seen := map[string]string{o.Token: "the listener"}
	for role, token := range o.RoleTokens {
		if !tokenForm.MatchString(token) {
			return fmt.Errorf("the token of the role %s has not the form of one (123456:ABC…): take it over from BotFather as it is", role)
		}
		if other, ok := seen[token]; ok {
			return fmt.Errorf("the role %s has the same token as %s: give it a bot of its own, or none", role, other)
		}
		seen[token] = "the role " + role
	}
	if o.ChatID == 0 {
		return errors.New("the id of the chat is missing: write to the bot with any other id set, and the log says it")
	}
	if o.MaxMessageLength < minUnits || o.MaxMessageLength > maxUnits {
		return fmt.Errorf("a message has at least %d and at most %d units, not %d", minUnits, maxUnits, o.MaxMessageLength)
	}
	if o.PollTime < time.Second || o.PollTime > 50*time.Second {
		return fmt.Errorf("the time of a poll is at least 1 s and at most 50 s, not %v", o.PollTime)
	}
	if base, err := url.Parse(o.URL); err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return errors.New("the URL of the Bot API is not one: it begins with https://")
	}
	if o.Webhook != nil && !secretForm.MatchString(o.Webhook.Secret) {
		return errors.New("the webhook's secret has 1 to 256 letters, digits, _ and -")
	}
	return nil
}

// Run listens and sends until ctx is done, for which the error is nil, or Telegram refuses the listener's token. It is
// run once. Of several processes with one store any takes what Telegram posts to a webhook, and one polls and sends; see
// Crew.RunExclusive. Another program with the same token and a store of its own stands by for as long as Telegram prefers the
// other.
func (f *FrontEnd) Run(ctx context.Context) error {
	if err := f.begin(ctx); err != nil {
		return ended(ctx, err)
	}
	work := f.poll
	if f.options.Webhook != nil {
		work = f.deliver
	}
	return ended(ctx, f.crew.RunExclusive(ctx, work))
}

// ended is what Run returns.
func ended(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return nil
	case isRefusedToken(err):
		return fmt.Errorf("telegram refuses the listener's token: make a new one with BotFather and set it: %w", err)
	default:
		return err
	}
}

// begin asks Telegram who the listener is and says how it wants its updates.
func (f *FrontEnd) begin(ctx context.Context) error {
	err := f.listener.insist(ctx, func(ctx context.Context) error {
		me, err := f.listener.me(ctx)
		f.username = me.Username
		return err
	})
	if err != nil {
		return err
	}
	if err := f.listener.setCommands(ctx, f.options.ChatID, offeredCommands()); err != nil { // a nicety
		f.listener.obeyRetryAfter(err)
		f.log.WarnContext(ctx, "telegram_commands_not_set", "error", err.Error())
	}
	f.ready.Store(true)
	return f.listener.insist(ctx, func(ctx context.Context) error {
		if hook := f.options.Webhook; hook != nil {
			return f.listener.setWebhook(ctx, hook.URL, hook.Secret)
		}
		return f.listener.deleteWebhook(ctx)
	})
}
