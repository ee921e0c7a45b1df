package config

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestTelegram(t *testing.T) {
	config := mustLoad(t, "telegram:\n  crew: example\n  chat_id: -1001234567890\n  bot_token: ${BOT_TOKEN}\n  api_url: http://127.0.0.1:8081/\n  max_message_length: 100\n"+
		"  webhook_url: https://bots.example.org/telegram\n  project: friends\n", Options{Env: []string{"BOT_TOKEN=12:canary", "CONTINUO_TELEGRAM_WEBHOOK_SECRET=canary-2"}})
	got := config.Telegram
	if got.Crew != "example" || got.ChatID != -1001234567890 || got.APIURL != "http://127.0.0.1:8081" || got.MaxMessageLength != 100 || got.WebhookURL != "https://bots.example.org/telegram" || got.Project != "friends" {
		t.Errorf("got %s, %q %d %q %q", got, got.APIURL, got.MaxMessageLength, got.WebhookURL, got.Project)
	}
	if got.BotToken != "12:canary" || got.WebhookSecret != "canary-2" {
		t.Error("the secrets are not those of the environment")
	}
	if hints := config.Hints(); len(hints) != 0 {
		t.Errorf("hints %q", hints)
	}
	// Nothing that prints the settings shows them.
	for key, want := range map[string]string{"telegram.bot_token": "${BOT_TOKEN}", "telegram.webhook_secret": "(set)"} {
		if value := find(t, config, key).Value; value != want {
			t.Errorf("%s is shown as %q, want %q", key, value, want)
		}
	}
	if shown := fmt.Sprintf("%v %+v %#v %v %+v %#v", got, got, got, config, *config, *config); strings.Contains(shown, "canary") {
		t.Errorf("a secret is shown: %s", shown)
	}
}

func TestTelegramRefusesAndRepeatsNoSecret(t *testing.T) {
	for line, want := range map[string]string{
		"bot_token: 12:canary":                        "write ${NAME}",
		"bot_token: 'x ${CANARY}'":                    "write ${NAME}",
		"bot_token: 12345":                            "allowed: ${NAME}",
		"bot_token: [canary]":                         "allowed: ${NAME}",
		"bot_token: ${CONTINUO_TELEGRAM_BOT_TOKEN}":   "set CONTINUO_TELEGRAM_BOT_TOKEN itself",
		"webhook_secret: canary":                      "write ${NAME}",
		"webhook_secret: ${BAD}":                      "1 to 256 letters",
		"webhook_url: https://host/t":                 "set telegram.webhook_secret too",
		"webhook_url: http://host/t":                  "allowed: an https URL",
		"webhook_url: https://user:canary@host/t":     "allowed: an https URL",
		"api_url: https://api.telegram.org/?x=canary": "allowed: an http or https URL",
		"chat_id: '@friends'":                         "allowed: a whole number, such as -1001234567890",
		"chat_id: 1.5":                                "allowed: a whole number, such as -1001234567890",
		"max_message_length: 99":                      "from 100 to 4096",
		"max_message_length: 4097":                    "from 100 to 4096",
	} {
		_, err := load(t, "telegram:\n  "+line+"\n", Options{Env: []string{"BAD=canary canary", "CANARY=canary"}})
		if err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}

func TestACrewOnTelegramNeedsAChatAndAToken(t *testing.T) {
	for text, want := range map[string]string{
		"{crew: a, chat_id: 5}":                                             "telegram.bot_token is not",
		"{crew: a, bot_token: '${TOKEN}', chat_id: 5}":                      "takes its value from TOKEN, which is not set",
		"{crew: a, bot_token: '${TOKEN_2}'}":                                "telegram.chat_id is not",
		"{crew: a, webhook_url: 'https://w/t', webhook_secret: '${TOKEN}'}": "telegram.webhook_secret takes its value from TOKEN, which is not set",
		"{bot_token: '${TOKEN}'}":                                           "",
	} {
		hints := strings.Join(mustLoad(t, "telegram: "+text+"\n", Options{Env: []string{"TOKEN_2=x"}}).Hints(), "\n")
		if want == "" && hints != "" || !strings.Contains(hints, want) {
			t.Errorf("%s: hints %q, want %q", text, hints, want)
		}
	}
}

func TestCrewSettings(t *testing.T) {
	config := mustLoad(t, "crews: {dir: ~/crews}\ncrew: {max_conversation_length: 1, system_reminder_interval: 3, agent_timeout: 1s}\n", Options{})
	if want := (CrewConfig{MaxConversationLength: 1, SystemReminderInterval: 3, AgentTimeout: time.Second}); config.Crew != want || config.Crews.Dir != "/home/ada/crews" {
		t.Errorf("got %+v, %q", config.Crew, config.Crews.Dir)
	}
	for text, want := range map[string]string{
		"crew: {agent_timeout: 999ms}":        "allowed: a time of at least 1s",
		"crew: {agent_timeout: 600}":          "allowed: a time of at least 1s",
		"crew: {system_reminder_interval: 0}": "from 1 to",
		"crew: {max_conversation_length: 0}":  "from 1 to",
		"MAX_CONVERSATION_LENGTH: 50":         "did you mean crew.max_conversation_length?",
		"connectors: {model: {command: [x]}}": "the name model means the settings' models in crews",
	} {
		if _, err := load(t, text+"\n", Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
