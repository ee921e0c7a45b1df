package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	continuo "github.com/continuo-log/continuo"
)

// stepRequest is one request.
type stepRequest struct {
	at             time.Time
	program        string
	run, step      string // "" outside of runs
	visit          int
	system, tools  string // their SHA-256
	body           string
	systemMessages []string
	history        []json.RawMessage // what follows the system messages
}

// stepPrompt is a request as the model understands it.
type stepPrompt struct {
	stepRequest
	tag          string // what answers are marked with
	conversation string
	context      string // STEP_CONTEXT
	messages     []shownMessage
}

// shownMessage is a message of the history.
type shownMessage struct {
	Role, Content string
	ToolCalls     []struct {
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

var (
	directiveLines = regexp.MustCompile(`(?m)^- (run|step|visit): (\S+)`)
	tagLine        = regexp.MustCompile(`(?m)^- tag: "([^"]+)"$`)
)

// readStepPrompt takes a request apart.
func readStepPrompt(body []byte) (*stepPrompt, error) {
	var request struct {
		Messages []json.RawMessage
		Tools    json.RawMessage
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, err
	}
	s := &stepPrompt{stepRequest: stepRequest{body: sha256Of(body), tools: sha256Of(request.Tools)}}
	for len(request.Messages) > 0 {
		var message shownMessage
		if err := json.Unmarshal(request.Messages[0], &message); err != nil {
			return nil, err
		}
		if message.Role != "system" {
			break
		}
		s.direct(message.Content)
		request.Messages = request.Messages[1:]
	}
	s.system, s.history = sha256Of([]byte(strings.Join(s.systemMessages, "\x00"))), request.Messages
	for _, raw := range s.history {
		var message shownMessage
		if err := json.Unmarshal(raw, &message); err != nil {
			return nil, err
		}
		s.messages = append(s.messages, message)
	}
	s.conversation, _, _ = strings.Cut(s.tag, ".")
	if found := mark.FindSubmatch(body); s.run == "" && found != nil {
		s.conversation = string(found[1])
	}
	return s, nil
}

// direct takes in a system message.
func (s *stepPrompt) direct(text string) {
	s.systemMessages = append(s.systemMessages, text)
	switch {
	case strings.HasPrefix(text, "RUN_DIRECTIVE\n"):
		for _, line := range directiveLines.FindAllStringSubmatch(text, -1) {
			switch line[1] {
			case "run":
				s.run = line[2]
			case "step":
				s.step = line[2]
			case "visit":
				s.visit, _ = strconv.Atoi(line[2])
			}
		}
	case strings.HasPrefix(text, "STEP_CONTEXT\n"):
		s.context = text
		if found := tagLine.FindStringSubmatch(text); found != nil {
			s.tag = found[1]
		}
	}
}

// sinceVisit is the history from the message with which the visit began.
func (s *stepPrompt) sinceVisit() []shownMessage {
	return s.since(func(text string) bool { return s.isCue(text) && strings.Contains(text, " begins") })
}

// since is the history behind the newest user message of a kind.
func (s *stepPrompt) since(is func(text string) bool) []shownMessage {
	for i := len(s.messages) - 1; i >= 0; i-- {
		if s.messages[i].Role == "user" && is(s.messages[i].Content) {
			return s.messages[i+1:]
		}
	}
	return nil
}

func (s *stepPrompt) isCue(text string) bool { return strings.HasPrefix(text, "The step "+s.step+" (") }

func (s *stepPrompt) isRefusal(text string) bool {
	return strings.HasPrefix(text, "Your answer to the step "+s.step+" is not enough")
}

// wasRefused reports whether an answer of the visit was refused.
func (s *stepPrompt) wasRefused() bool {
	return slices.ContainsFunc(s.sinceVisit(), func(m shownMessage) bool { return m.Role == "user" && s.isRefusal(m.Content) })
}

// pieces are what was said of an answer that broke off.
func (s *stepPrompt) pieces() []string {
	var pieces []string
	for _, message := range s.since(func(text string) bool {
		return s.isRefusal(text) || s.isCue(text) && strings.Contains(text, " begins")
	}) {
		text, _, broke := strings.Cut(message.Content, "\n\nLLM_ERROR ")
		if message.Role == "assistant" && broke {
			pieces = append(pieces, text)
		}
	}
	return pieces
}

// called is how many rounds of calls the visit has had.
func (s *stepPrompt) called() int {
	rounds := 0
	for _, message := range s.sinceVisit() {
		for _, call := range message.ToolCalls {
			if _, rest, ok := strings.Cut(call.Function.Arguments, " round "); ok {
				var round int
				_, _ = fmt.Sscan(rest, &round)
				rounds = max(rounds, round)
			}
		}
	}
	return rounds
}

// isDirected reports whether the system messages end with those of a step.
func (s *stepPrompt) isDirected() bool {
	behind := s.systemMessages[max(0, len(s.systemMessages)-4):]
	for i, title := range []string{"MODE\n- active: run\n", "RUN_DIRECTIVE\n", "NODE_BRIEF\n", "STEP_CONTEXT\n"} {
		if len(behind) <= i || !strings.HasPrefix(behind[i], title) {
			return false
		}
	}
	return true
}

// answer is what the model answers to a prompt; number is that of the next call.
func (s *stepPrompt) answer(number int) scriptedAnswer {
	if s.run == "" {
		return scriptedAnswer{text: "I hear you."}
	}
	part := stepReplies[s.step]
	if round := s.called(); round < len(part.calls) {
		answer := scriptedAnswer{text: "(This has to be looked into before the step can be answered.)"}
		for i, name := range part.calls[round] {
			note := fmt.Sprintf("%s %s %d round %d call %d", s.run, s.step, s.visit, round+1, number+i)
			answer.calls = append(answer.calls, continuo.ToolCall{
				ID: fmt.Sprintf("call_%d", number+i), Type: "function", Name: name, Arguments: fmt.Sprintf(`{"note":%q}`, note),
			})
		}
		return answer
	}
	whole := part.reply(s)
	if !part.continues {
		return scriptedAnswer{text: whole}
	}
	rest := whole
	for _, piece := range s.pieces() {
		rest = strings.TrimPrefix(rest, piece)
	}
	switch {
	case rest != "":
		return scriptedAnswer{text: rest}
	case part.outputs == nil:
		return scriptedAnswer{text: thatWasAll}
	}
	return scriptedAnswer{text: whole}
}

// thatWasAll is said where an answer broke off behind its last word.
const thatWasAll = " (That was all.)"

func sha256Of(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
