package main

import (
	"reflect"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/api"
	"github.com/continuo-log/continuo/crew"
	"github.com/continuo-log/continuo/crew/view"
	"github.com/continuo-log/continuo/engine"
	"github.com/continuo-log/continuo/internal/linediff"
	"github.com/continuo-log/continuo/window"
	"github.com/continuo-log/continuo/workflow"
)

// names are the components of types that clients know under another name than the Go name.
var names = map[reflect.Type]string{
	reflect.TypeFor[api.All[api.WorkflowRow]]():  "WorkflowList",
	reflect.TypeFor[api.All[api.CrewRow]]():      "CrewList",
	reflect.TypeFor[api.All[engine.RoleRound]](): "RoundList",
	reflect.TypeFor[api.BrokenFile]():            "BrokenWorkflow",
	reflect.TypeFor[crew.Shown]():                "Crew",
	reflect.TypeFor[crew.ShownPolicy]():          "CrewToolPolicy",
	reflect.TypeFor[crew.ShownRole]():            "CrewRole",
	reflect.TypeFor[crew.ShownView]():            "CrewView",
	reflect.TypeFor[crew.Summary]():              "CrewSummary",
	reflect.TypeFor[crew.SummaryRole]():          "CrewRoleSummary",
	reflect.TypeFor[linediff.Line]():             "ComparisonLine",
	reflect.TypeFor[linediff.Op]():               "ComparisonSide",
	reflect.TypeFor[view.Kind]():                 "CrewViewKind",
	reflect.TypeFor[api.ShownProblem]():          "WorkflowProblem",
	reflect.TypeFor[workflow.Shown]():            "Workflow",
	reflect.TypeFor[workflow.ShownApproval]():    "WorkflowApproval",
	reflect.TypeFor[workflow.ShownBinding]():     "WorkflowBinding",
	reflect.TypeFor[workflow.ShownEdge]():        "WorkflowEdge",
	reflect.TypeFor[workflow.ShownField]():       "WorkflowField",
	reflect.TypeFor[workflow.ShownNode]():        "WorkflowNode",
	reflect.TypeFor[workflow.ShownPolicy]():      "WorkflowToolPolicy",
	reflect.TypeFor[workflow.ShownRetry]():       "WorkflowRetry",
	reflect.TypeFor[workflow.Summary]():          "WorkflowSummary",
	reflect.TypeFor[workflow.Join]():             "WorkflowJoin",
	reflect.TypeFor[workflow.Type]():             "WorkflowType",
}

// written are the types whose schemas are hand-written in server/openapi.yaml: no Go type says what they are.
var written = map[reflect.Type]string{
	reflect.TypeFor[continuo.Content]():  "Content",
	reflect.TypeFor[continuo.ToolCall](): "ToolCall",
	reflect.TypeFor[api.UserID]():        "UserID",
	reflect.TypeFor[engine.Context]():    "Context",
	reflect.TypeFor[engine.Replayed]():   "ReplayedRequest",
	reflect.TypeFor[window.Plan]():       "Plan",
}
