package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
)

// fault is what an upstream does wrong and the outcome that must follow.
type fault struct {
	message string // makes the upstream do it
	status  int    // of the answer that is not streamed
	want    continuo.TurnError
	// whole is what the upstream would have said: what is kept is the beginning of it. "": nothing came.
	whole string
	// call is like whole, of the arguments of a call that broke off.
	call string
}

// models are those that are asked for the fault.
func (f fault) models() []string {
	if f.whole != "" || f.want.Reason != "timeout" {
		return protocols
	}
	models := []string{}
	for _, protocol := range protocols {
		models = append(models, hasty+protocol)
	}
	return models
}

// failed is the error of a fault, without its message.
func failed(reason continuo.FailureReason, retryable bool, status int) continuo.TurnError {
	return continuo.TurnError{Reason: reason, Retryable: retryable, ProviderStatus: status}
}

const counting = "one two three four five six seven eight nine ten"

// TestFaults breaks answers in each way that the mock knows: in both protocols, streamed and not.
func TestFaults(t *testing.T) {
	t.Parallel()
	upstream := startMock(t)
	s := serve(t, bothModels(upstream.url, "retries: 0", "breaker_failures: 0"))
	for _, fault := range []fault{
		{message: "fault: cut", status: 502, want: failed("network", true, 0), whole: counting},
		{message: "fault: disconnect", status: 502, want: failed("network", true, 0), whole: counting},
		{message: "fault: torn call", status: 502, want: failed("network", true, 0), call: `{"path":"@project/a/rather/long/name.txt"}`},
		{message: "fault: hang-up", status: 502, want: failed("network", true, 0)},
		{message: "fault: malformed body", status: 502, want: failed("upstream", true, 0)},
		{message: "fault: drop", status: 502, want: failed("upstream", true, 500)},
		{message: "status: 500", status: 502, want: failed("upstream", true, 500)},
		{message: "status: 529", status: 502, want: failed("upstream", true, 529)},
		{message: "status: 401", status: 502, want: failed("upstream", false, 401)},
		{message: "status: 400 length", status: 413, want: failed("context_overflow", false, 400)},
		{message: "status: 400 filter", status: 502, want: failed("content_filter", false, 400)},
	} {
		models := protocols
		if fault.call != "" { // calls of Gemini arrive whole
			models = slices.DeleteFunc(slices.Clone(protocols), func(name string) bool { return name == "gemini" })
		}
		runFault(t, s, fault, models, func(t *testing.T, model, session string, partial string) {
			next(t, s, session, model)
			requests := upstream.requests(t, session)
			if len(requests) != 2 {
				t.Fatalf("the upstream got %d requests of the two turns, want 2", len(requests))
			}
			if !strings.Contains(string(requests[1].Body), partial) {
				t.Errorf("the next request does not show %q: %s", partial, requests[1].Body)
			}
		})
	}
}

// TestStalls lets an upstream fall silent: before its first token, and in the middle.
func TestStalls(t *testing.T) {
	upstream := startMock(t)
	s := serve(t, hastyModels(upstream.url, "retries: 0", "breaker_failures: 0", "idle_timeout: 3s"))
	for _, fault := range []fault{
		{message: "fault: silent at first", status: 504, want: continuo.TurnError{Reason: "timeout", Retryable: true, Message: "no first token within 1s"}},
		{message: "fault: silent midway", status: 504, want: continuo.TurnError{Reason: "timeout", Retryable: true, Message: "sent nothing for 3s"}, whole: counting},
	} {
		runFault(t, s, fault, fault.models(), func(t *testing.T, model, session, _ string) { next(t, s, session, strings.TrimPrefix(model, hasty)) })
	}
}

// runFault asks for a fault of each model, streamed and not, and hands what was kept of the answer to after.
func runFault(t *testing.T, s server, fault fault, models []string, after func(t *testing.T, model, session, partial string)) {
	for _, model := range models {
		for _, streamed := range []bool{true, false} {
			session := strings.NewReplacer(": ", "-", " ", "-").Replace(fmt.Sprintf("%s-%s-%v", fault.message, model, streamed))
			t.Run(session, func(t *testing.T) {
				t.Parallel()
				got := s.ask(t, session, model, fault.message+" ("+session+")", streamed)
				fault.checkSeen(t, got, streamed)
				fault.checkKept(t, s.entries(t, session), got.answer.Response)
				after(t, model, session, got.answer.Response)
			})
		}
	}
}

