package api

import (
	"net/http"
	"reflect"
)

// shared is an answer that several operations have, one of [SharedAnswers].
func shared(status int, name string) Answer { return Answer{Status: status, Ref: name} }

// SharedAnswers returns the answers that several operations have, by their names in the document. Each operation has the
// answer Error, as its default.
func SharedAnswers() map[string]Answer {
	failure := Media{Type: JSON, Schema: reflect.TypeFor[ChatFailure]()}
	either := Media{Type: JSON, AnyOf: []reflect.Type{reflect.TypeFor[Error](), reflect.TypeFor[ChatFailure]()}}
	return map[string]Answer{
		"Error": {Description: "An error. Any call may answer 400 (`invalid_request`, `invalid_json`, `invalid_utf8`, " +
			"`bad_range`), 401 (`missing_api_key`, `invalid_api_key`; with `WWW-Authenticate: Bearer`), 403 " +
			"(`host_not_allowed`, `cross_origin`), 404 (`not_found`), 405 (`method_not_allowed`), 408 (`body_timeout`), 413 " +
			"(`body_too_large`), 415 (`unsupported_media_type`), 429 (`rate_limited`), 500 (`internal`), 503 (`read_only`, " +
			"`closing`), 504 (`timeout`) or 507 (`disk_full`)."},
		"Overflow": Answer{Description: "The newest message and the parts that must accompany it do not fit into the model's " +
			"window (`context_overflow`; the error has the sizes when they were known before the model was asked, and " +
			"otherwise the members of an `llm_error`), or the body is larger than the server accepts (`body_too_large`)."}.as(either),
		"ModelFailed": Answer{Description: "The model gave no complete answer (`llm_error`): 504 after a timeout, 429 when the " +
			"provider limits the rate, else 502. (429 with the code `too_many_turns` or `rate_limited` is the server's own: no " +
			"turn began. 504 with the code `timeout` means that the store did not answer.) `Retry-After` has the delay in " +
			"seconds before a retry, unless `retryable` is false. The text that the model had produced is in `response`, and " +
			"the turn is in the log, so that the next message continues from there."}.as(failure),
		"WorkflowInvalid": {Description: "The workflow's file is invalid (`workflow_invalid`); `problems` has each error and its " +
			"remedy."},
		"CrewInvalid": {Description: "The crew's file is invalid (`crew_invalid`); `problems` has each error and its remedy."},
		"CrewConflict": {Description: "There is no cycle to resume and no reset to take back (`no_cycle`), calls of a role wait " +
			"for their results for too long (`conversation_busy`), or the conversation is archived (`archived`)."},
		"NotRepairable": {Description: "The run is over (`run_over`), waits (`run_waiting`) or is in progress " +
			"(`run_in_progress`), the state of the step does not allow it (`not_repairable`), or the `Idempotency-Key` repaired " +
			"the run in another way (`idempotency_conflict`)."},
		"RunOver": {Description: "The run is over (`run_over`)."},
	}
}

// turnAnswers are the answers of operations that run a turn.
func turnAnswers(success, conflict, other string) []Answer {
	failure := Media{Type: JSON, Schema: reflect.TypeFor[ChatFailure]()}
	return answers(
		ok(success).as(Media{Type: JSON}, events[EventStream]()),
		failing(http.StatusConflict, conflict).as(failure),
		shared(http.StatusRequestEntityTooLarge, "Overflow"),
		shared(http.StatusTooManyRequests, "ModelFailed"),
		shared(http.StatusBadGateway, "ModelFailed"),
		shared(http.StatusGatewayTimeout, "ModelFailed"),
		Answer{Description: other}.as(failure),
	)
}
