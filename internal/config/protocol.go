package config

import (
	"fmt"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
)

// ProtocolDemo is what Config.Model returns as the protocol of the built-in model, which has no upstream and no row in
// Protocols. Its requests are rendered in model.ProtocolOpenAIChat.
const ProtocolDemo = "demo"

const openAIURL = "https://api.openai.com/v1"

// Protocol is what the settings of a model take from its protocol.
type Protocol struct {
	// Name is the one of package model; the tag of ModelConfig.Protocol lists it too.
	Name string
	// Provider, BaseURL and APIKeyEnv are the defaults: whose protocol it is, where, and the variable with its key.
	Provider, BaseURL, APIKeyEnv string
	// AnyHost says that any endpoint of the protocol accepts the provider's own blocks again, so that Provider is also
	// the default for another BaseURL, and not its host.
	AnyHost bool
	// MaxOutputTokens is used for 0 where the protocol demands a number; 0 where it does not.
	MaxOutputTokens int
	MaxTemperature  float64
	// Strict and StructuredOutputs say that the settings of these names are allowed.
	Strict, StructuredOutputs bool
}

// Protocols returns the protocols that a model of the settings can have.
func Protocols() []Protocol {
	return []Protocol{
		{
			Name: model.ProtocolOpenAIChat, Provider: "openai", BaseURL: openAIURL, APIKeyEnv: "OPENAI_API_KEY",
			MaxTemperature: 2, Strict: true, StructuredOutputs: true,
		},
		{
			Name: model.ProtocolResponses, Provider: "openai", BaseURL: openAIURL, APIKeyEnv: "OPENAI_API_KEY",
			MaxTemperature: 2, StructuredOutputs: true,
		},
		{
			Name: model.ProtocolAnthropic, Provider: "anthropic", BaseURL: "https://api.anthropic.com", APIKeyEnv: "ANTHROPIC_API_KEY",
			AnyHost: true, MaxOutputTokens: 4096, MaxTemperature: 1,
		},
		{
			Name: model.ProtocolGemini, Provider: "google", BaseURL: "https://generativelanguage.googleapis.com", APIKeyEnv: "GEMINI_API_KEY",
			AnyHost: true, MaxTemperature: 2, StructuredOutputs: true,
		},
	}
}

// ProtocolOf returns the protocol of a name. An unknown one is continuo.ErrInvalid.
func ProtocolOf(name string) (Protocol, error) {
	all := Protocols()
	if i := slices.IndexFunc(all, func(p Protocol) bool { return p.Name == name }); i >= 0 {
		return all[i], nil
	}
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = p.Name
	}
	return Protocol{}, fmt.Errorf("%w: protocol %q; allowed: %s", continuo.ErrInvalid, name, strings.Join(names, ", "))
}
