package upstream

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/continuo-log/continuo/internal/secret"
	"github.com/continuo-log/continuo/model/internal/failure"
)

// statusFailure explains an error status.
func (r *Response) statusFailure() *failure.Failure {
	body, _ := io.ReadAll(io.LimitReader(r, maxErrorBody))
	r.answered(body)
	if failed := failure.OfContext(r.call.ctx); failed != nil {
		return failed
	}
	status := r.http.StatusCode
	message := parseMessage(body)
	if message.text == "" {
		message.text = pageText(string(body))
	}
	if location := r.http.Header.Get("Location"); location != "" {
		message.text = fmt.Sprintf("it redirects to %s; if that is right, make it the base URL", location)
	}
	failed := &failure.Failure{Status: status, RetryAfter: retryAfter(r.http.Header)}
	failed.Reason, failed.Retryable = classify(status, message)
	if should, err := strconv.ParseBool(r.http.Header.Get("X-Should-Retry")); err == nil {
		failed.Retryable = should
	}
	answered := strings.TrimSpace(fmt.Sprintf("%s answered %d %s", r.call.host, status, http.StatusText(status)))
	failed.Message = fmt.Sprintf("%s: %s", answered, cmp.Or(r.call.clean(message.text, maxMessage), "it gave no reason"))
	if r.call.keyNote != "" && (status == http.StatusUnauthorized || status == http.StatusForbidden) {
		failed.Message = fmt.Sprintf("%s (%s)", strings.TrimRight(failed.Message, "."), r.call.keyNote)
	}
	return failed
}

// Failed explains an error that was sent instead of an answer with a success status, or in the middle of a
// stream. ok is false when data is no error.
func (r *Response) Failed(data []byte) (failed *failure.Failure, ok bool) {
	message := parseMessage(data)
	if message.text == "" && len(message.codes) == 0 && message.status == 0 {
		return nil, false
	}
	r.said = true
	failed = &failure.Failure{Status: message.status}
	failed.Reason, failed.Retryable = classify(message.status, message)
	text := cmp.Or(message.text, strings.Join(message.codes, " "))
	failed.Message = fmt.Sprintf("%s ended the answer: %s", r.call.host, r.call.clean(text, maxMessage))
	return failed, true
}

// classify derives the reason of a failure from its status and message, and whether to retry. A status of 0
// is an error inside a stream, which mostly means that the upstream failed.
func classify(status int, m message) (reason string, retryable bool) {
	message := func(parts ...string) bool {
		for _, word := range m.codes {
			for _, part := range parts {
				if strings.Contains(strings.ToLower(word), part) {
					return true
				}
			}
		}
		return false
	}
	switch {
	case message("content_filter", "content_policy", "contentfilter", "moderation", "responsibleai", "safety"):
		return failure.ContentFilter, false
	case m.isOverflow(status):
		return failure.ContextOverflow, false
	case message("insufficient_quota"):
		return failure.RateLimit, false
	case status == http.StatusTooManyRequests, status == 0 && message("rate_limit", "resource_exhausted", "too_many_requests"):
		return failure.RateLimit, true
	case status == http.StatusRequestTimeout, status == http.StatusGatewayTimeout, status == 0 && message("timeout"):
		return failure.Timeout, true
	case status == http.StatusConflict, status == http.StatusTooEarly, status >= 500:
		return failure.Upstream, true
	case status == 0:
		return failure.Upstream, !message("invalid_request", "authentication", "permission", "not_found", "too_large", "billing")
	}
	return failure.Upstream, false
}

// retryAfter reads how long to wait: retry-after-ms, or Retry-After in seconds or as a date, which is
// compared with the answer's own date if there is one; otherwise the time until an exhausted limit on
// requests or tokens is reset, as OpenAI and others send it.
func retryAfter(header http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(header.Get("Retry-After-Ms"), 64); err == nil {
		return positive(time.Duration(ms * float64(time.Millisecond)))
	}
	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		return positive(time.Duration(seconds * float64(time.Second)))
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return untilReset(header)
	}
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return positive(at.Sub(now))
}

// untilReset reads x-ratelimit-reset-requests and -tokens, such as 6m0s, if none of them remain.
func untilReset(header http.Header) (wait time.Duration) {
	for _, limited := range []string{"Requests", "Tokens"} {
		if header.Get("X-Ratelimit-Remaining-"+limited) != "0" {
			continue
		}
		if reset, err := time.ParseDuration(header.Get("X-Ratelimit-Reset-" + limited)); err == nil {
			wait = max(wait, reset)
		}
	}
	return wait
}

func positive(wait time.Duration) time.Duration { return max(wait, 0) }

// clean removes the call's secrets from a text, and then shortens it to at most limit bytes and one line.
// This order matters: half a key is a secret too.
func (c *call) clean(text string, limit int) string {
	return shorten(secret.New(c.secrets...).Text(text), limit)
}

// shorten cuts a text at a character boundary.
func shorten(text string, limit int) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text[:min(len(text), 2*limit)], "\uFFFD")), " ")
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}
