package textserver_test

import (
	"encoding/json"
	"testing"

	"github.com/continuo-log/continuo/model/internal/textserver"
)

func TestTokens(t *testing.T) {
	for response, want := range map[string]int{
		`{"usage": {"prompt_tokens": 12, "total_tokens": 12}}`:               12, // OpenAI, llama.cpp
		`{"usage": {"total_tokens": 7}}`:                                     7,  // Jina, vLLM
		`{"usage": {"input_tokens": 5, "output_tokens": 0}}`:                 5,
		`{"meta": {"tokens": {"input_tokens": 9}}}`:                          9, // Cohere
		`{"meta": {"billed_units": {"input_tokens": 4, "search_units": 1}}}`: 4,
		`{"meta": {"billed_units": {"search_units": 1}}}`:                    0,
		`{}`:                            0,
		`{"usage": [], "meta": "none"}`: 0,
		`{"usage": {"total_tokens": "many"}, "meta": null}`:    0,
		`{"usage": {"total_tokens": -3}}`:                      0,
		`{"usage": {"total_tokens": 1e300}}`:                   0,
		`{"usage": {"total_tokens": 0.5, "prompt_tokens": 2}}`: 2,
	} {
		var read textserver.Counted
		if err := json.Unmarshal([]byte(response), &read); err != nil {
			t.Fatal(err)
		}
		if got := read.Tokens(); got != want {
			t.Errorf("%s has %d tokens, want %d", response, got, want)
		}
	}
}
