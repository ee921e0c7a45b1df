package render

import (
	"github.com/continuo-log/continuo/internal/wire/gemini"
)

// CheckGemini checks the contents of a Gemini API request, by the checklist of docs/protocol-rules.md: G1 to G5, as far
// as contents show it. Model is the name of the model, since only newer ones require signatures.
func CheckGemini(contents []gemini.Content, model string) []Violation {
	c := geminiChecker{signs: signsCalls.MatchString(model)}
	if len(contents) == 0 {
		c.hard(0, "G0 empty_list", "there is no content")
	}
	for i, content := range contents {
		c.content(i, content)
	}
	if len(c.open) > 0 {
		c.hard(len(contents)-1, "G5 unanswered_at_end", "the calls of %v have no response", names(c.open))
	}
	return c.findings
}

// geminiChecker checks contents one by one.
type geminiChecker struct {
	findings
	signs bool
	open  []*gemini.FunctionCall // of the content before
	last  string                 // role of the content before
}

func (c *geminiChecker) content(i int, content gemini.Content) {
	if content.Role != "user" && content.Role != "model" {
		c.hard(i, "G0 unknown_role", "the role is %q", content.Role)
	}
	if len(content.Parts) == 0 {
		c.hard(i, "G2 empty_content", "the content has no parts")
	}
	if content.Role == "model" && c.last != "user" {
		c.hard(i, "G0 model_after_"+map[string]string{"": "nothing"}[c.last]+c.last, "a content of the model follows none of the user")
	}
	var calls []*gemini.FunctionCall
	var responses []*gemini.FunctionResponse
	for _, raw := range content.Parts {
		part, err := gemini.ParsePart(raw)
		switch {
		case err != nil:
			c.hard(i, "G0 not_a_part", "%s", err)
			return
		case loneSurrogate(raw, 0) >= 0:
			c.hard(i, "G0 lone_surrogate", "the text holds half of a surrogate pair")
		case part.HasText && part.Text == "" && !part.Signed, string(raw) == "{}":
			c.hard(i, "G2 empty_part", "a part is empty")
		}
		if part.Call != nil {
			c.call(i, part, len(calls) == 0)
			calls = append(calls, part.Call)
		}
		if part.Response != nil {
			responses = append(responses, part.Response)
		}
	}
	c.answers(i, content.Role, responses)
	c.open, c.last = calls, content.Role
}

func (c *geminiChecker) call(i int, part gemini.Part, first bool) {
	if !isName(part.Call.Name) {
		c.hard(i, "G0 bad_name", "a call is of %q", part.Call.Name)
	}
	if first && c.signs && !part.Signed {
		c.hard(i, "G3 unsigned_call", "the first call, of %s, has no thought signature", part.Call.Name)
	}
	if len(part.Call.Args) > 0 && !isObject(part.Call.Args) {
		c.hard(i, "G0 bad_args", "the arguments of %s are no object", part.Call.Name)
	}
}

// answers compares the responses of a content with the calls of the one before.
func (c *geminiChecker) answers(i int, role string, responses []*gemini.FunctionResponse) {
	if len(c.open) != len(responses) {
		c.hard(i, "G1 response_count", "%d responses follow %d calls", len(responses), len(c.open))
		return
	}
	if len(responses) > 0 && role != "user" {
		c.hard(i, "G1 response_of_model", "a content of the model has responses")
	}
	for n, response := range responses {
		call := c.open[n]
		if response.Name != call.Name || response.ID != call.ID {
			c.hard(i, "G1 wrong_response", "response %d is of %s %q, the call of %s %q", n, response.Name, response.ID, call.Name, call.ID)
		}
		if !isObject(response.Response) {
			c.hard(i, "G1 bad_response", "the response of %s is no object", response.Name)
		}
	}
}

func names(calls []*gemini.FunctionCall) (list []string) {
	for _, call := range calls {
		list = append(list, call.Name)
	}
	return list
}
