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

// Options are the chat of a crew, and the bots that speak there.
type Options struct {
	// Token is the listener bot's token.
	Token string
	// RoleTokens are the tokens of the roles' bots, by role. The listener sends the answers of a role without one.
	RoleTokens map[string]string
	// DisplayNames are the roles' names for people, by role. The crew sees a reply to a role under that name.
	DisplayNames map[string]string
	// ChatID is the only chat that the listener reads.
	ChatID int64
	// MaxMessageLength is the longest message, in UTF-16 units: 100 to 4096. Default 4096.
	MaxMessageLength int
	// PollTime is how long Telegram holds a long poll for updates open: 1 to 50 s, in whole seconds. Default 30 s.
	PollTime time.Duration
	// Webhook makes Telegram post updates to [FrontEnd.Handler], instead of long polling. Default nil.
	Webhook *Webhook
	// URL is the address of the Bot API. Default [DefaultURL].
	URL string
	// HTTP is the client for all calls. Its timeout and its redirect policy are not used. Default [http.DefaultClient].
	HTTP *http.Client
	// Log receives failures, without texts and tokens. Default none.
	Log *slog.Logger
}

// Webhook is the address to which Telegram posts updates.
type Webhook struct {
	URL string // https, the handler's public address
	// Secret is the token that Telegram has to send with each update: 1 to 256 letters, digits, _ and -.
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
	handling chan struct{} // has a capacity of one: the handler of an update holds it

	// Guarded by handling.
	ignored map[int64]bool // chats
	album   string         // the newest album that was refused
	movedTo int64          // the supergroup that the chat has become; 0 for none
}

var (
	tokenPattern  = regexp.MustCompile(`^([0-9]{1,20}):[A-Za-z0-9_-]{1,200}$`)
	secretPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,256}$`)
)

// New makes a front end. It makes no calls before [FrontEnd.Run].
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
		handling: make(chan struct{}, 1), botID: tokenPattern.FindStringSubmatch(options.Token)[1],
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
	if !tokenPattern.MatchString(o.Token) {
		return errors.New("the listener's token has not the form of one (123456:ABC…): take it over from BotFather as it is")
	}
	seen := map[string]string{o.Token: "the listener"}
	for role, token := range o.RoleTokens {
		if !tokenPattern.MatchString(token) {
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
	if o.Webhook != nil && !secretPattern.MatchString(o.Webhook.Secret) {
		return errors.New("the webhook's secret has 1 to 256 letters, digits, _ and -")
	}
	return nil
}

// Run receives and sends until ctx is done, for which the error is nil, or Telegram refuses the listener's token. It
// may be called once. Of several processes with one store, any receives what Telegram posts to a webhook, and one polls
// and sends; see Crew.RunExclusive. If another program uses the same token with a store of its own, this one waits for
// as long as Telegram prefers the other.
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

// ended converts an error into the result of Run.
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

// begin fetches the listener's account and sets how Telegram delivers its updates.
func (f *FrontEnd) begin(ctx context.Context) error {
	err := f.listener.insist(ctx, func(ctx context.Context) error {
		me, err := f.listener.me(ctx)
		f.username = me.Username
		return err
	})
	if err != nil {
		return err
	}
	if err := f.listener.setCommands(ctx, f.options.ChatID, offeredCommands()); err != nil { // optional
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
