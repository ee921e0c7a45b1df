package gateway

import (
	"net/http"
	"strings"

	"github.com/continuo-log/continuo/internal/rawjson"
)

// omittedHeader names the members of a request that the request to the model does not have, because it was built from the
// log and not forwarded.
const omittedHeader = "X-Continuo-Omitted"

// carried are the members of requests, in all protocols, that a built request has in its own form, or that concern only
// the client and this server.
var carried = map[string]bool{
	"background": true, "contents": true, "conversation": true, "generationConfig.maxOutputTokens": true, "generationConfig.temperature": true,
	"include": true, "input": true, "instructions": true, "max_completion_tokens": true, "max_output_tokens": true, "max_tokens": true, "messages": true,
	"metadata": true, "model": true, "previous_response_id": true, "prompt_cache_key": true, "safety_identifier": true, "service_tier": true, "store": true,
	"stream": true, "stream_options": true, "system": true, "systemInstruction": true, "temperature": true, "tools": true, "truncation": true, "user": true,
}

// usual are values that ask for nothing else than their absence does.
var usual = map[string]string{"n": "1", "parallel_tool_calls": "true", "text": `{"format":{"type":"text"}}`, "tool_choice": `"auto"`}

// omitted returns the members of a request that a built one does not have.
func omitted(members rawjson.Object, prefix string) []string {
	var names []string
	for _, member := range members {
		name := prefix + member.Key
		inner, err := rawjson.ParseObject(member.Value)
		switch {
		case name == "generationConfig" && err == nil:
			names = append(names, omitted(inner, name+".")...)
		case carried[name], rawjson.IsNull(member.Value), usual[name] == string(member.Value):
		default:
			names = append(names, name)
		}
	}
	return names
}

// nameOmitted sets the header that names what a built request lacks.
func nameOmitted(header http.Header, names []string) {
	if len(names) > 0 {
		header.Set(omittedHeader, strings.Join(names, ", "))
	}
}
