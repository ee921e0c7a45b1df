package interchange

import (
	"encoding/json"
	"math"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/rawjson"
)

// field is a field of a message beyond the protocol that an entry can represent. read returns false for a
// value that the entry cannot hold, which then stays with the unknown fields. write returns nil for the
// default.
type field struct {
	name  string
	read  func(*continuo.Entry, json.RawMessage) bool
	write func(*continuo.Entry) json.RawMessage
}

// unifiedFields are those of the unified log's predecessor and of its planned successor: camelCase, the
// duration in milliseconds. Its id and createdAt stay with the unknown fields.
var unifiedFields = []field{
	textField("partType", func(e *continuo.Entry) *string { return &e.PartType }),
	textField("toolName", func(e *continuo.Entry) *string { return &e.ToolName }),
	{"duration", readDuration, writeDuration},
	boolField("isCollapsed", false, func(e *continuo.Entry) bool { return e.IsCollapsed }, func(e *continuo.Entry, v bool) { e.IsCollapsed = v }),
	{"widget", readWidget, func(e *continuo.Entry) json.RawMessage { return e.Widget }},
	{"mode", readMode, writeMode},
	textField("runId", func(e *continuo.Entry) *string { return &e.RunID }),
	textField("workflowId", func(e *continuo.Entry) *string { return &e.WorkflowID }),
	textField("nodeId", func(e *continuo.Entry) *string { return &e.NodeID }),
	textField("agentId", func(e *continuo.Entry) *string { return &e.AgentID }),
	boolField("includeInContext", true, func(e *continuo.Entry) bool { return !e.Hidden || len(e.Repairs) > 0 }, func(e *continuo.Entry, v bool) { e.Hidden = !v }),
}

// pipelineFields name the member of a crew that speaks.
var pipelineFields = []field{
	authorField("agent_name", func(a *continuo.Author) *string { return &a.AgentName }),
	authorField("role_name", func(a *continuo.Author) *string { return &a.RoleName }),
	authorField("role_display_name", func(a *continuo.Author) *string { return &a.DisplayName }),
}

func textField(name string, of func(*continuo.Entry) *string) field {
	return field{
		name: name,
		read: func(e *continuo.Entry, raw json.RawMessage) bool {
			text, ok := rawjson.String(raw)
			if ok {
				*of(e) = text
			}
			return ok
		},
		write: func(e *continuo.Entry) json.RawMessage { return textOrNil(*of(e)) },
	}
}

func authorField(name string, of func(*continuo.Author) *string) field {
	return field{
		name: name,
		read: func(e *continuo.Entry, raw json.RawMessage) bool {
			text, ok := rawjson.String(raw)
			if !ok {
				return false
			}
			if e.Author == nil {
				e.Author = &continuo.Author{}
			}
			*of(e.Author) = text
			return true
		},
		write: func(e *continuo.Entry) json.RawMessage {
			if e.Author == nil {
				return nil
			}
			return textOrNil(*of(e.Author))
		},
	}
}

func textOrNil(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return rawjson.MustMarshal(text)
}

func boolField(name string, standard bool, get func(*continuo.Entry) bool, set func(*continuo.Entry, bool)) field {
	return field{
		name: name,
		read: func(e *continuo.Entry, raw json.RawMessage) bool {
			var value *bool
			if json.Unmarshal(raw, &value) != nil || value == nil {
				return false
			}
			set(e, *value)
			return true
		},
		write: func(e *continuo.Entry) json.RawMessage {
			if get(e) == standard {
				return nil
			}
			return rawjson.MustMarshal(!standard)
		},
	}
}

func readDuration(e *continuo.Entry, raw json.RawMessage) bool {
	var ms *float64
	if json.Unmarshal(raw, &ms) != nil || ms == nil || math.Abs(*ms) > 1<<53 {
		return false
	}
	e.DurationMS = int64(math.Round(*ms))
	return true
}

func writeDuration(e *continuo.Entry) json.RawMessage {
	if e.DurationMS == 0 {
		return nil
	}
	return rawjson.MustMarshal(e.DurationMS)
}

func readWidget(e *continuo.Entry, raw json.RawMessage) bool {
	if rawjson.IsNull(raw) {
		return false
	}
	e.Widget = raw
	return true
}

func readMode(e *continuo.Entry, raw json.RawMessage) bool {
	text, ok := rawjson.String(raw)
	if !ok || !knownMode(continuo.Mode(text)) {
		return false
	}
	e.Mode = continuo.Mode(text)
	return true
}

func writeMode(e *continuo.Entry) json.RawMessage { return textOrNil(string(e.Mode)) }
