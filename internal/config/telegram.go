package config

import (
	"fmt"
	"regexp"
	"strings"
)

// TelegramConfig is the section telegram.
type TelegramConfig struct {
	Crew   string `key:"crew" allowed:"the id of a crew" empty:"for none" help:"The crew that answers in the chat of telegram.chat_id. Empty: none."`
	ChatID int64  `key:"chat_id" min:"-9223372036854775808" max:"9223372036854775807" allowed:"a whole number, such as -1001234567890, or 0 for none" default:"0" help:"The chat that the crew reads and answers; messages of all others are passed over. Groups have negative numbers. 0: none."`
	// BotToken is "" if there is none, or its variable is not set. Never show it, nor WebhookSecret.
	BotToken string `key:"bot_token" kind:"secret" help:"The token of the bot that listens, and speaks for each role without a bot of its own: ${NAME} for the variable of the environment that holds it. In the file nothing else is taken; the variable of this setting may hold the token itself."`
	// APIURL has no slash at its end.
	APIURL           string `key:"api_url" kind:"base_url" default:"https://api.telegram.org" help:"Where the Bot API is: Telegram's own, or a server of your own. The bot's token and the method are put behind it."`
	MaxMessageLength int    `key:"max_message_length" min:"100" max:"4096" default:"4096" alias:"TELEGRAM_MAX_MESSAGE_LENGTH" help:"How long one message may be, in UTF-16 units. A longer answer is sent in parts."`
	WebhookURL       string `key:"webhook_url" kind:"webhook" empty:"for none" help:"The address at which Telegram reaches this server, if it is to send what is said rather than be asked for it. telegram.webhook_secret must be set then. Empty: Telegram is asked (long polling)."`
	WebhookSecret    string `key:"webhook_secret" kind:"secret" help:"A secret of 1 to 256 letters, digits, _ and - which Telegram sends along, and without which a call of the webhook is refused: ${NAME} for the variable of the environment that holds it, as for telegram.bot_token."`
	Project          string `key:"project" kind:"project" default:"default" help:"The project that the chat's conversation belongs to."`
}

// String describes which crew is in which chat, without secrets.
func (t TelegramConfig) String() string {
	return fmt.Sprintf("the crew %q in the chat %d", t.Crew, t.ChatID)
}

// GoString is String: %#v shows no more than %v.
func (t TelegramConfig) GoString() string { return t.String() }

// secretSet is shown instead of a secret.
const secretSet = "(set)"

var (
	secretVariable = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$`)
	webhookSecret  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,256}$`)
)

// checkTelegram looks the secrets up, and refuses those that are in the file itself.
func (l *loader) checkTelegram() {
	telegram := &l.config.Telegram
	l.findSecret(l.row("telegram.bot_token"), &telegram.BotToken)
	l.findSecret(l.row("telegram.webhook_secret"), &telegram.WebhookSecret)
	row, secret := l.row("telegram.webhook_secret"), telegram.WebhookSecret
	inFile := row.origin.Kind == FromFile && row.value.show() == secretSet // and refused for that
	if secret != "" && !inFile && !webhookSecret.MatchString(secret) {
		l.problems.add(row.origin, "telegram.webhook_secret: allowed: 1 to 256 letters, digits, _ and -")
	}
	if telegram.WebhookURL != "" && row.value.show() == "" {
		l.problems.add(l.row("telegram.webhook_url").origin, "telegram.webhook_url: set telegram.webhook_secret too, by which calls are known to be Telegram's")
	}
}

// findSecret replaces ${NAME} by the variable's value. The setting shows the variable from then on.
func (l *loader) findSecret(row *setting, target *string) {
	found := secretVariable.FindStringSubmatch(*target)
	switch {
	case found != nil && strings.HasPrefix(found[1], envPrefix) && row.env == "":
		l.problems.add(row.origin, "%s: variables that begin with CONTINUO_ are settings: give the secret another variable", row.key)
	case found != nil && strings.HasPrefix(found[1], envPrefix):
		l.problems.add(row.origin, "%s: variables that begin with CONTINUO_ are settings: set %s itself, or give the secret another variable", row.key, row.env)
	case found != nil:
		*target = l.env[found[1]]
		row.value.show = func() string { return found[0] }
		if *target == "" {
			row.unset = []string{found[1]}
		}
	case *target != "" && row.origin.Kind == FromFile:
		l.problems.add(row.origin, "%s: given a text that is not ${NAME} (not repeated, it may be secret); secrets are never written in the file: write ${NAME} for the environment variable that holds it", row.key)
	}
}

// telegramHints lists what a crew on Telegram still needs.
func (l *loader) telegramHints() []string {
	telegram := &l.config.Telegram
	if telegram.Crew == "" {
		return nil
	}
	var found []string
	token, secret := l.row("telegram.bot_token"), l.row("telegram.webhook_secret")
	if token.value.show() == "" {
		found = append(found, "telegram.crew is set, and telegram.bot_token is not: no messages are received from Telegram")
	}
	for _, row := range []*setting{token, secret} {
		if len(row.unset) > 0 && (row == token || telegram.WebhookURL != "") {
			found = append(found, fmt.Sprintf("%s takes its value from %s, which is not set: set it where continuo starts", row.key, row.unset[0]))
		}
	}
	if telegram.ChatID == 0 {
		found = append(found, "telegram.crew is set, and telegram.chat_id is not: no messages are received from Telegram")
	}
	return found
}
