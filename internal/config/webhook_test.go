package config

import (
	"reflect"
	"strings"
	"testing"
)

func TestWebhooks(t *testing.T) {
	config, err := load(t, `
webhooks:
  billing:
    url: https://hooks.example.org/continuo
    secret: ${HOOK_SECRET}
    projects: [acme, beta]
    turns: finished
  crm:
    url: http://127.0.0.1:9000/crm
    secret: ${CRM_SECRET}
`, Options{Env: []string{"HOOK_SECRET=whsec_eA=="}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]WebhookConfig{
		"billing": {Name: "billing", URL: "https://hooks.example.org/continuo", Secret: "whsec_eA==", Projects: []string{"acme", "beta"}, Turns: "finished"},
		"crm":     {Name: "crm", URL: "http://127.0.0.1:9000/crm", Turns: "all"},
	}
	if !reflect.DeepEqual(config.Webhooks, want) {
		t.Errorf("webhooks:\n%+v\nwant:\n%+v", config.Webhooks, want)
	}
	if got := find(t, config, "webhooks.billing.secret").Value; got != "${HOOK_SECRET}" {
		t.Errorf("the secret is shown as %q", got)
	}
	if hints := strings.Join(config.Hints(), "\n"); !strings.Contains(hints, "the webhook crm takes CRM_SECRET from the environment, which is not set") {
		t.Errorf("hints: %s", hints)
	}
	if got := want["billing"].Describe() + "; " + want["crm"].Describe(); got != "turns that finished of acme, beta; all turns of all projects" {
		t.Error(got)
	}
}

func TestWrongWebhooks(t *testing.T) {
	for text, want := range map[string]string{
		"webhooks: {a: {url: 'https://a.example/x'}}":                                    "webhooks.a: secret is missing",
		"webhooks: {a: {secret: '${S}'}}":                                                "webhooks.a: url is missing",
		"webhooks: {a: {url: 'https://a.example/x', secret: plain}}":                     "webhooks.a.secret: given a text that is not ${NAME}",
		"webhooks: {a: {url: 'https://a.example/x', secret: '${CONTINUO_S}'}}":           "give the secret another variable",
		"webhooks: {a: {url: 'ftp://a.example/x', secret: '${S}'}}":                      "webhooks.a.url: given",
		"webhooks: {a: {url: 'https://a.example/x', secret: '${S}', projects: ['a b']}}": "webhooks.a.projects: given",
		"webhooks: {A: {url: 'https://a.example/x', secret: '${S}'}}":                    "is no name for a webhook",
		"webhooks: {a: {url: 'https://a.example/x', secret: '${S}', events: all}}":       "unknown key webhooks.a.events",
		"webhooks: {a: {url: 'https://a.example/x', secret: '${BROKEN}'}}":               "webhooks.a.secret: ${BROKEN} begins with whsec_, so base64 must follow",
		"webhook: {url: 'https://a.example/x'}":                                          "unknown key webhook; did you mean webhooks?",
		"webhooks: [{url: 'https://a.example/x'}]":                                       "webhooks: not a mapping",
	} {
		_, err := load(t, text+"\n", Options{Env: []string{"BROKEN=whsec_x!y"}})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "x!y") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
