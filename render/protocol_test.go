package render_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/render"
	"github.com/continuo-log/continuo/window"
)

// Each constant of package model has a row, and each row renders a request.
func TestEachProtocolHasARow(t *testing.T) {
	var names []string
	for _, p := range render.Protocols() {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	if want := []string{model.ProtocolAnthropic, model.ProtocolGemini, model.ProtocolOpenAIChat, model.ProtocolResponses, model.ProtocolPrompt}; !slices.Equal(names, want) {
		t.Fatalf("got %v, want %v", names, want)
	}
	plan := &window.Plan{Messages: []window.Message{{Seq: 1, Role: continuo.User, Content: continuo.Text("hello")}}}
	for _, name := range []string{
		model.ProtocolOpenAIChat, model.ProtocolOpenAIChat + model.TranscriptSuffix,
		model.ProtocolResponses, model.ProtocolResponses + model.TranscriptSuffix,
		model.ProtocolGemini, model.ProtocolGemini + model.TranscriptSuffix,
		model.ProtocolAnthropic, model.ProtocolAnthropic + model.TranscriptSuffix, model.ProtocolPrompt,
	} {
		p, err := render.ProtocolOf(name)
		if err != nil || p.Name != name {
			t.Errorf("%s: got the row of %q, %v", name, p.Name, err)
			continue
		}
		body, err := p.Request(continuo.Envelope{Model: "m", MaxOutputTokens: 10}, plan, render.Options{})
		if err != nil || !strings.Contains(string(body), "hello") {
			t.Errorf("%s: got %s, %v", name, body, err)
		}
		if missing := p.Unsent(plan.Messages, render.Options{}); len(missing) != 0 {
			t.Errorf("%s: a text is said to be left out: %v", name, missing)
		}
	}
}

func TestAnUnknownProtocolHasNoRow(t *testing.T) {
	for _, name := range []string{"", "openai", model.TranscriptSuffix, model.ProtocolPrompt + model.TranscriptSuffix, "demo"} {
		_, err := render.ProtocolOf(name)
		if !errors.Is(err, continuo.ErrInvalid) || !strings.Contains(err.Error(), model.ProtocolAnthropic) {
			t.Errorf("%q: got %v", name, err)
		}
	}
}
