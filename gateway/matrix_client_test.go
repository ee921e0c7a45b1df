package gateway_test

import (
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/internal/sse"
)

// shown is an answer as the client of an endpoint reads it.
type shown struct {
	reasoning, text, refusal, finish        string
	calls                                   []scriptedCall
	input, cached, output, reasoningCounted int
}

// client is an endpoint of the matrix: its requests, and how its client reads answers.
type client struct {
	name, path, stream string // as of a clientEndpoint
	// ask is the body of a request.
	ask     func(model string, streamed bool, messages, tools string) string
	say     func(text string) string    // a message of the user
	image   string                      // a message of the user with a text and an image
	calls   func([]scriptedCall) string // the calls of an answer, as the client repeats them
	results func([]scriptedCall) string // their results
	tools   string                      // the member that offers the tools look and see
	read    func(events []json.RawMessage, streamed bool) shown
	finish  map[string]string // of the scripted reasons
}

const (
	pixel     = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	toolShape = `{"type":"object","properties":{"at":{"type":"integer"}}}`
)

// dataOf are the values of a stream's events, without the last line of OpenAI's, or the value of a whole answer.
func dataOf(wire string, streamed bool) (values []json.RawMessage) {
	if !streamed {
		return []json.RawMessage{json.RawMessage(wire)}
	}
	events := sse.NewReader(strings.NewReader(wire), 0)
	for {
		event, err := events.Next()
		if err == io.EOF || err != nil {
			return values
		}
		if string(event.Data) != "[DONE]" {
			values = append(values, append(json.RawMessage{}, event.Data...))
		}
	}
}

func each(calls []scriptedCall, write func(scriptedCall) string) string {
	var all []string
	for _, call := range calls {
		all = append(all, write(call))
	}
	return strings.Join(all, ",")
}

var matrixClients = []client{
	{
		name: "chat completions", path: "/v1/chat/completions",
		ask: func(model string, streamed bool, messages, tools string) string {
			return `{"model":` + quoted(model) + `,"stream":` + quoted(streamed) + `,"stream_options":{"include_usage":true},"messages":[` + messages + `]` + tools + `}`
		},
		say:   func(text string) string { return `{"role":"user","content":` + quoted(text) + `}` },
		image: `{"role":"user","content":[{"type":"text","text":"what is it?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + pixel + `"}}]}`,
		calls: func(calls []scriptedCall) string {
			return `{"role":"assistant","content":"Look.","tool_calls":[` + each(calls, func(c scriptedCall) string {
				return `{"id":` + quoted(c.id) + `,"type":"function","function":{"name":` + quoted(c.name) + `,"arguments":` + quoted(c.arguments) + `}}`
			}) + `]}`
		},
		results: func(calls []scriptedCall) string {
			return each(calls, func(c scriptedCall) string {
				return `{"role":"tool","tool_call_id":` + quoted(c.id) + `,"content":"seen ` + c.name + `"}`
			})
		},
		tools:  `,"tools":[{"type":"function","function":{"name":"look","parameters":` + toolShape + `}},{"type":"function","function":{"name":"see","parameters":` + toolShape + `}}]`,
		read:   readChatAnswer,
		finish: map[string]string{"stop": "stop", "length": "length", "tools": "tool_calls", "refusal": "content_filter"},
	},
	{
		name: "Responses", path: "/v1/responses",
		ask: func(model string, streamed bool, messages, tools string) string {
			return `{"model":` + quoted(model) + `,"stream":` + quoted(streamed) + `,"store":false,"input":[` + messages + `]` + tools + `}`
		},
		say:   func(text string) string { return `{"role":"user","content":` + quoted(text) + `}` },
		image: `{"role":"user","content":[{"type":"input_text","text":"what is it?"},{"type":"input_image","image_url":"data:image/png;base64,` + pixel + `"}]}`,
		calls: func(calls []scriptedCall) string {
			return `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Look.","annotations":[]}]},` + each(calls, func(c scriptedCall) string {
				return `{"type":"function_call","call_id":` + quoted(c.id) + `,"name":` + quoted(c.name) + `,"arguments":` + quoted(c.arguments) + `}`
			})
		},
		results: func(calls []scriptedCall) string {
			return each(calls, func(c scriptedCall) string {
				return `{"type":"function_call_output","call_id":` + quoted(c.id) + `,"output":"seen ` + c.name + `"}`
			})
		},
		tools:  `,"tools":[{"type":"function","name":"look","parameters":` + toolShape + `},{"type":"function","name":"see","parameters":` + toolShape + `}]`,
		read:   readResponsesAnswer,
		finish: map[string]string{"stop": "completed", "length": "max_output_tokens", "tools": "completed", "refusal": "content_filter"},
	},
	{
		name: "messages", path: "/v1/messages",
		ask: func(model string, streamed bool, messages, tools string) string {
			return `{"model":` + quoted(model) + `,"max_tokens":99,"stream":` + quoted(streamed) + `,"messages":[` + messages + `]` + tools + `}`
		},
		say:   func(text string) string { return `{"role":"user","content":` + quoted(text) + `}` },
		image: `{"role":"user","content":[{"type":"text","text":"what is it?"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + pixel + `"}}]}`,
		calls: func(calls []scriptedCall) string {
			return `{"role":"assistant","content":[{"type":"text","text":"Look."},` + each(calls, func(c scriptedCall) string {
				return `{"type":"tool_use","id":` + quoted(c.id) + `,"name":` + quoted(c.name) + `,"input":` + c.arguments + `}`
			}) + `]}`
		},
		results: func(calls []scriptedCall) string {
			return `{"role":"user","content":[` + each(calls, func(c scriptedCall) string {
				return `{"type":"tool_result","tool_use_id":` + quoted(c.id) + `,"content":"seen ` + c.name + `"}`
			}) + `]}`
		},
		tools:  `,"tools":[{"name":"look","input_schema":` + toolShape + `},{"name":"see","input_schema":` + toolShape + `}]`,
		read:   readMessagesAnswer,
		finish: map[string]string{"stop": "end_turn", "length": "max_tokens", "tools": "tool_use", "refusal": "refusal"},
	},
	{
		name: "Gemini", path: "/v1beta/models/%s:generateContent", stream: "/v1beta/models/%s:streamGenerateContent?alt=sse",
		ask: func(_ string, _ bool, messages, tools string) string {
			return `{"contents":[` + messages + `]` + tools + `}`
		},
		say:   func(text string) string { return `{"role":"user","parts":[{"text":` + quoted(text) + `}]}` },
		image: `{"role":"user","parts":[{"text":"what is it?"},{"inlineData":{"mimeType":"image/png","data":"` + pixel + `"}}]}`,
		calls: func(calls []scriptedCall) string {
			return `{"role":"model","parts":[{"text":"Look."},` + each(calls, func(c scriptedCall) string {
				return `{"functionCall":{"id":` + quoted(c.id) + `,"name":` + quoted(c.name) + `,"args":` + c.arguments + `}}`
			}) + `]}`
		},
		results: func(calls []scriptedCall) string {
			return `{"role":"user","parts":[` + each(calls, func(c scriptedCall) string {
				return `{"functionResponse":{"id":` + quoted(c.id) + `,"name":` + quoted(c.name) + `,"response":{"output":"seen ` + c.name + `"}}}`
			}) + `]}`
		},
		tools:  `,"tools":[{"functionDeclarations":[{"name":"look","parametersJsonSchema":` + toolShape + `},{"name":"see","parametersJsonSchema":` + toolShape + `}]}]`,
		read:   readGeminiAnswer,
		finish: map[string]string{"stop": "STOP", "length": "MAX_TOKENS", "tools": "STOP", "refusal": "SAFETY"},
	},
}

