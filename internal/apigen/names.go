package main

import (
	"reflect"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/crew/view"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/engine/conversations"
	"github.com/continuo-log/continuo/engine/memories"
	"github.com/continuo-log/continuo/fulltext/index"
	"github.com/continuo-log/continuo/internal/linediff"
	"github.com/continuo-log/continuo/task"
	"github.com/continuo-log/continuo/workflow"
)

// names are the components of types that clients know under another name than the Go name.
var names = map[reflect.Type]string{
	reflect.TypeFor[api.All[api.WorkflowRow]]():    "WorkflowList",
	reflect.TypeFor[api.All[api.CrewRow]]():        "CrewList",
	reflect.TypeFor[api.All[engine.RoleRound]]():   "RoundList",
	reflect.TypeFor[api.List[engine.Round]]():      "ConversationRoundList",
	reflect.TypeFor[engine.Round]():                "ConversationRound",
	reflect.TypeFor[conversations.Usage]():         "RequestUsage",
	reflect.TypeFor[api.List[engine.ListedTask]](): "TaskList",
	reflect.TypeFor[api.ChatIDs]():                 "TurnEvent",
	reflect.TypeFor[memories.Fact]():               "KnownFact",
	reflect.TypeFor[memories.Origin]():             "KnownFactOrigin",
	reflect.TypeFor[memories.Source]():             "KnownSource",
	reflect.TypeFor[memories.Shown]():              "ShownFact",
	reflect.TypeFor[memories.Export]():             "MemoryExport",
	reflect.TypeFor[api.List[memories.Fact]]():     "KnownFactList",
	reflect.TypeFor[api.BrokenFile]():              "BrokenWorkflow",
	reflect.TypeFor[engine.CrewStatus]():           "CrewStatus",
	reflect.TypeFor[engine.RunStatus]():            "RunStatus",
	reflect.TypeFor[engine.TaskState]():            "TaskState",
	reflect.TypeFor[engine.TaskStatus]():           "TaskStatus",
	reflect.TypeFor[engine.ListedTask]():           "ListedTask",
	reflect.TypeFor[crew.Snapshot]():               "CrewState",
	reflect.TypeFor[crew.RoleState]():              "CrewRoleState",
	reflect.TypeFor[crew.Shown]():                  "Crew",
	reflect.TypeFor[crew.ShownPolicy]():            "CrewToolPolicy",
	reflect.TypeFor[crew.ShownRole]():              "CrewRole",
	reflect.TypeFor[crew.ShownView]():              "CrewView",
	reflect.TypeFor[crew.Summary]():                "CrewSummary",
	reflect.TypeFor[crew.SummaryRole]():            "CrewRoleSummary",
	reflect.TypeFor[engine.RequestComparison]():    "RequestComparison",
	reflect.TypeFor[linediff.Line]():               "ComparisonLine",
	reflect.TypeFor[linediff.Op]():                 "ComparisonSide",
	reflect.TypeFor[view.Kind]():                   "CrewViewKind",
	reflect.TypeFor[api.ShownProblem]():            "WorkflowProblem",
	reflect.TypeFor[workflow.Shown]():              "Workflow",
	reflect.TypeFor[workflow.ShownApproval]():      "WorkflowApproval",
	reflect.TypeFor[workflow.ShownBinding]():       "WorkflowBinding",
	reflect.TypeFor[workflow.ShownEdge]():          "WorkflowEdge",
	reflect.TypeFor[workflow.ShownField]():         "WorkflowField",
	reflect.TypeFor[workflow.ShownNode]():          "WorkflowNode",
	reflect.TypeFor[workflow.ShownPolicy]():        "WorkflowToolPolicy",
	reflect.TypeFor[workflow.ShownRetry]():         "WorkflowRetry",
	reflect.TypeFor[workflow.Summary]():            "WorkflowSummary",
	reflect.TypeFor[workflow.Join]():               "WorkflowJoin",
	reflect.TypeFor[workflow.Type]():               "WorkflowType",
	reflect.TypeFor[task.Attachment]():             "TaskAttachment",
	reflect.TypeFor[task.AttachmentType]():         "TaskAttachmentType",
	reflect.TypeFor[task.Compression]():            "TaskCompression",
	reflect.TypeFor[task.Context]():                "TaskContext",
	reflect.TypeFor[task.Gap]():                    "TaskGap",
	reflect.TypeFor[task.History]():                "TaskHistory",
	reflect.TypeFor[task.Metadata]():               "TaskHistoryTimes",
	reflect.TypeFor[task.Priority]():               "TaskPriority",
	reflect.TypeFor[task.Role]():                   "TaskRole",
	reflect.TypeFor[task.Severity]():               "TaskWarningSeverity",
	reflect.TypeFor[task.Shaped]():                 "TaskHistoryMessage",
	reflect.TypeFor[task.Source]():                 "TaskSource",
	reflect.TypeFor[task.Warning]():                "TaskWarning",
	reflect.TypeFor[api.ConversationFields]():      "ConversationRequest",
	reflect.TypeFor[index.Item]():                  "SearchHit",
	reflect.TypeFor[engine.Replayed]():             "ReplayedRequest",
}

