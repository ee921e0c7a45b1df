package config

import (
	"encoding/base64"
	"slices"
	"strings"
)

// WebhookConfig is a receiver that the server sends the turns that end.
type WebhookConfig struct {
	Name string // the key under webhooks
	URL  string `key:"url" kind:"endpoint" unset:"none" allowed:"an http or https URL with a host and without user, query and fragment, such as https://hooks.example.org/continuo" example:"https://hooks.example.org/continuo" help:"Where the server sends each turn that ends, as a POST in the form of Standard Webhooks, until the receiver accepts it. Required."`
	// Secret is "" if its variable is not set. Never show it.
	Secret   string   `key:"secret" kind:"secret" unset:"none" example:"${HOOK_SECRET}" help:"What the messages are signed with (HMAC-SHA256), by which the receiver knows that they are this server's: ${NAME} for the variable of the environment that holds it. One that begins with whsec_ is base64 after that. Required."`
	Projects []string `key:"projects" kind:"projects" unset:"all" example:"[acme]" help:"The projects whose turns are sent. A list. Unset: those of all projects."`
	Turns    string   `key:"turns" enum:"all,finished,failed" default:"all" help:"Which turns are sent: all, or those that finished or failed."`
}

func (h *WebhookConfig) finish(r *fileReader, e *entry, sound bool) {
	secret := e.row("secret")
	r.findSecret(secret, &h.Secret)
	if encoded, ok := strings.CutPrefix(h.Secret, "whsec_"); ok { // the receiver decodes it
		if _, err := base64.StdEncoding.DecodeString(encoded); err != nil {
			r.problems.add(secret.origin, "%s: %s begins with whsec_, so base64 must follow", secret.key, secret.value.show())
		}
	}
	if sound {
		e.group.needs.check(r, e)
	}
	e.hintUnset()
	r.config.Webhooks[h.Name] = *h
}

func (h *WebhookConfig) check(*loader, *entry) {}

// WebhookNames returns the names of the webhooks of the file, sorted.
func (c *Config) WebhookNames() []string {
	var names []string
	for name := range c.Webhooks {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Describe says which turns the webhook is sent, without its secret.
func (h WebhookConfig) Describe() string {
	turns, projects := "turns that "+h.Turns, "all projects"
	if h.Turns == "all" {
		turns = "all turns"
	}
	if len(h.Projects) > 0 {
		projects = strings.Join(h.Projects, ", ")
	}
	return turns + " of " + projects
}
