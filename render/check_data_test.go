package render

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The codes that the data lists although an API accepts them.
var accepted = []string{
	"reused_call_id", "long_call_id", "bad_arguments_json", "bad_name", "unanswered_function", "blank_assistant",
	"reused_use_id", "first_not_user", "mid_system", "consecutive_roles",
}

// exceptions are hard violations that the data does not list, each with the reason for which the
// validators keep them. All were sent to Mistral or through a library that repairs them; OpenAI's own
// document wants minItems 1 and the part types text and refusal for assistant content.
func exceptions(conversation string) []string {
	switch conversation {
	case "openhands-sdk/llm-logs":
		return []string{"8 empty_content"} // content [] beside tool_calls, in a log of what a library was given
	case "wire/openai/test_multimodal_tool_returns-test_model_sees_multiple_images[mistral]":
		return []string{"1 empty_content"} // content [] beside tool_calls, sent to Mistral
	case "wire/openai/test_mistral-test_mistral_model_thinking_part":
		return []string{"1 bad_part", "3 bad_part"} // assistant parts of Mistral's own type thinking
	}
	return nil
}

// The validators find what the data lists, under the same word, at the same message, and nothing else that
// an API would refuse.
func TestValidatorsAgreeWithTheData(t *testing.T) {
	conversations, hard, lint := 0, 0, 0
	eachConversation(t, "*.jsonl.gz", func(t *testing.T, c conversation) {
		conversations++
		check := CheckOpenAIChat
		if c.Protocol == "anthropic" {
			check = CheckAnthropic
		}
		var found, foundAccepted []string
		for _, v := range check(c.Messages) {
			_, word, _ := strings.Cut(v.Code, " ")
			at := fmt.Sprintf("%d %s", v.Index, word)
			if !v.Lint {
				found = append(found, at)
				hard++
			} else if slices.Contains(accepted, word) {
				foundAccepted = append(foundAccepted, at)
				lint++
			}
		}
		want, wantAccepted := exceptions(c.ID), []string(nil)
		for _, v := range c.Violations {
			at := fmt.Sprintf("%d %s", v.Index, v.Code)
			if slices.Contains(accepted, v.Code) {
				wantAccepted = append(wantAccepted, at)
			} else {
				want = append(want, at)
			}
		}
		same(t, c.ID+": refused by an API", found, want)
		same(t, c.ID+": accepted, but listed", foundAccepted, wantAccepted)
	})
	t.Logf("%d conversations, %d hard violations, %d that are accepted", conversations, hard, lint)
}

func same(t *testing.T, what string, found, want []string) {
	t.Helper()
	slices.Sort(found)
	slices.Sort(want)
	found, want = slices.Compact(found), slices.Compact(want)
	if !slices.Equal(found, want) {
		t.Errorf("%s:\nfound %v\n want %v", what, found, want)
	}
}
