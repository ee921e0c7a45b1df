package main

import (
	"fmt"
	"net/http"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/model/anthropic"
	"github.com/continuo-log/continuo/model/gemini"
	"github.com/continuo-log/continuo/model/openai"
	"github.com/continuo-log/continuo/model/responses"
)

// wireProtocol is what the program does for the upstreams of one protocol; the settings are in config.Protocols, the
// rendering in render.Protocols.
type wireProtocol struct {
	model      func(model.ClientOptions) model.Model
	modelsPath string // of the list of models, behind base_url
	authorize  func(header http.Header, key string)
	blocks     string // the provider for which imports of this protocol's format keep its own blocks; "" if there is none
}

var wireProtocols = map[string]wireProtocol{
	model.ProtocolOpenAIChat: {
		model:      openai.New,
		modelsPath: "/models",
		authorize:  bearer,
	},
	model.ProtocolResponses: {
		model:      responses.New,
		modelsPath: "/models",
		authorize:  bearer,
	},
	model.ProtocolGemini: {
		model:      gemini.New,
		modelsPath: "/v1beta/models",
		authorize:  func(header http.Header, key string) { header.Set("X-Goog-Api-Key", key) },
	},
	model.ProtocolAnthropic: {
		model:      anthropic.New,
		modelsPath: "/v1/models",
		authorize: func(header http.Header, key string) {
			header.Set("Anthropic-Version", anthropic.Version)
			header.Set("X-Api-Key", key)
		},
		blocks: "anthropic",
	},
}

// bearer sends a key, if there is one, as OpenAI's API expects it.
func bearer(header http.Header, key string) {
	if key != "" {
		header.Set("Authorization", "Bearer "+key)
	}
}

func wireProtocolOf(m config.ModelConfig) (wireProtocol, error) {
	p, known := wireProtocols[m.Protocol]
	if !known {
		return wireProtocol{}, fmt.Errorf("%w: models.%s: the program has no client for the protocol %q", continuo.ErrInvalid, m.Name, m.Protocol)
	}
	return p, nil
}
