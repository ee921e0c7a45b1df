package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/continuo-log/continuo/internal/config"
)

// models checks the configuration, and with online whether the models' servers answer.
func (d *diagnosis) models(ctx context.Context, settings *config.Config, env []string, online bool) {
	for _, name := range settings.ModelNames() {
		m, err := settings.Model(name)
		if err != nil {
			d.add("model", bad, "%s: %s", name, err)
			continue
		}
		words := name
		if name == settings.DefaultModel || settings.DefaultModel == "" && name == config.DemoModel {
			words += " (the default)"
		}
		if m.Protocol == config.ProtocolDemo {
			d.add("model", good, "%s: built in, needs no key and no network; it is no real model", words)
			continue
		}
		words += fmt.Sprintf(": %s, %s at %s", m.Protocol, m.Model, m.BaseURL)
		if m.Fallback != "" {
			words += ", then " + m.Fallback
		}
		switch {
		case m.APIKeyEnv == "":
			d.add("model", good, "%s; without a key", words)
		case m.APIKeySet:
			d.add("model", good, "%s; the key in %s is set", words, m.APIKeyEnv)
		case name == settings.DefaultModel:
			d.add("model", bad, "%s; the key in %s is not set: set it where continuo starts", words, m.APIKeyEnv)
		default:
			d.add("model", warning, "%s; the key in %s is not set", words, m.APIKeyEnv)
		}
		protocol, err := wireProtocolOf(m)
		if err != nil {
			d.add("model", bad, "%s: %s", name, err)
			continue
		}
		if blocks := protocol.blocks; blocks != "" && m.Provider != blocks {
			d.add("model", warning, "%s: its provider is %s, so blocks that conversations keep for %s (thinking, server tools, compactions) "+
				"are held back from it; set models.%s.provider to %s if it takes them", name, m.Provider, blocks, name, blocks)
		}
		if online {
			d.askModel(ctx, name, m, protocol, envValue(env, m.APIKeyEnv))
		}
	}
}

// askTimeout is how long a model's server may take to list its models.
const askTimeout = 15 * time.Second

// askModel requests the list of models from a model's server, which costs nothing.
func (d *diagnosis) askModel(ctx context.Context, name string, m config.ModelConfig, protocol wireProtocol, key string) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.BaseURL+protocol.modelsPath, nil)
	if err != nil {
		d.add("online", bad, "%s: %s", name, err)
		return
	}
	protocol.authorize(request.Header, key)
	for header, value := range m.Headers {
		request.Header.Set(header, value)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }} // a key is not sent anywhere else
	begin := time.Now()
	response, err := client.Do(request)
	if err != nil {
		d.add("online", bad, "%s: %s does not answer: %s", name, m.BaseURL, err)
		return
	}
	_ = response.Body.Close() // only the status matters
	took := time.Since(begin).Round(time.Millisecond)
	switch status := response.StatusCode; {
	case status == http.StatusOK:
		d.add("online", good, "%s: %s answers in %s and takes the key", name, m.BaseURL, took)
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		d.add("online", bad, "%s: %s refuses access (status %d; %s)", name, m.BaseURL, status, keyNote(m.APIKeyEnv, key))
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		d.add("online", warning, "%s: %s answers but lists no models (status %d); whether it takes the key is not known", name, m.BaseURL, status)
	default:
		d.add("online", bad, "%s: %s answers with status %d", name, m.BaseURL, status)
	}
}