// opaque are the components that the schemas of tools do not describe, so that clients do not send them to models.
var opaque = []string{"Plan"}

// arguments are the schemas of fields that have another form among the arguments of a call.
var arguments = map[string]object{
	"MetadataFilter.Labels": with(nil, "type", "object", "maxProperties", 8, "additionalProperties",
		with(nil, "type", []string{"string", "number", "boolean"}),
		"description", "Only conversations whose metadata have all of these values."),
}

// written are the types whose schemas are hand-written in server/openapi.yaml: no Go type says what they are.
var written = map[reflect.Type]string{
	reflect.TypeFor[continuo.Content]():  "Content",
	reflect.TypeFor[continuo.ToolCall](): "ToolCall",
	reflect.TypeFor[api.UserID]():        "UserID",
}

// encoded are the types that a field of JSON holds.
var encoded = map[string]reflect.Type{"RunEvent.Crew": reflect.TypeFor[crew.Snapshot]()}

// fields are the schemas of fields whose Go type says less than their doc comment.
var fields = map[string]object{
	"Conversation.Metadata":    anyObject(),
	"Entry.Extra":              anyObject(),
	"OutputPart.Raw":           anyObject(),
	"DecisionRequest.Decision": with(nil, "type", "string", "enum", []string{"allow", "deny"}),
	"TurnEvents.LastEventID":   with(nil, "type", "integer", "minimum", 0),
	// A void turn is not shown.
	"Turn.State": with(nil, "type", "string", "enum",
		[]continuo.TurnState{continuo.TurnRunning, continuo.TurnFinished, continuo.TurnFailed}),
	"RunEvent.Inputs":   anyObject(),
	"RunEvent.Outputs":  anyObject(),
	"TaskEvent.Finding": anyObject(),
	"TaskEvent.Task":    ref("Task"),
	"Replayed.Body":     anyObject(),
	"Context.Messages":  with(nil, "type", "array", "items", anyObject()),
	"Repair.Rule":       with(nil, "type", "string"), // other rules than those of the log, too
	"RolePlan.Kind":     with(nil, "type", "string", "enum", []string{"delta", "full", "window", "summary", "memory"}),
}

// form is how the members of a type differ from its fields.
type form struct {
	of      reflect.Type // whose members it has; nil for its own
	without []string
	always  []string // members that are there although they may be left out elsewhere
}

// entryForm adds what an entry writes itself.
type entryForm struct {
	continuo.Entry
	// False marks an event for people only.
	IncludeInContext bool `json:"include_in_context,omitempty" default:"true"`
}

var forms = map[reflect.Type]form{
	reflect.TypeFor[continuo.Entry](): {of: reflect.TypeFor[entryForm](), always: []string{"id", "conversation_id", "seq", "created_at"}},
	reflect.TypeFor[api.NewEntry]():   {of: reflect.TypeFor[entryForm](), without: api.FilledMembers},
	reflect.TypeFor[api.Turn]():       {without: api.InternalTurnMembers},
}
