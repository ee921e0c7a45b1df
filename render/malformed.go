package render

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// MalformedCall is the name of a call whose text could not be read. It is not a tool and is never offered:
// the call is recorded so that its result can explain to the model what was wrong.
const MalformedCall = "malformed_call"

// CallCut says why a malformed call is incomplete.
type CallCut string

// The reasons; most malformed calls are complete.
const (
	CutNone   CallCut = ""
	CutLength CallCut = "length" // the answer reached its token limit
	CutLong   CallCut = "long"   // the call exceeds the maximum length; only its beginning is kept
)

//go:embed malformed.md
var malformedText string

// malformedArguments are the arguments of a malformed call.
type malformedArguments struct {
	Text string  `json:"text"` // as the model wrote it
	Cut  CallCut `json:"cut,omitempty"`
}

// MalformedArguments returns the arguments with which a malformed call is recorded.
func MalformedArguments(text string, cut CallCut) string {
	return string(rawjson.MustMarshal(malformedArguments{strings.ToValidUTF8(text, "\uFFFD"), cut}))
}

// ExplainMalformed explains to a model what is wrong with a call that was recorded as malformed; ok is false
// for every other call.
func ExplainMalformed(call continuo.ToolCall) (problem string, ok bool) {
	if call.Name != MalformedCall {
		return "", false
	}
	var malformed malformedArguments
	if json.Unmarshal([]byte(call.Arguments), &malformed) != nil {
		return "", false
	}
	_, _, err := ParseCall(malformed.Text)
	switch {
	case malformed.Cut == CutLong:
		problem = "it is too long: make it shorter, or several"
	case malformed.Cut == CutLength:
		problem = "your answer reached its limit of length before the call was at its end: make it shorter, or several"
	case err != nil:
		problem = err.Error()
	default:
		problem = fmt.Sprintf("%s is no tool", MalformedCall)
	}
	return strings.TrimSuffix(strings.ReplaceAll(malformedText, "{problem}", problem), "\n"), true
}
