// Package known is a catalogue of the models of vendors: how much they take, what they cost and what they can do. The
// program has one built in (models.json, with the date of each vendor's figures); a file of the same form replaces it.
//
// The form is that of https://models.dev/api.json, so that a newer catalogue can be had from there; members that are not
// needed are ignored. Prices are in US dollars per million tokens. Two members are Continuo's own: `checked`, the day on
// which a vendor's figures were looked up, and `cost_from`, prices that apply from a day on.
package known

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Catalogue has vendors by their ids. It is read-only once read.
type Catalogue map[string]Vendor

// Vendor is who serves models.
type Vendor struct {
	Name string `json:"name"`
	// API is the base URL of the vendor's API.
	API string `json:"api"`
	// Doc is the page with the figures, Checked the day on which they were looked up, as 2006-01-02.
	Doc     string           `json:"doc"`
	Checked string           `json:"checked"`
	Models  map[string]Model `json:"models"`
}

// Model is what is known of a model; zero values are unknown.
type Model struct {
	Limit Limit   `json:"limit"`
	Cost  *Prices `json:"cost"`
	// CostFrom are later prices, by the day from which they apply, as 2006-01-02 in UTC.
	CostFrom  map[string]*Prices `json:"cost_from"`
	Reasoning bool               `json:"reasoning"`
	// ReasoningOptions are the ways in which requests choose how much the model reasons.
	ReasoningOptions []ReasoningOption `json:"reasoning_options"`
	ToolCall         bool              `json:"tool_call"`
	StructuredOutput bool              `json:"structured_output"`
	Temperature      bool              `json:"temperature"`
	Modalities       Modalities        `json:"modalities"`
	OpenWeights      bool              `json:"open_weights"`
}

// Limit counts tokens.
type Limit struct {
	Context int `json:"context"` // prompt and answer together
	Input   int `json:"input"`   // the prompt alone, where it is less
	Output  int `json:"output"`
}

// ReasoningOption is `effort` with its values, `budget_tokens` with its bounds, or `toggle`.
type ReasoningOption struct {
	Type   string   `json:"type"`
	Values []string `json:"values"`
	Min    int      `json:"min"`
	Max    int      `json:"max"`
}

// Modalities are what a model reads and writes: text, image, audio, video, pdf.
type Modalities struct {
	Input  []string `json:"input"`
	Output []string `json:"output"`
}

// Window is how many tokens prompt and answer may have together, so that the prompt keeps to its own limit; 0 is unknown.
func (m Model) Window() int {
	if m.Limit.Input > 0 && m.Limit.Input < m.Limit.Context {
		return m.Limit.Input
	}
	return m.Limit.Context
}

// Accepts reports whether the model reads a modality besides text.
func (m Model) Accepts(modality string) bool { return slices.Contains(m.Modalities.Input, modality) }

//go:embed models.json
var builtIn []byte

// BuiltIn is the catalogue of the program.
var BuiltIn = sync.OnceValue(func() Catalogue {
	c, err := Parse(builtIn)
	if err != nil {
		panic("known: models.json: " + err.Error())
	}
	return c
})

// Parse reads a catalogue.
func Parse(data []byte) (Catalogue, error) {
	var c Catalogue
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("no catalogue of models: %w; a catalogue has the form of https://models.dev/api.json", err)
	}
	count := 0
	for id, vendor := range c {
		for name, model := range vendor.Models {
			count++
			if err := model.check(); err != nil {
				return nil, fmt.Errorf("the model %s of %s: %w", name, id, err)
			}
		}
	}
	if count == 0 {
		return nil, fmt.Errorf("it lists no models; a catalogue has the form of https://models.dev/api.json")
	}
	return c, nil
}

// With is the catalogue with the models of another, which takes precedence.
func (c Catalogue) With(other Catalogue) Catalogue {
	both := maps.Clone(c)
	for id, vendor := range other {
		if models := c[id].Models; models != nil {
			all := maps.Clone(models)
			maps.Copy(all, vendor.Models)
			vendor.Models = all
			vendor.API = cmp.Or(vendor.API, c[id].API)
		}
		both[id] = vendor
	}
	return both
}

func (m Model) check() error {
	if m.Limit.Context < 0 || m.Limit.Input < 0 || m.Limit.Output < 0 {
		return fmt.Errorf("a limit is negative")
	}
	for _, prices := range m.CostFrom {
		if err := prices.check(); err != nil {
			return err
		}
	}
	return m.Cost.check()
}

// dated is the end of the names of snapshots: a day, as 20250929 or 2025-04-14.
var dated = regexp.MustCompile(`-(20\d{6}|20\d\d-\d\d-\d\d)$`)

// Find finds a model of a provider: the id of a vendor, or the host of its API. A dated snapshot that is not listed is
// found by its name without the date.
func (c Catalogue) Find(provider, model string) (Model, bool) {
	vendor, ok := c[provider]
	if !ok {
		vendor, ok = c.byHost(provider)
	}
	if !ok {
		return Model{}, false
	}
	found, ok := vendor.Models[model]
	if short := dated.ReplaceAllString(model, ""); !ok && short != model {
		found, ok = vendor.Models[short]
	}
	return found, ok
}

// byHost finds the vendor whose API has a host. Of several, which are plans of one vendor, the first by its id.
func (c Catalogue) byHost(host string) (Vendor, bool) {
	first := ""
	for id, vendor := range c {
		location, err := url.Parse(vendor.API)
		if err == nil && location.Host != "" && strings.EqualFold(location.Host, host) && (first == "" || id < first) {
			first = id
		}
	}
	return c[first], first != ""
}

// Named finds a model by a vendor's id and the model's name, separated by a slash.
func (c Catalogue) Named(name string) (Model, bool) {
	vendor, model, ok := strings.Cut(name, "/")
	if !ok {
		return Model{}, false
	}
	return c.Find(vendor, model)
}
