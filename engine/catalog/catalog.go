package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/prompt"
	"github.com/continuo-log/continuo/task"
	"github.com/continuo-log/continuo/tool"
	"github.com/continuo-log/continuo/turn"
	"github.com/continuo-log/continuo/window"
)

// Agent is a persona of the settings that answers in the modes agent and run, with the model, view and tools that it
// uses.
type Agent struct {
	ID   string
	Name string // for people; "": the id
	// Persona is a system message in the modes agent and run, never in chat. "": none.
	Persona string
	// Model and View are names; "": the request, else the defaults, decide.
	Model, View string
	// Tools narrows the engine's policy. The zero value allows everything that the engine's policy allows.
	Tools *tool.Policy
	// Budget replaces the view's limits where its numbers are not 0.
	Budget window.Limits
	// MaxOutputTokens replaces the model's own; 0 keeps it.
	MaxOutputTokens int
}

// Catalog has the models, agents, views and tools that turns can use, by their names.
type Catalog struct {
	log     *continuo.Log
	Options Options
}

// Options are what a Catalog has; the fields are those of [Options].
type Options struct {
	Models  map[string]Upstream
	Default string
	// Serve finds a model for a name that is not in Models, at best one of the protocol; "" prefers none. Default: there
	// is none.
	Serve func(name, protocol string) (Upstream, bool)
	// Listed lists the names that Serve finds, as far as they are known; credentials are the client's own, for upstreams to
	// which they are forwarded. Default: none is listed.
	Listed  func(ctx context.Context, credentials http.Header) []string
	Views   *window.Settings
	Prompts prompt.Prompts
	Tools   tool.Source
	Policy  tool.Policy
	Agents  map[string]Agent
	Limits  turn.Limits
	Handoff task.Limits
	// Recaller finds what messages need; see turn.Runner. Default none.
	Recaller turn.Recaller
	// Profiler has what is known of users; see turn.Runner. Default none.
	Profiler turn.Profiler
}

// New makes a catalog; the names that its upstreams give must exist.
func New(log *continuo.Log, options Options) (*Catalog, error) {
	if _, ok := options.Models[options.Default]; !ok {
		return nil, fmt.Errorf("engine: %w: there is no model %q", continuo.ErrInvalid, options.Default)
	}
	for name, upstream := range options.Models {
		if _, ok := options.Models[upstream.Fallback]; !ok && upstream.Fallback != "" {
			return nil, fmt.Errorf("engine: %w: the fallback of the model %s: there is no model %q", continuo.ErrInvalid, name, upstream.Fallback)
		}
	}
	settings := window.DefaultSettings()
	if options.Views != nil {
		settings = *options.Views
	}
	options.Views = &settings
	return &Catalog{log: log, Options: options}, nil
}

// Models lists the names of the models, the default first.
func (cat *Catalog) Models() []string {
	names := []string{cat.Options.Default}
	for name := range cat.Options.Models {
		if name != cat.Options.Default {
			names = append(names, name)
		}
	}
	slices.Sort(names[1:])
	return names
}

// ServedModels lists the names of all models that clients can ask for, as far as they are known: the default first.
func (cat *Catalog) ServedModels(ctx context.Context, credentials http.Header) []string {
	names := cat.Models()
	if cat.Options.Listed == nil {
		return names
	}
	for _, name := range cat.Options.Listed(ctx, credentials) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Upstream finds a model by name, "" meaning the default: one of Models, or one that Serve finds and that does not need
// the credentials of a client.
func (cat *Catalog) Upstream(name string) (Upstream, error) {
	found, err := cat.Served(name, "")
	if err == nil && found.ForwardCredentials {
		return Upstream{}, fmt.Errorf("the model %q: %w: its upstream takes the credentials of clients, which only requests to the vendors' endpoints have", name, continuo.ErrInvalid)
	}
	return found, err
}

// Served finds the model for a client's request of a protocol: one of the names of Models, or one that Serve finds.
func (cat *Catalog) Served(name, protocol string) (Upstream, error) {
	if name == "" {
		name = cat.Options.Default
	}
	if found, ok := cat.Options.Models[name]; ok {
		return found, nil
	}
	if cat.Options.Serve != nil {
		if found, ok := cat.Options.Serve(name, protocol); ok {
			return found, nil
		}
	}
	return Upstream{}, fmt.Errorf("%w: unknown model %q; allowed: %s", continuo.ErrInvalid, name, strings.Join(cat.Models(), ", "))
}

// ServesOthers reports whether clients may ask for models besides those of Models.
func (cat *Catalog) ServesOthers() bool { return cat.Options.Serve != nil }

// NameOf is the name of a provider's model: the first of Models that is it, else the provider's own name where Serve finds it.
func (cat *Catalog) NameOf(provider, model string) (name string, ok bool) {
	for _, name := range cat.Models() {
		if info := cat.Options.Models[name].Model.Info(); info.Provider == provider && info.Name == model {
			return name, true
		}
	}
	found, err := cat.Upstream(model)
	return model, err == nil && model != "" && found.Model.Info().Provider == provider
}

// IsProgram reports whether a program replaces the models of a provider.
func (cat *Catalog) IsProgram(provider string) bool {
	for _, upstream := range cat.Options.Models {
		if info := upstream.Model.Info(); info.Provider == provider && info.TakesPrompt() {
			return true
		}
	}
	return false
}

// DefaultModel describes the default model.
func (cat *Catalog) DefaultModel() model.Info {
	return cat.Options.Models[cat.Options.Default].Model.Info()
}

// Agents lists the agents by id.
func (cat *Catalog) Agents() []Agent {
	var agents []Agent
	for _, id := range slices.Sorted(maps.Keys(cat.Options.Agents)) {
		agents = append(agents, cat.Options.Agents[id])
	}
	return agents
}

// ErrUnknownAgent says that the settings have no agent of that id; it may have been removed from them.
var ErrUnknownAgent = errors.New("unknown agent")

// Agent finds an agent by id; "" gives the zero Agent.
func (cat *Catalog) Agent(id string) (Agent, error) {
	if id == "" {
		return Agent{}, nil
	}
	found, ok := cat.Options.Agents[id]
	if !ok {
		known := "there are none; agents are defined in continuo.yaml under agents"
		if len(cat.Options.Agents) > 0 {
			known = "allowed: " + strings.Join(slices.Sorted(maps.Keys(cat.Options.Agents)), ", ")
		}
		return Agent{}, fmt.Errorf("%w %q: %w: %s", ErrUnknownAgent, id, continuo.ErrInvalid, known)
	}
	return found, nil
}

// Upstream is a model with its request options.
type Upstream struct {
	Model           model.Model
	MaxOutputTokens int      // 0: the provider's default
	Temperature     *float64 // nil: the provider's default
	ReasoningEffort string   // see continuo.Envelope; "": the model's default
	Extras          turn.Extras
	// Speaker handles the model's dialect. Default: the protocol as it is.
	Speaker *model.Speaker
	// Fallback names the model that is used when this one fails before it has produced output; the fallback's own
	// fallback is not used. Default none.
	Fallback string
	// ForwardCredentials says that a client's request is forwarded with the client's own credentials.
	ForwardCredentials bool
	// Window says what the model is shown of a client's request: WindowClient, the name of a view, or WindowAuto, which ""
	// means too.
	Window string
}

// The values of Upstream.Window that are no views. WindowClient: what the client sent. WindowAuto: that, where the client sends its
// history, else the view for the request.
const (
	WindowAuto   = "auto"
	WindowClient = "client"
)
