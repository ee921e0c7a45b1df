package render

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/gemini"
	"github.com/continuo-log/continuo/internal/wire/openaichat"
	"github.com/continuo-log/continuo/internal/wire/responses"
)

// left collects the members of a sampling that a request does not have, under their names in continuo.Envelope and
// continuo.Sampling.
type left []string

// unless adds a name where a value was given and cannot be sent, and reports whether it is to be sent.
func (l *left) unless(sendable, given bool, name string) bool {
	if given && !sendable {
		*l = append(*l, name)
	}
	return given && sendable
}

// samplingOf is what a client asks of the answer, without choices of tools that a request without tools cannot have.
func samplingOf(env continuo.Envelope, l *left) continuo.Sampling {
	if env.Sampling == nil {
		return continuo.Sampling{}
	}
	s := *env.Sampling
	if !offersTools(env) {
		l.unless(false, s.ToolChoice != nil && s.ToolChoice.Mode == continuo.ChoiceRequired, "tool_choice")
		s.ToolChoice, s.ParallelToolCalls = nil, nil
	}
	return s
}

// offered are the tools of a request that may be called, for a protocol that cannot say which: all of them, unless the
// choice of tools names some. A single tool that must be called can be named in every protocol.
func offered(env continuo.Envelope, tools []continuo.ToolSpec) []continuo.ToolSpec {
	if env.Sampling == nil || env.Sampling.ToolChoice == nil {
		return tools
	}
	choice := env.Sampling.ToolChoice
	if len(choice.Tools) == 0 || len(choice.Tools) == 1 && choice.Mode == continuo.ChoiceRequired {
		return tools
	}
	return slices.DeleteFunc(slices.Clone(tools), func(tool continuo.ToolSpec) bool { return !slices.Contains(choice.Tools, tool.Name) })
}

// geminiOffered is offered for Gemini, which can name tools where one must be called.
func geminiOffered(env continuo.Envelope, tools []continuo.ToolSpec) []continuo.ToolSpec {
	if env.Sampling != nil && env.Sampling.ToolChoice != nil && env.Sampling.ToolChoice.Mode == continuo.ChoiceRequired {
		return tools
	}
	return offered(env, tools)
}

// The models of OpenAI by their names: those that do not reason, and those that reason always and then have no sampling.
var (
	neverReasons  = regexp.MustCompile(`^(gpt-3|gpt-4|chatgpt-)`)
	alwaysReasons = regexp.MustCompile(`^(o\d|gpt-5)`)
)

const vendorOpenAI = "openai"

// maxUser is the longest name of a user that OpenAI's APIs accept.
const maxUser = 64

// forReasoning removes what models of OpenAI refuse because they reason, or because they do not.
func forReasoning(env *continuo.Envelope, s *continuo.Sampling, o Options, l *left) {
	if env.Sampling == nil || o.Provider != vendorOpenAI {
		return
	}
	if l.unless(!neverReasons.MatchString(env.Model), env.ReasoningEffort != "", "reasoning_effort"); neverReasons.MatchString(env.Model) {
		env.ReasoningEffort = ""
	}
	if !alwaysReasons.MatchString(env.Model) || strings.Contains(env.Model, "chat") || env.ReasoningEffort == "none" {
		return
	}
	if isOther(env.Temperature, 1) {
		*l = append(*l, "temperature")
	}
	if isOther(s.TopP, 1) {
		*l = append(*l, "top_p")
	}
	env.Temperature, s.TopP = nil, nil
	l.unless(false, len(s.Stop) > 0, "stop")
	l.unless(false, s.PresencePenalty != nil, "presence_penalty")
	l.unless(false, s.FrequencyPenalty != nil, "frequency_penalty")
	s.Stop, s.PresencePenalty, s.FrequencyPenalty = nil, nil, nil
}

func isOther(given *float64, usual float64) bool { return given != nil && *given != usual }

