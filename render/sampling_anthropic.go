package render

import (
	"regexp"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/anthropic"
	"github.com/continuo-log/continuo/window"
)

// The models of Anthropic by how they are told to think. The newer ones choose themselves how long they think and are told
// an effort, those before them are told how many tokens, and the first ones do not think. Of the newer ones, those after
// the first generation refuse to be told how to sample.
var (
	neverThinks  = regexp.MustCompile(`^claude-(2|3-5|3-haiku|3-opus|3-sonnet|instant)`)
	adaptive     = regexp.MustCompile(`^claude-([a-z]+-4[-.]([6-9]|1\d)(\D|$)|[a-z]+-([5-9]|\d\d)(\D|$))`)
	samplesFixed = regexp.MustCompile(`^claude-(opus-4[-.]([7-9]|1\d)(\D|$)|[a-z]+-([5-9]|\d\d)(\D|$))`)
	oneSampling  = regexp.MustCompile(`^claude-[a-z]+-4[-.][1-9](\D|$)`)
)

// minThinking is the smallest budget that the API accepts.
const minThinking = 1024

// sampleAnthropic is sampleChat for a request to the Messages API.
func sampleAnthropic(env continuo.Envelope, mayThink bool, request *anthropic.Request) (l left) {
	s := samplingOf(env, &l)
	request.MaxTokens = env.MaxOutputTokens
	if request.MaxTokens == 0 {
		request.MaxTokens = DefaultMaxTokens
	}
	request.ToolChoice = anthropicChoice(s)
	thinks := think(env, s, mayThink, request, &l)
	sampleTokens(env, s, thinks, request, &l)
	for _, sequence := range s.Stop {
		if isBlank(sequence) {
			l = append(l, "stop")
			continue
		}
		request.StopSequences = append(request.StopSequences, sequence)
	}
	l = slices.Compact(l)
	if s.User != "" {
		request.Metadata = &anthropic.Metadata{UserID: s.User}
	}
	tier := map[string]string{"auto": "auto", "default": "standard_only", "standard_only": "standard_only"}[s.ServiceTier]
	if l.unless(tier != "", s.ServiceTier != "", "service_tier") {
		request.ServiceTier = tier
	}
	format := responsesFormat(env.ResponseFormat)
	if l.unless(format != nil && !rawjson.IsNull(format.Schema), format != nil, "response_format") {
		request.OutputConfig = withFormat(request.OutputConfig, format.Schema)
	}
	l.unless(false, s.PresencePenalty != nil, "presence_penalty")
	l.unless(false, s.FrequencyPenalty != nil, "frequency_penalty")
	l.unless(false, s.Seed != nil, "seed")
	l.unless(false, s.CacheKey != "", "cache_key")
	l.unless(false, s.Verbosity != "", "verbosity")
	return l
}

func withFormat(config *anthropic.OutputConfig, schema []byte) *anthropic.OutputConfig {
	if config == nil {
		config = &anthropic.OutputConfig{}
	}
	config.Format = &anthropic.OutputFormat{Type: "json_schema", Schema: schema}
	return config
}

// anthropicChoice is the choice of tools; nil for the API's own. That at most one of them is called is a part of it.
func anthropicChoice(s continuo.Sampling) *anthropic.ToolChoice {
	single := s.ParallelToolCalls != nil && !*s.ParallelToolCalls
	choice := anthropic.ToolChoice{Type: "auto", DisableParallelToolUse: single}
	switch {
	case s.ToolChoice == nil && !single:
		return nil
	case s.ToolChoice == nil:
	case s.ToolChoice.Mode == continuo.ChoiceNone:
		return &anthropic.ToolChoice{Type: "none"}
	case s.ToolChoice.Mode == continuo.ChoiceRequired && len(s.ToolChoice.Tools) == 1:
		choice.Type, choice.Name = "tool", ToolName(s.ToolChoice.Tools[0])
	case s.ToolChoice.Mode == continuo.ChoiceRequired:
		choice.Type = "any"
	}
	return &choice
}

// think sets how much the model thinks, and reports whether it does. A model that must call a tool cannot think.
func think(env continuo.Envelope, s continuo.Sampling, may bool, request *anthropic.Request, l *left) bool {
	effort := env.ReasoningEffort
	if effort == "" || effort == "none" {
		return false
	}
	forced := request.ToolChoice != nil && (request.ToolChoice.Type == "any" || request.ToolChoice.Type == "tool")
	if adaptive.MatchString(env.Model) {
		request.OutputConfig = &anthropic.OutputConfig{Effort: anthropicEffort(env.Model, effort)}
		if !forced {
			request.Thinking = &anthropic.Thinking{Type: "adaptive"}
		}
		return !forced
	}
	budget := thinkingBudgets[effort]
	if s.ThinkingBudget != nil {
		budget = *s.ThinkingBudget
	}
	budget = max(budget, minThinking)
	if env.MaxOutputTokens == 0 {
		request.MaxTokens = DefaultMaxTokens + budget
	}
	budget = min(budget, request.MaxTokens-1)
	if forced || !may || budget < minThinking || neverThinks.MatchString(env.Model) {
		*l = append(*l, "reasoning_effort")
		request.MaxTokens = env.MaxOutputTokens
		if request.MaxTokens == 0 {
			request.MaxTokens = DefaultMaxTokens
		}
		return false
	}
	request.Thinking = &anthropic.Thinking{Type: "enabled", BudgetTokens: budget}
	return true
}

// anthropicEffort is the name of an effort that a model has.
func anthropicEffort(name, effort string) string {
	switch {
	case effort == "minimal":
		return "low"
	case effort != "xhigh" || samplesFixed.MatchString(name):
		return effort
	case strings.Contains(name, "opus"):
		return "max"
	}
	return "high"
}

// mayThink reports whether a request may ask a model to think for a number of tokens: not in a tool loop that began
// without thinking, of this model or of another one.
func mayThink(messages []window.Message, o Options) bool {
	for i := len(messages) - 1; i >= 0 && messages[i].Role != continuo.User; i-- {
		m := &messages[i]
		if m.Role != continuo.Assistant || len(m.ToolCalls) == 0 {
			continue
		}
		w := &anthropicWriter{options: o}
		if !shownWhole(m) {
			return false
		}
		blocks := w.vendorBlocks(m)
		if len(blocks) == 0 || !isThinking(blockType(blocks[0])) {
			return false
		}
	}
	return true
}

// sampleTokens sets how tokens are sampled: a model that thinks has only its own way, and others have a temperature of at
// most 1.
func sampleTokens(env continuo.Envelope, s continuo.Sampling, thinks bool, request *anthropic.Request, l *left) {
	free := !thinks && !(env.Sampling != nil && samplesFixed.MatchString(env.Model))
	if l.unless(free, isOther(env.Temperature, 1) || free && env.Temperature != nil, "temperature") {
		request.Temperature = env.Temperature
		if *env.Temperature > 1 && env.Sampling != nil {
			request.Temperature = new(1.0)
			*l = append(*l, "temperature")
		}
	}
	if l.unless(free && (request.Temperature == nil || !oneSampling.MatchString(env.Model)), isOther(s.TopP, 1), "top_p") {
		request.TopP = s.TopP
	}
	if l.unless(free, s.TopK != nil, "top_k") {
		request.TopK = s.TopK
	}
}
