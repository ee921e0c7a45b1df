package render

import (
	"encoding/json"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
	"github.com/continuo-log/continuo/internal/wire/responses"
)

// offersTools reports whether a request has tools.
func offersTools(env continuo.Envelope) bool {
	return len(env.Tools) > 0
}

// ownMembers are the members of a client's request that a request in a protocol has as they came.
func ownMembers(env continuo.Envelope, protocol string) rawjson.Object {
	if env.Own == nil || env.Own.Protocol != protocol {
		return nil
	}
	own, err := rawjson.ParseObject(env.Own.Members)
	if err != nil {
		return nil
	}
	return own
}

// withoutOwn returns the tools that are not among the client's own, which a request has as they came.
func withoutOwn(tools []continuo.ToolSpec, own rawjson.Object) []continuo.ToolSpec {
	names := map[string]bool{}
	for _, raw := range rawList(own.Get("tools")) {
		for _, name := range toolNames(raw) {
			names[ToolName(name)] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(tools), func(tool continuo.ToolSpec) bool { return names[ToolName(tool.Name)] })
}

// toolNames are the names of the functions of a tool in any protocol.
func toolNames(raw json.RawMessage) []string {
	type named struct {
		Name string `json:"name"`
	}
	var tool struct {
		named
		Function  named   `json:"function"`
		Functions []named `json:"functionDeclarations"`
	}
	if namespace, ok := responses.NamespaceOf(raw); ok {
		var names []string
		for _, function := range namespace.Functions() {
			names = append(names, function.Name)
		}
		return names
	}
	if json.Unmarshal(raw, &tool) != nil {
		return nil
	}
	var names []string
	for _, one := range append(tool.Functions, tool.named, tool.Function) {
		if one.Name != "" {
			names = append(names, one.Name)
		}
	}
	return names
}

// withOwn sets a client's own members in the head of a request, and adds its tools to those of the head.
func withOwn(head []byte, own rawjson.Object) ([]byte, error) {
	if len(own) == 0 {
		return head, nil
	}
	object, err := rawjson.ParseObject(head)
	if err != nil {
		return nil, err
	}
	for _, member := range own {
		value := member.Value
		if member.Key == "tools" {
			value = rawjson.MustMarshal(append(rawList(object.Get("tools")), rawList(value)...))
		}
		object.Set(member.Key, value)
	}
	return rawjson.Marshal(object)
}

func rawList(raw json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	_ = json.Unmarshal(raw, &list) // a list or nothing
	return list
}