// sampleChat sets in a chat completions request what a client asks of the answer, and returns what it cannot have.
func sampleChat(env continuo.Envelope, o Options, request *openaichat.Request) (l left) {
	s := samplingOf(env, &l)
	forReasoning(&env, &s, o, &l)
	request.Temperature, request.ReasoningEffort = env.Temperature, env.ReasoningEffort
	request.TopP, request.Stop, request.Seed, request.ParallelToolCalls = s.TopP, s.Stop, s.Seed, s.ParallelToolCalls
	request.PresencePenalty, request.FrequencyPenalty = s.PresencePenalty, s.FrequencyPenalty
	request.ToolChoice = chatChoice(s.ToolChoice, o.Provider == vendorOpenAI)
	if l.unless(o.Provider != vendorOpenAI, s.TopK != nil, "top_k") {
		request.TopK = s.TopK
	}
	if l.unless(o.Provider == vendorOpenAI && s.ServiceTier != "standard_only", s.ServiceTier != "", "service_tier") {
		request.ServiceTier = s.ServiceTier
	}
	if l.unless(len(s.User) <= maxUser, s.User != "", "user") {
		request.User = s.User
	}
	if l.unless(o.Provider == vendorOpenAI, s.CacheKey != "", "cache_key") {
		request.PromptCacheKey = s.CacheKey
	}
	if l.unless(o.Provider == vendorOpenAI, s.Verbosity != "", "verbosity") {
		request.Verbosity = s.Verbosity
	}
	return l
}

// chatChoice is a choice of tools in chat completions. Some of the tools can be named at OpenAI only.
func chatChoice(choice *continuo.ToolChoice, some bool) json.RawMessage {
	named := func(name string) map[string]any {
		return map[string]any{"type": "function", "function": map[string]string{"name": ToolName(name)}}
	}
	switch {
	case choice == nil:
		return nil
	case len(choice.Tools) == 1 && choice.Mode == continuo.ChoiceRequired:
		return rawjson.MustMarshal(named(choice.Tools[0]))
	case len(choice.Tools) > 0 && some && choice.Mode != continuo.ChoiceNone:
		var tools []any
		for _, name := range choice.Tools {
			tools = append(tools, named(name))
		}
		return rawjson.MustMarshal(map[string]any{"type": "allowed_tools", "allowed_tools": map[string]any{"mode": choice.Mode, "tools": tools}})
	}
	return rawjson.MustMarshal(choice.Mode)
}

// sampleResponses is sampleChat for a request to the Responses API.
func sampleResponses(env continuo.Envelope, o Options, request *responses.Request) (l left) {
	s := samplingOf(env, &l)
	l.unless(false, len(s.Stop) > 0, "stop")
	l.unless(false, s.PresencePenalty != nil, "presence_penalty")
	l.unless(false, s.FrequencyPenalty != nil, "frequency_penalty")
	l.unless(false, s.Seed != nil, "seed")
	l.unless(false, s.TopK != nil, "top_k")
	s.Stop, s.PresencePenalty, s.FrequencyPenalty = nil, nil, nil
	forReasoning(&env, &s, o, &l)
	request.Temperature, request.TopP, request.ParallelToolCalls, request.PromptCacheKey = env.Temperature, s.TopP, s.ParallelToolCalls, s.CacheKey
	if env.ReasoningEffort != "" {
		request.Reasoning = &responses.Reasoning{Effort: env.ReasoningEffort, Summary: "auto"}
	}
	request.ToolChoice = responsesChoice(s.ToolChoice)
	if s.Verbosity != "" {
		request.Text = &responses.Text{Verbosity: s.Verbosity}
	}
	if l.unless(s.ServiceTier != "standard_only", s.ServiceTier != "", "service_tier") {
		request.ServiceTier = s.ServiceTier
	}
	if l.unless(len(s.User) <= maxUser, s.User != "", "user") {
		request.SafetyIdentifier = s.User
	}
	return l
}

