package main

import (
	"errors"
	"slices"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/config"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/render"
)

// Each protocol has a row in the settings, in the rendering and in the wiring, and its client speaks it. Connectors use
// the prompt protocol, which no setting names.
func TestEachProtocolHasARowInEachTable(t *testing.T) {
	var inSettings []string
	for _, p := range config.Protocols() {
		inSettings = append(inSettings, p.Name)
		if _, err := render.ProtocolOf(p.Name); err != nil {
			t.Error(err)
		}
		m, err := (modelWiring{}).upstream(config.ModelConfig{Name: "m", Model: "m", Protocol: p.Name, BaseURL: p.BaseURL, Provider: p.Provider})
		if err != nil {
			t.Error(err)
			continue
		}
		if info := m.Info(); info.Protocol != p.Name || info.Provider != p.Provider {
			t.Errorf("%s: its client is %+v", p.Name, info)
		}
		if row := wireProtocols[p.Name]; row.modelsPath == "" || row.authorize == nil {
			t.Errorf("%s: doctor cannot ask for its models", p.Name)
		}
	}
	for _, p := range render.Protocols() {
		if p.Name != model.ProtocolPrompt && !slices.Contains(inSettings, p.Name) {
			t.Errorf("%s is rendered, but no setting names it", p.Name)
		}
	}
	if len(wireProtocols) != len(inSettings) {
		t.Errorf("%d protocols are wired, the settings have %v", len(wireProtocols), inSettings)
	}
}

func TestAProtocolWithoutAClientIsAnError(t *testing.T) {
	if m, err := (modelWiring{}).upstream(config.ModelConfig{Name: "m", Protocol: "other"}); !errors.Is(err, continuo.ErrInvalid) || m != nil {
		t.Errorf("got %v, %v", m, err)
	}
}
