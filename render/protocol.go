package render

import (
	"fmt"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/wire/anthropic"
	"github.com/continuo-log/continuo/internal/wire/gemini"
	"github.com/continuo-log/continuo/internal/wire/openaichat"
	"github.com/continuo-log/continuo/internal/wire/responses"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/window"
)

// Protocol is how requests of one protocol are rendered.
type Protocol struct {
	// Name is the one that [model.Info] has.
	Name string
	// Request writes the body of a request that shows a plan, whose attachments must be loaded unless NamesParts.
	Request func(env continuo.Envelope, plan *window.Plan, o Options) ([]byte, error)
	// Transcript writes the body of a request that shows a plan as a transcript; nil where the protocol has no such form.
	Transcript func(env continuo.Envelope, plan *window.Plan, o Options) ([]byte, error)
	// Unsent names the parts of messages that a request leaves out.
	Unsent func(messages []window.Message, o Options) []continuo.MissingPart
	// Omits names what a client asks in an envelope and a request cannot have, under the names that the members have in
	// continuo.Envelope and continuo.Sampling.
	Omits func(env continuo.Envelope, messages []window.Message, o Options) []string
	// LeadIn is the user message that Request puts in front of messages that begin with the assistant; "" if none.
	LeadIn string
	// NamesParts says that a request has only the names of attachments.
	NamesParts bool
	// ResponseFormat says that a request can have the envelope's ResponseFormat.
	ResponseFormat bool
}

// Protocols returns every protocol. Each has a row in the settings and in the wiring of the program too, except for
// model.ProtocolPrompt, which connectors use.
func Protocols() []Protocol {
	return []Protocol{
		{
			Name: model.ProtocolOpenAIChat, ResponseFormat: true,
			Request: func(env continuo.Envelope, plan *window.Plan, o Options) ([]byte, error) {
				return OpenAIChatRequest(env, plan.Messages, o)
			},
			Transcript: OpenAIChatTranscript,
			Unsent:     func(messages []window.Message, _ Options) []continuo.MissingPart { return UnsentOpenAIChat(messages) },
			Omits: func(env continuo.Envelope, _ []window.Message, o Options) []string {
				return sampleChat(env, o, &openaichat.Request{})
			},
		},
		{
			Name: model.ProtocolResponses, ResponseFormat: true,
			Request: func(env continuo.Envelope, plan *window.Plan, o Options) ([]byte, error) {
				return ResponsesRequest(env, plan.Messages, o)
			},
			Transcript: ResponsesTranscript,
			Unsent:     UnsentResponses,
			Omits: func(env continuo.Envelope, _ []window.Message, o Options) []string {
				return sampleResponses(env, o, &responses.Request{})
			},
		},
		{
			Name: model.ProtocolGemini, LeadIn: LeadIn, ResponseFormat: true,
			Request: func(env continuo.Envelope, plan *window.Plan, o Options) ([]byte, error) {
				return GeminiRequest(env, plan.Messages, o)
			},
			Transcript: GeminiTranscript,
			Unsent:     UnsentGemini,
			Omits: func(env continuo.Envelope, _ []window.Message, _ Options) []string {
				return sampleGemini(env, &gemini.Request{})
			},
		},
		{
			Name: model.ProtocolAnthropic, LeadIn: LeadIn, ResponseFormat: true,
			Request: func(env continuo.Envelope, plan *window.Plan, o Options) ([]byte, error) {
				return AnthropicRequest(env, plan.Messages, o)
			},
			Transcript: func(env continuo.Envelope, plan *window.Plan, _ Options) ([]byte, error) {
				return AnthropicTranscript(env, plan)
			},
			Unsent: UnsentAnthropic,
			Omits: func(env continuo.Envelope, messages []window.Message, o Options) []string {
				return sampleAnthropic(env, mayThink(messages, o), &anthropic.Request{})
			},
		},
		{
			Name: model.ProtocolPrompt, NamesParts: true,
			Request: func(env continuo.Envelope, plan *window.Plan, _ Options) ([]byte, error) { return Prompt(env, plan) },
			Unsent:  unsentText,
			Omits:   func(env continuo.Envelope, _ []window.Message, _ Options) []string { return allSampling(env) },
		},
	}
}

// ProtocolOf returns the protocol of a name. For a name with [model.TranscriptSuffix] its Request is the Transcript of
// the protocol without it. An unknown name is continuo.ErrInvalid.
func ProtocolOf(name string) (Protocol, error) {
	base, transcript := strings.CutSuffix(name, model.TranscriptSuffix)
	all := Protocols()
	i := slices.IndexFunc(all, func(p Protocol) bool { return p.Name == base })
	switch {
	case i < 0 || transcript && all[i].Transcript == nil:
		return Protocol{}, fmt.Errorf("%w: no rendering for the protocol %q of model.Info; there are %s", continuo.ErrInvalid, name, protocolNames(all))
	case transcript:
		return Protocol{
			Name: name, Request: all[i].Transcript, Unsent: unsentText, NamesParts: true,
			Omits: func(env continuo.Envelope, _ []window.Message, o Options) []string {
				env.Tools = nil
				return all[i].Omits(env, nil, o)
			},
		}, nil
	}
	return all[i], nil
}

func unsentText(messages []window.Message, _ Options) []continuo.MissingPart {
	return UnsentText(messages)
}

func protocolNames(all []Protocol) string {
	var names []string
	for _, p := range all {
		names = append(names, p.Name)
		if p.Transcript != nil {
			names = append(names, p.Name+model.TranscriptSuffix)
		}
	}
	return strings.Join(names, ", ")
}