func responsesChoice(choice *continuo.ToolChoice) json.RawMessage {
	named := func(name string) map[string]string {
		return map[string]string{"type": "function", "name": ToolName(name)}
	}
	switch {
	case choice == nil:
		return nil
	case len(choice.Tools) == 1 && choice.Mode == continuo.ChoiceRequired:
		return rawjson.MustMarshal(named(choice.Tools[0]))
	case len(choice.Tools) > 0 && choice.Mode != continuo.ChoiceNone:
		var tools []any
		for _, name := range choice.Tools {
			tools = append(tools, named(name))
		}
		return rawjson.MustMarshal(map[string]any{"type": "allowed_tools", "mode": choice.Mode, "tools": tools})
	}
	return rawjson.MustMarshal(choice.Mode)
}

// geminiModes are Gemini's names of the modes of a choice of tools.
var geminiModes = map[string]string{continuo.ChoiceAuto: "AUTO", continuo.ChoiceNone: "NONE", continuo.ChoiceRequired: "ANY"}

// sampleGemini is sampleChat for a request to the Gemini API.
func sampleGemini(env continuo.Envelope, request *gemini.Request) (l left) {
	s := samplingOf(env, &l)
	config := gemini.GenerationConfig{
		Temperature: env.Temperature, MaxOutputTokens: env.MaxOutputTokens, TopP: s.TopP, TopK: s.TopK, StopSequences: s.Stop,
		PresencePenalty: s.PresencePenalty, FrequencyPenalty: s.FrequencyPenalty, ThinkingConfig: thinkingConfig(env, s.ThinkingBudget),
	}
	if l.unless(s.Seed != nil && *s.Seed >= math.MinInt32 && *s.Seed <= math.MaxInt32, s.Seed != nil, "seed") {
		config.Seed = s.Seed
	}
	if format := responsesFormat(env.ResponseFormat); format != nil {
		config.ResponseMimeType, config.ResponseJSONSchema = "application/json", format.Schema
	}
	if head := rawjson.MustMarshal(config); string(head) != "{}" {
		request.GenerationConfig = &config
	}
	if s.ToolChoice != nil {
		calling := gemini.FunctionCallingConfig{Mode: geminiModes[s.ToolChoice.Mode]}
		if s.ToolChoice.Mode == continuo.ChoiceRequired {
			for _, name := range s.ToolChoice.Tools {
				calling.AllowedFunctionNames = append(calling.AllowedFunctionNames, ToolName(name))
			}
		}
		request.ToolConfig = rawjson.MustMarshal(gemini.ToolConfig{FunctionCallingConfig: calling})
	}
	l.unless(false, s.ParallelToolCalls != nil, "parallel_tool_calls")
	l.unless(false, s.ServiceTier != "", "service_tier")
	l.unless(false, s.User != "", "user")
	l.unless(false, s.CacheKey != "", "cache_key")
	l.unless(false, s.Verbosity != "", "verbosity")
	return l
}

// allSampling names everything that a client asks of the answer.
func allSampling(env continuo.Envelope) (l left) {
	s := samplingOf(env, &l)
	for name, given := range map[string]bool{
		"max_output_tokens": env.Sampling != nil && env.MaxOutputTokens > 0, "temperature": env.Sampling != nil && env.Temperature != nil,
		"reasoning_effort": env.Sampling != nil && env.ReasoningEffort != "", "tool_choice": s.ToolChoice != nil, "parallel_tool_calls": s.ParallelToolCalls != nil,
		"top_p": s.TopP != nil, "top_k": s.TopK != nil, "stop": len(s.Stop) > 0, "presence_penalty": s.PresencePenalty != nil,
		"frequency_penalty": s.FrequencyPenalty != nil, "seed": s.Seed != nil, "service_tier": s.ServiceTier != "", "user": s.User != "",
		"cache_key": s.CacheKey != "", "verbosity": s.Verbosity != "",
	} {
		l.unless(false, given, name)
	}
	slices.Sort(l)
	return l
}