// matrixRows are the clients with Responses in both ways of its use.
func matrixRows() []client {
	rows := slices.Clone(matrixClients)
	at := slices.IndexFunc(rows, func(c client) bool { return c.name == "Responses" })
	stored := rows[at]
	stored.name += ", stored"
	stored.ask = func(model string, streamed bool, messages, tools string) string {
		return strings.Replace(rows[at].ask(model, streamed, messages, tools), `"store":false,`, "", 1)
	}
	return slices.Insert(rows, at+1, stored)
}

func readChatAnswer(events []json.RawMessage, _ bool) (got shown) {
	type message struct {
		Content, Refusal string
		Reasoning        string `json:"reasoning_content"`
		ToolCalls        []struct {
			Index    *int
			ID       string
			Function struct{ Name, Arguments string }
		} `json:"tool_calls"`
	}
	for _, raw := range events {
		var chunk struct {
			Choices []struct {
				Delta, Message message
				FinishReason   string `json:"finish_reason"`
			}
			Usage *struct {
				PromptTokens     int `json:"prompt_tokens"`
				CompletionTokens int `json:"completion_tokens"`
				Prompt           struct {
					Cached int `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
				Completion struct {
					Reasoning int `json:"reasoning_tokens"`
				} `json:"completion_tokens_details"`
			}
		}
		_ = json.Unmarshal(raw, &chunk)
		for _, choice := range chunk.Choices {
			for _, m := range []message{choice.Delta, choice.Message} {
				got.text, got.reasoning, got.refusal = got.text+m.Content, got.reasoning+m.Reasoning, got.refusal+m.Refusal
				for i, call := range m.ToolCalls {
					if call.Index != nil {
						i = *call.Index
					}
					for len(got.calls) <= i {
						got.calls = append(got.calls, scriptedCall{})
					}
					got.calls[i].id, got.calls[i].name, got.calls[i].arguments = got.calls[i].id+call.ID, got.calls[i].name+call.Function.Name, got.calls[i].arguments+call.Function.Arguments
				}
			}
			got.finish += choice.FinishReason
		}
		if u := chunk.Usage; u != nil {
			got.input, got.output, got.cached, got.reasoningCounted = u.PromptTokens, u.CompletionTokens, u.Prompt.Cached, u.Completion.Reasoning
		}
	}
	return got
}

func readResponsesAnswer(events []json.RawMessage, streamed bool) (got shown) {
	var response struct {
		Status            string
		IncompleteDetails *struct{ Reason string } `json:"incomplete_details"`
		Output            []struct {
			Type, Name, Arguments string
			CallID                string `json:"call_id"`
			Content, Summary      []struct{ Type, Text, Refusal string }
		}
		Usage struct {
			Input        int `json:"input_tokens"`
			Output       int `json:"output_tokens"`
			InputDetails struct {
				Cached int `json:"cached_tokens"`
			} `json:"input_tokens_details"`
			OutputDetails struct {
				Reasoning int `json:"reasoning_tokens"`
			} `json:"output_tokens_details"`
		}
	}
	last := events[len(events)-1]
	if streamed {
		var event struct{ Response json.RawMessage }
		_ = json.Unmarshal(last, &event)
		last = event.Response
	}
	_ = json.Unmarshal(last, &response)
	got.finish = response.Status
	if response.IncompleteDetails != nil {
		got.finish = response.IncompleteDetails.Reason
	}
	for _, item := range response.Output {
		for _, part := range append(item.Content, item.Summary...) {
			switch {
			case item.Type == "reasoning":
				got.reasoning += part.Text
			default:
				got.text, got.refusal = got.text+part.Text, got.refusal+part.Refusal
			}
		}
		if item.Type == "function_call" {
			got.calls = append(got.calls, scriptedCall{item.CallID, item.Name, item.Arguments})
		}
	}
	u := response.Usage
	got.input, got.output, got.cached, got.reasoningCounted = u.Input, u.Output, u.InputDetails.Cached, u.OutputDetails.Reasoning
	return got
}

func readMessagesAnswer(events []json.RawMessage, _ bool) (got shown) {
	type block struct {
		Type, Text, Thinking, ID, Name string
		Input                          json.RawMessage
	}
	type usage struct {
		Input  int `json:"input_tokens"`
		Cached int `json:"cache_read_input_tokens"`
		Output int `json:"output_tokens"`
	}
	calls := map[int]int{} // by the indexes of their blocks
	add := func(index int, b block) {
		got.text, got.reasoning = got.text+b.Text, got.reasoning+b.Thinking
		if b.Type == "tool_use" {
			got.calls = append(got.calls, scriptedCall{b.ID, b.Name, strings.TrimPrefix(string(b.Input), "{}")})
			calls[index] = len(got.calls) - 1
		}
	}
	count := func(u usage) {
		got.input, got.cached, got.output = max(got.input, u.Input+u.Cached), max(got.cached, u.Cached), max(got.output, u.Output)
	}
	for _, raw := range events {
		var event struct {
			Index        int
			Content      []block
			ContentBlock *block `json:"content_block"`
			Delta        struct {
				Text, Thinking string
				PartialJSON    string `json:"partial_json"`
				StopReason     string `json:"stop_reason"`
			}
			StopReason string `json:"stop_reason"`
			Usage      usage
			Message    struct{ Usage usage }
		}
		_ = json.Unmarshal(raw, &event)
		for i, b := range event.Content {
			add(i, b)
		}
		if event.ContentBlock != nil {
			add(event.Index, *event.ContentBlock)
		}
		got.text, got.reasoning = got.text+event.Delta.Text, got.reasoning+event.Delta.Thinking
		if event.Delta.PartialJSON != "" {
			got.calls[calls[event.Index]].arguments += event.Delta.PartialJSON
		}
		got.finish += event.StopReason + event.Delta.StopReason
		count(event.Usage)
		count(event.Message.Usage)
	}
	return got
}

func readGeminiAnswer(events []json.RawMessage, _ bool) (got shown) {
	for _, raw := range events {
		var piece struct {
			Candidates []struct {
				Content struct {
					Parts []struct {
						Text         string
						Thought      bool
						FunctionCall *struct {
							ID, Name string
							Args     json.RawMessage
						}
					}
				}
				FinishReason string
			}
			UsageMetadata *struct{ PromptTokenCount, CachedContentTokenCount, CandidatesTokenCount, ThoughtsTokenCount int }
		}
		_ = json.Unmarshal(raw, &piece)
		for _, candidate := range piece.Candidates {
			for _, part := range candidate.Content.Parts {
				switch {
				case part.FunctionCall != nil:
					got.calls = append(got.calls, scriptedCall{part.FunctionCall.ID, part.FunctionCall.Name, string(part.FunctionCall.Args)})
				case part.Thought:
					got.reasoning += part.Text
				default:
					got.text += part.Text
				}
			}
			got.finish += candidate.FinishReason
		}
		if u := piece.UsageMetadata; u != nil {
			got.input, got.cached, got.reasoningCounted, got.output = u.PromptTokenCount, u.CachedContentTokenCount, u.ThoughtsTokenCount, u.CandidatesTokenCount+u.ThoughtsTokenCount
		}
	}
	return got
}
