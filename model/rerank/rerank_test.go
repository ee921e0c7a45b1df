package rerank_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/continuo-log/continuo/model/rerank"
)

// answering is a server.
type answering func(r *http.Request) (int, string)

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	status, body := a(r)
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func client(a answering) *rerank.Client {
	return rerank.New(rerank.Options{BaseURL: "http://reranker/v1", Model: "small", Key: "secret", HTTP: &http.Client{Transport: a}})
}

func TestRerank(t *testing.T) {
	order, tokens, err := client(func(r *http.Request) (int, string) {
		var body map[string]any
		_ = json.NewDecoder(r.Body).Decode(&body)
		got := fmt.Sprint(r.Method, " ", r.URL.Path, " ", r.Header.Get("Authorization"), " ", body)
		if want := "POST /v1/rerank Bearer secret map[documents:[a b c] model:small query:q top_n:3]"; got != want {
			t.Errorf("the request is %s, want %s", got, want)
		}
		return 200, `{"results":[{"index":0,"relevance_score":-11.5},{"index":2,"relevance_score":7.1,"document":{"text":"c"}},{"index":1,"relevance_score":-11.5}],"usage":{"total_tokens":17}}`
	}).Rerank(t.Context(), "q", []string{"a", "b", "c"})
	if err != nil || fmt.Sprint(order) != "[2 0 1]" || tokens != 17 {
		t.Errorf("got %v, %d tokens, %v", order, tokens, err)
	}
}

func TestWrongResponses(t *testing.T) {
	for name, answer := range map[string]string{
		"no JSON": "<html>", "none": `{"results":[]}`, "one too few": `{"results":[{"index":0,"relevance_score":1}]}`,
		"twice":     `{"results":[{"index":0,"relevance_score":1},{"index":0,"relevance_score":1}]}`,
		"outside":   `{"results":[{"index":2,"relevance_score":1},{"index":-1,"relevance_score":1}]}`,
		"no scores": `{"results":[{"index":0},{"index":1}]}`, "words": `{"results":[{"index":0,"relevance_score":"high"},{"index":1,"relevance_score":"low"}]}`,
		"endless": `{"results":[` + strings.Repeat(`{"index":0,"relevance_score":1},`, 1<<18),
	} {
		if order, _, err := client(func(*http.Request) (int, string) { return 200, answer }).Rerank(t.Context(), "q", []string{"a", "b"}); err == nil {
			t.Errorf("%s: got %v", name, order)
		}
	}
}

// TestADownServerIsLeftAlone: callers fail at once until the cooldown has passed.
func TestADownServerIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		status := http.StatusBadGateway
		c := client(func(*http.Request) (int, string) {
			asked.Add(1)
			return status, `{"results":[{"index":0,"relevance_score":1}]}`
		})
		for range 10 {
			if _, _, err := c.Rerank(t.Context(), "q", []string{"a"}); err == nil {
				t.Error("a server that is down answers")
			}
		}
		if n := asked.Load(); n != 3 {
			t.Errorf("it was asked %d times", n)
		}
		time.Sleep(31 * time.Second)
		status = http.StatusOK
		if _, _, err := c.Rerank(t.Context(), "q", []string{"a"}); err != nil {
			t.Errorf("after the cooldown: %v", err)
		}
	})
}