// checkSeen checks what the client saw.
func (f fault) checkSeen(t *testing.T, got seen, streamed bool) {
	t.Helper()
	want := []string(nil)
	status := f.status
	if streamed {
		status = http.StatusOK // it had begun when the fault came
		want = []string{"turn", "context", "error"}
		switch {
		case f.whole != "":
			want = []string{"turn", "context", "delta", "error"}
		case f.call != "":
			want = []string{"turn", "context", "tool_call_delta", "error"}
		}
	}
	if got.status != status || !slices.Equal(got.events, want) {
		t.Errorf("status %d, events %v; want %d, %v", got.status, got.events, status, want)
	}
	failure := got.answer.Error
	if failure == nil {
		t.Fatalf("no error: %+v", got.answer)
	}
	code := "llm_error"
	if f.want.Reason == continuo.ReasonContextOverflow {
		code = "context_overflow"
	}
	if failure.Code != code || failure.Reason != f.want.Reason || failure.Retryable != f.want.Retryable || failure.ProviderStatus != f.want.ProviderStatus {
		t.Errorf("error %+v, want %+v", *failure, f.want)
	}
	if failure.Message == "" || !strings.Contains(failure.Message, f.want.Message) {
		t.Errorf("the message %q does not say %q", failure.Message, f.want.Message)
	}
	if response := got.answer.Response; !begins(f.whole, response) || streamed && got.text != response {
		t.Errorf("response %q, deltas %q; want the beginning of %q", response, got.text, f.whole)
	}
	if got.answer.TurnID == "" || got.answer.ConversationID == "" {
		t.Errorf("the answer does not say of which turn it is: %+v", got.answer)
	}
}

// begins reports whether part is a beginning of whole, and neither nothing nor all of it.
func begins(whole, part string) bool {
	if whole == "" {
		return part == ""
	}
	return strings.HasPrefix(whole, part) && part != "" && part != whole
}

// checkKept checks what the log has: the question, and an answer with what had come and why no more did.
func (f fault) checkKept(t *testing.T, entries []continuo.Entry, response string) {
	t.Helper()
	if len(entries) != 2 || entries[1].Role != continuo.Assistant || entries[1].Error == nil {
		t.Fatalf("the log has %+v, want a question and a failed answer", entries)
	}
	kept := entries[1]
	if kept.Content.String() != response || kept.Content.IsNull() != (response == "") {
		t.Errorf("the log has the text %q, the client was told %q", kept.Content.String(), response)
	}
	why := *kept.Error
	if why.Code != continuo.LLMError || why.Reason != f.want.Reason || why.Retryable != f.want.Retryable || why.ProviderStatus != f.want.ProviderStatus {
		t.Errorf("the log has the error %+v, want %+v", why, f.want)
	}
	switch {
	case f.call == "" && len(why.PartialToolCalls)+len(kept.ToolCalls) > 0:
		t.Errorf("the log has the calls %+v, %+v; there were none", kept.ToolCalls, why.PartialToolCalls)
	case f.call != "" && (len(why.PartialToolCalls) != 1 || len(kept.ToolCalls) > 0):
		t.Errorf("the log has the calls %+v, %+v; want one that broke off", kept.ToolCalls, why.PartialToolCalls)
	case f.call != "":
		if call := why.PartialToolCalls[0]; !begins(f.call, call.Arguments) || call.Name != "fs_read" || call.ID == "" {
			t.Errorf("the log has the call %+v, want the beginning of %s", call, f.call)
		}
	}
}

// next runs another turn of a conversation: whatever happened, it continues.
func next(t *testing.T, s server, session, model string) {
	t.Helper()
	got := s.ask(t, session, model, "hello", true)
	if got.answer.Error != nil || got.answer.Response == "" || got.text != got.answer.Response {
		t.Errorf("the next turn: %+v, %+v", got, got.answer.Error)
	}
	entries := s.entries(t, session)
	if newest := entries[len(entries)-1]; newest.Error != nil || newest.Content.String() != got.answer.Response {
		t.Errorf("the newest entry of the next turn: %+v", newest)
	}
}

// TestOtherEnds covers answers that end as the protocol has it, but not because the model was done: they
// are whole answers, and the log says how they ended.
func TestOtherEnds(t *testing.T) {
	t.Parallel()
	upstream := startMock(t)
	s := serve(t, bothModels(upstream.url, "retries: 0"))
	for message, want := range map[string]struct{ text, finish string }{
		"end: length":  {"cut by the limit", "length"},
		"end: filter":  {"begun, but", "content_filter"},
		"end: nothing": {"", "content_filter"},
	} {
		for _, model := range protocols {
			if model == "responses" && want.finish == "content_filter" {
				continue // the mock ends it with response.failed
			}
			t.Run(message+" "+model, func(t *testing.T) {
				session := strings.ReplaceAll(message, ": ", "-") + model
				got := s.ask(t, session, model, message, true)
				if got.answer.Error != nil || got.answer.Response != want.text || got.text != want.text {
					t.Errorf("got %+v, want %q", got, want.text)
				}
				entries := s.entries(t, session)
				newest := entries[len(entries)-1]
				if newest.Content.String() != want.text || newest.Round == nil || newest.Round.FinishReason != want.finish {
					t.Errorf("the log has %q, round %+v; want %q, %s", newest.Content.String(), newest.Round, want.text, want.finish)
				}
				next(t, s, session, model)
			})
		}
	}
}
