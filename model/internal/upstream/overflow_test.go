package upstream

import (
	"io"
	"net/http"
	"strings"
	"testing"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/model"
)

// Every upstream has its own words for a request that is larger than the model's window.
func TestARequestThatIsTooLargeForTheWindow(t *testing.T) {
	for _, test := range []struct {
		status   int
		body     string
		overflow bool
	}{
		{400, `{"error":{"message":"This model's maximum context length is 128000 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`, true},
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}`, true},
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"input length and ` + "`max_tokens`" + ` exceed context limit: 190000 + 20000 > 200000"}}`, true},
		{413, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, true},
		{400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, true},
		{400, `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens","type":"BadRequestError","code":400}`, true},
		{400, `{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`, true},
		{422, `{"error":"Input validation error: ` + "`inputs` tokens + `max_new_tokens` must be" + ` <= 4096"}`, true},
		{400, `{"error":{"message":"temperature must be <= 2","type":"invalid_request_error","code":null}}`, false},
		{401, `{"error":{"message":"the prompt is too long to be checked"}}`, false},
		{429, `{"error":{"message":"Request too large for the limit of tokens per minute","code":"rate_limit_exceeded"}}`, false},
	} {
		_, err := client(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: test.status, Body: io.NopCloser(strings.NewReader(test.body))}, nil
		}).Post(t.Context(), nil)
		failed := model.AsError(err)
		if (failed.Reason == continuo.ReasonContextOverflow) != test.overflow || test.overflow && failed.Retryable {
			t.Errorf("%d %s: got %+v", test.status, test.body, failed)
		}
	}
}
