package config

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/continuo-log/continuo/internal/yamltree"
)

// TelegramConfig is the section telegram.
type TelegramConfig struct {
	Crew             string // "": no crew is on Telegram
	ChatID           int64  // 0: none
	BotToken         string // never show it; "" if there is none, or its variable is not set
	APIURL           string // without a slash at its end
	MaxMessageLength int    // UTF-16 units
	WebhookURL       string // "": long polling
	WebhookSecret    string // likewise
	Project          string

	botToken, webhookSecret secretText
}

// String describes which crew is in which chat, without secrets.
func (t TelegramConfig) String() string {
	return fmt.Sprintf("the crew %q in the chat %d", t.Crew, t.ChatID)
}

// GoString is String: %#v shows no more than %v.
func (t TelegramConfig) GoString() string { return t.String() }

// secretText is a secret and the variable that contains it according to the settings. The zero value is none.
type secretText struct {
	variable string // "" if the secret itself was given
	text     string
}

// shown describes where the secret is, or that it is set, and never the secret.
func (s secretText) shown() string {
	switch {
	case s.variable != "":
		return "${" + s.variable + "}"
	case s.text != "":
		return "(set)"
	default:
		return ""
	}
}

func (c *Config) telegramRows() []*setting {
	return []*setting{{
		key: "telegram.crew", value: crewID(&c.Telegram.Crew), def: "",
		doc: "The crew that talks in the chat of telegram.chat_id. Empty: none.",
	}, {
		key: "telegram.chat_id", value: chatID(&c.Telegram.ChatID), def: "0",
		doc: "The chat in which the crew is heard; messages of all others are passed over. Groups have negative numbers. 0: none.",
	}, {
		key: "telegram.bot_token", value: secret(&c.Telegram.botToken), def: "",
		doc: "The token of the bot that listens, and speaks for each role without a bot of its own: ${NAME} for the variable of the environment that holds it. In the file nothing else is taken; the variable of this setting may hold the token itself.",
	}, {
		key: "telegram.api_url", value: baseURL(&c.Telegram.APIURL), def: "https://api.telegram.org",
		doc: "Where the Bot API is: Telegram's own, or a server of your own. The bot's token and the method are put behind it.",
	}, {
		key: "telegram.max_message_length", value: between(&c.Telegram.MaxMessageLength, 100, 4096), def: "4096", knownAs: "TELEGRAM_MAX_MESSAGE_LENGTH",
		doc: "How long one message may be, in UTF-16 units. A longer answer is sent in parts.",
	}, {
		key: "telegram.webhook_url", value: webhook(&c.Telegram.WebhookURL), def: "",
		doc: "The address at which Telegram reaches this server, if it is to send what is said rather than be asked for it. telegram.webhook_secret must be set then. Empty: Telegram is asked (long polling).",
	}, {
		key: "telegram.webhook_secret", value: secret(&c.Telegram.webhookSecret), def: "",
		doc: "A secret of 1 to 256 letters, digits, _ and - which Telegram sends along, and without which a call of the webhook is refused: ${NAME} for the variable of the environment that holds it, as for telegram.bot_token.",
	}, {
		key: "telegram.project", value: project(&c.Telegram.Project), def: "default",
		doc: "The project that the chat's conversation belongs to.",
	}}
}

// crewID is the id of a crew or empty; whether that crew exists is checked when the crews are read.
func crewID(place *string) value {
	v := name(place, `the id of a crew, or "" for none`)
	set := v.set
	v.set = func(text string) error {
		if text == "" {
			*place = ""
			return nil
		}
		return set(text)
	}
	return v
}

// chatID is an integer of either sign.
func chatID(place *int64) value {
	return value{
		allowed: "a whole number, such as -1001234567890, or 0 for none",
		takes:   []yamltree.Kind{yamltree.Whole},
		set: func(text string) error {
			number, err := strconv.ParseInt(text, 10, 64)
			if err != nil || strconv.FormatInt(number, 10) != text {
				return errNotAllowed
			}
			*place = number
			return nil
		},
		show: func() string { return strconv.FormatInt(*place, 10) },
	}
}

