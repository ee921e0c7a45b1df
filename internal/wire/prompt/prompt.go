// Package prompt holds the request to models that accept one text: programs that answer, and agents. It has no roles
// and no tools; the conversation is part of the text.
package prompt

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Request is a body in the protocol "prompt".
type Request struct {
	System []string `json:"system,omitempty"`
	Prompt string   `json:"prompt"`
}

// Parse reads a body. A blank prompt is refused.
func Parse(body []byte) (Request, error) {
	var request Request
	if err := json.Unmarshal(body, &request); err != nil {
		return Request{}, fmt.Errorf("read the prompt's request: %w", err)
	}
	if strings.TrimSpace(request.Prompt) == "" {
		return Request{}, errors.New("read the prompt's request: the prompt says nothing")
	}
	return request, nil
}

// Instructions is the system messages as one text, "" where there are none.
func (r Request) Instructions() string { return strings.Join(r.System, "\n\n") }

// Text is the whole request as one text: the system messages, then the prompt, with empty lines between.
func (r Request) Text() string {
	if len(r.System) == 0 {
		return r.Prompt
	}
	return r.Instructions() + "\n\n" + r.Prompt
}
