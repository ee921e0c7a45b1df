package api

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/continuo-log/continuo/task"
)

// exampleInput has an input of each kind that arguments are read into.
type exampleInput struct {
	TaskPath
	MetadataFilter
	Query *string         `query:"q" arg:"query"`
	Limit int             `query:"limit" minimum:"1" maximum:"100" default:"20"`
	Count *int            `query:"count" minimum:"0"`
	Whole bool            `query:"whole"`
	Role  string          `json:"role,omitempty" enum:"user,assistant"`
	Note  string          `json:"note,omitempty" maxLength:"3"`
	Data  json.RawMessage `json:"data,omitempty" type:"object"`
	Once
}

func decodeExample(t *testing.T, arguments string) (exampleInput, error) {
	t.Helper()
	a := ArgumentsOf(reflect.TypeFor[exampleInput]())
	in, unknown, err := a.Decode(json.RawMessage(arguments), false)
	if err != nil {
		return exampleInput{}, err
	}
	if len(unknown) > 0 {
		t.Errorf("%s: unknown are %q", arguments, unknown)
	}
	return *in.(*exampleInput), a.Check(in)
}

func TestArguments(t *testing.T) {
	in, err := decodeExample(t, `{"task_id": "task_1", "query": "x", "limit": 2e1, "count": 3.0, "whole": true, "role": "user", "note": "üüü",
		"data": {"a": 1}, "idempotency_key": "k", "metadata": {"plan": "pro", "seats": 3}}`)
	if err != nil {
		t.Fatal(err)
	}
	text, count := "x", 3
	want := exampleInput{
		TaskPath: TaskPath{"task_1"}, MetadataFilter: MetadataFilter{Labels{"plan": "pro", "seats": "3"}}, Query: &text, Limit: 20, Count: &count,
		Whole: true, Role: "user", Note: "üüü", Data: json.RawMessage(`{"a": 1}`), Once: Once{"k"},
	}
	if !reflect.DeepEqual(in, want) {
		t.Errorf("read %+v, want %+v", in, want)
	}
	in, err = decodeExample(t, `{"task_id": "task_1", "query": null, "limit": null, "count": null, "role": "", "data": null, "metadata": null, "idempotency_key": null}`)
	if want := (exampleInput{TaskPath: TaskPath{"task_1"}, Limit: 20}); err != nil || !reflect.DeepEqual(in, want) {
		t.Errorf("null is read as %+v, %v; want %+v", in, err, want)
	}
}

func TestArgumentsAreRefused(t *testing.T) {
	for _, row := range []struct {
		arguments string
		fault     task.ErrorType
		param     string
	}{
		{`[1]`, task.TypeError, ""},
		{`{"task_id": 1`, task.TypeError, ""},
		{`null`, task.MissingField, "task_id"},
		{`{"task_id": null}`, task.MissingField, "task_id"},
		{`{"task_id": " "}`, task.MissingField, "task_id"},
		{`{"task_id": ["t"]}`, task.TypeError, "task_id"},
		{`{"task": "t"}`, "", "task"},
		{`{"task_id": "t", "limit": 0}`, "", "limit"},
		{`{"task_id": "t", "limit": 101}`, "", "limit"},
		{`{"task_id": "t", "limit": 1.5}`, "", "limit"},
		{`{"task_id": "t", "limit": 1e400}`, "", "limit"},
		{`{"task_id": "t", "limit": 9223372036854775808}`, "", "limit"},
		{`{"task_id": "t", "limit": "20"}`, task.TypeError, "limit"},
		{`{"task_id": "t", "count": -1}`, "", "count"},
		{`{"task_id": "t", "whole": "yes"}`, task.TypeError, "whole"},
		{`{"task_id": "t", "role": "tool"}`, "", "role"},
		{`{"task_id": "t", "note": "four"}`, "", "note"},
		{`{"task_id": "t", "data": [1]}`, task.TypeError, "data"},
		{`{"task_id": "t", "idempotency_key": ""}`, "", "idempotency_key"},
		{`{"task_id": "t", "idempotency_key": "two words"}`, "", "idempotency_key"},
		{`{"task_id": "t", "idempotency_key": 7}`, task.TypeError, "idempotency_key"},
		{`{"task_id": "t", "metadata": ["plan"]}`, task.TypeError, "metadata"},
		{`{"task_id": "t", "metadata": {"plan": {}}}`, "", "metadata"},
	} {
		_, err := decodeExample(t, row.arguments)
		var p *Problem
		if !errors.As(err, &p) || p.Fault != row.fault || p.Param != row.param {
			t.Errorf("%s: %+v, want the fault %q at %q", row.arguments, err, row.fault, row.param)
		}
	}
}

// The raw body of an input has the arguments of the body, without the others and the unknown ones.
func TestArgumentsOfABody(t *testing.T) {
	a := ArgumentsOf(reflect.TypeFor[TaskRequest]())
	in, unknown, err := a.Decode(json.RawMessage(`{"description": "x", "user_id": "ann", "idempotency_key": "k", "other": 1, "constraints": ["c"]}`), true)
	if err != nil {
		t.Fatal(err)
	}
	request := in.(*TaskRequest)
	if string(request.Body) != `{"description":"x","user_id":"ann","constraints":["c"]}` || request.Key != "k" || !slices.Equal(unknown, []string{"other"}) {
		t.Errorf("the body is %s, the key %q, unknown are %q", request.Body, request.Key, unknown)
	}
	if err := a.Check(in); err != nil || request.Description != "x" || request.UserID != "ann" {
		t.Errorf("read %+v, %v", request, err)
	}
	if name := a.NameOf("Idempotency-Key"); name != "idempotency_key" {
		t.Errorf("the key is called %q", name)
	}
}
