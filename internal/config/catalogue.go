package config

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model/known"
)

// CatalogueConfig is the section catalogue.
type CatalogueConfig struct {
	File string `key:"file" kind:"path" empty:"for the built-in one alone" help:"A file of models with their limits and prices, whose entries replace those of the built-in catalogue. It has the form of https://models.dev/api.json, so that a newer one can be downloaded from there. What models.NAME sets takes precedence."`
}

// maxCatalogueBytes bounds a catalogue: that of models.dev, with some five thousand models, has 2 MiB.
const maxCatalogueBytes = 64 << 20

// loadCatalogue reads the catalogue of models; nil where it cannot be read.
func (l *loader) loadCatalogue() {
	l.config.Known = known.BuiltIn()
	name := l.config.Catalogue.File
	if name == "" {
		return
	}
	read, err := readCatalogue(name)
	if err != nil {
		l.problems.add(l.row("catalogue.file").origin, "catalogue.file: %s: %w", quoted(name), err)
		l.config.Known = nil
		return
	}
	l.config.Known = l.config.Known.With(read)
}

func readCatalogue(name string) (known.Catalogue, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxCatalogueBytes+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxCatalogueBytes:
		return nil, fmt.Errorf("it is larger than %d bytes, which no catalogue of models should be", maxCatalogueBytes)
	}
	return known.Parse(data)
}

// KnownOf is what the catalogue has of a model, without the model's own prices.
func (c *Config) KnownOf(m ModelConfig) (known.Model, bool) {
	if m.KnownAs != "" {
		return c.Known.Named(m.KnownAs)
	}
	return c.Known.Find(m.Provider, m.Model)
}

// WithKnown fills in what the settings leave to the catalogue: the model's window, and how long its answers may be where
// the protocol demands a number.
func (c *Config) WithKnown(m ModelConfig) ModelConfig {
	found, _ := c.KnownOf(m)
	m.ContextWindow = cmp.Or(m.ContextWindow, found.Window())
	if p, err := ProtocolOf(m.Protocol); err == nil && m.MaxOutputTokens == p.MaxOutputTokens && p.MaxOutputTokens > 0 {
		m.MaxOutputTokens = cmp.Or(found.Limit.Output, m.MaxOutputTokens)
	}
	return m
}

// fromCatalogue sets the defaults of a model that the catalogue knows.
func (m *ModelConfig) fromCatalogue(l *loader, e *entry) {
	if _, ok := l.config.Known.Named(m.KnownAs); m.KnownAs != "" && !ok {
		if l.config.Known == nil { // which is the problem
			return
		}
		row := e.row("known_as")
		l.problems.add(row.origin, "%s: given %s, which is not in the catalogue; write a vendor and a model of it, such as openai/gpt-5.5",
			row.key, quoted(m.KnownAs))
		return
	}
	found, ok := l.config.KnownOf(*m)
	if !ok {
		return
	}
	if window := found.Window(); window > m.MaxOutputTokens {
		e.row("context_window").setDefault(strconv.Itoa(window))
	}
	p, err := ProtocolOf(m.Protocol)
	if most := found.Limit.Output; err == nil && p.MaxOutputTokens > 0 && most > 0 && (m.ContextWindow == 0 || most < m.ContextWindow) {
		e.row("max_output_tokens").setDefault(strconv.Itoa(most))
	}
	l.config.Models[m.Name] = *m
}

// Prices are those that the settings give a model; nil where they leave them to the catalogue.
func (m ModelConfig) Prices() *known.Prices {
	if m.InputPrice == nil || m.OutputPrice == nil {
		return nil
	}
	return &known.Prices{Input: *m.InputPrice, Output: *m.OutputPrice, CacheRead: m.CachedInputPrice, CacheWrite: m.CacheWritePrice}
}

// PriceList knows what requests cost: by the prices of the settings, and else by the catalogue. The demo costs nothing.
func (c *Config) PriceList() continuo.PriceList {
	type key struct{ provider, model string }
	own := map[key]*known.Prices{}
	for _, m := range c.Models {
		if prices := m.Prices(); prices != nil {
			own[key{m.Provider, m.Model}] = prices
		} else if found, ok := c.Known.Named(m.KnownAs); ok {
			own[key{m.Provider, m.Model}] = found.PricesAt(time.Now())
		}
	}
	return known.Pricer{Catalogue: c.Known, Own: func(provider, model string) (*known.Prices, bool) {
		prices, ok := own[key{provider, model}]
		if provider == DemoModel {
			return &known.Prices{}, true
		}
		return prices, ok
	}}
}