const maxSecretBytes = 1000

// secret is ${NAME}, whose variable checkTelegram looks up, or the secret itself, which checkTelegram refuses in the
// file.
func secret(place *secretText) value {
	return value{
		allowed: `${NAME}, where NAME is a variable of the environment, or "" for none`,
		takes:   []yamltree.Kind{yamltree.Text},
		hidden:  true,
		set: func(text string) error {
			if !isLine(text) || strings.TrimSpace(text) != text || len(text) > maxSecretBytes {
				return errNotAllowed
			}
			*place = secretText{text: text}
			return nil
		},
		show: func() string { return place.shown() },
	}
}

// webhook is an https URL or empty: Telegram calls no other.
func webhook(place *string) value {
	v := endpoint(place)
	v.allowed = `an https URL with a host and without user, query and fragment, such as https://bots.example.org/telegram, or "" for none`
	set := v.set
	v.set = func(text string) error {
		if text == "" {
			*place = ""
			return nil
		}
		if location, err := url.Parse(text); err != nil || location.Scheme != "https" {
			return errNotAllowed
		}
		return set(text)
	}
	return v
}

var (
	secretVariable = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$`)
	webhookSecret  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,256}$`)
)

// checkTelegram looks the secrets up, and refuses those that are in the file itself.
func (l *loader) checkTelegram() {
	telegram := &l.config.Telegram
	for _, one := range []struct {
		key   string
		place *secretText
	}{{"telegram.bot_token", &telegram.botToken}, {"telegram.webhook_secret", &telegram.webhookSecret}} {
		row := l.row(one.key)
		found := secretVariable.FindStringSubmatch(one.place.text)
		switch {
		case row.origin.Kind == FromDefault:
		case found != nil && strings.HasPrefix(found[1], envPrefix):
			l.problems.add(row.origin, "%s: variables that begin with CONTINUO_ are settings: set %s itself, or give the secret another variable", one.key, envName(one.key))
		case found != nil:
			*one.place = secretText{found[1], l.env[found[1]]}
		case one.place.text != "" && row.origin.Kind == FromFile:
			l.problems.add(row.origin, "%s: given a text that is not ${NAME} (not repeated, it may be secret); secrets never stand in the file: write ${NAME} for the environment variable that holds it", one.key)
		}
	}
	row, secret := l.row("telegram.webhook_secret"), telegram.webhookSecret
	if told := secret.variable == "" && row.origin.Kind == FromFile; secret.text != "" && !told && !webhookSecret.MatchString(secret.text) {
		l.problems.add(row.origin, "telegram.webhook_secret: allowed: 1 to 256 letters, digits, _ and -")
	}
	if telegram.WebhookURL != "" && secret == (secretText{}) {
		l.problems.add(l.row("telegram.webhook_url").origin, "telegram.webhook_url: set telegram.webhook_secret too, by which calls are known to be Telegram's")
	}
	telegram.BotToken, telegram.WebhookSecret = telegram.botToken.text, telegram.webhookSecret.text
}

// hints lists what a crew on Telegram still needs.
func (t *TelegramConfig) hints() []string {
	if t.Crew == "" {
		return nil
	}
	var found []string
	switch {
	case t.botToken == (secretText{}):
		found = append(found, "telegram.crew is set, and telegram.bot_token is not: nothing is heard from Telegram")
	case t.BotToken == "":
		found = append(found, fmt.Sprintf("telegram.bot_token takes its value from %s, which is not set: set it where continuo starts", t.botToken.variable))
	}
	if t.WebhookURL != "" && t.WebhookSecret == "" {
		found = append(found, fmt.Sprintf("telegram.webhook_secret takes its value from %s, which is not set: set it where continuo starts", t.webhookSecret.variable))
	}
	if t.ChatID == 0 {
		found = append(found, "telegram.crew is set, and telegram.chat_id is not: nothing is heard from Telegram")
	}
	return found
}
