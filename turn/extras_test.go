package turn_test

import (
	"encoding/json"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
	"github.com/continuo-log/continuo/turn"
)

// What the settings ask of a model's answers is in each request that no client makes; the requests are rebuilt with it.
func TestExtrasAreInRequests(t *testing.T) {
	top, seed := 0.5, int64(7)
	extras := turn.Extras{
		Sampling:       &continuo.Sampling{TopP: &top, Seed: &seed, Stop: []string{"END"}},
		ResponseFormat: json.RawMessage(`{"type":"json_object"}`),
		Body:           json.RawMessage(`{"enable_thinking":false,"top_p":0.25}`),
	}
	for _, test := range []struct {
		name    string
		dialect model.Dialect
		options *turn.ClientOptions
		want    map[string]string // "" is absent
	}{
		{
			"of no client",
			model.Dialect{Structured: model.StructuredSchema},
			nil,
			map[string]string{"seed": "7", "stop": `["END"]`, "top_p": "0.25", "enable_thinking": "false", "response_format": `{"type":"json_object"}`},
		},
		{
			"without structured outputs",
			model.Dialect{},
			nil,
			map[string]string{"seed": "7", "response_format": ""},
		},
		{
			"of a client",
			model.Dialect{Structured: model.StructuredSchema},
			&turn.ClientOptions{Sampling: &continuo.Sampling{}},
			map[string]string{"seed": "", "stop": "", "enable_thinking": "false", "response_format": ""},
		},
		{
			"of a client with members of its own",
			model.Dialect{},
			&turn.ClientOptions{Own: &continuo.OwnMembers{Protocol: model.ProtocolOpenAIChat, Members: json.RawMessage(`{"enable_thinking":true,"x":1}`)}},
			map[string]string{"enable_thinking": "true", "x": "1", "top_p": "0.25"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t, textAnswer("Hello."))
			h.runner.Extras, h.runner.Options, h.runner.Speaker = extras, test.options, model.NewSpeaker(test.dialect, model.Fixed{})
			h.send("Hi.")
			var body map[string]json.RawMessage
			if err := json.Unmarshal([]byte(h.model.bodies[0]), &body); err != nil {
				t.Fatal(err)
			}
			for name, want := range test.want {
				if got := string(body[name]); got != want {
					t.Errorf("%s is %s, want %s", name, got, want)
				}
			}
			h.checkReplays()
		})
	}
}
