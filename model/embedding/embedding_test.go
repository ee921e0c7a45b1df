package embedding_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/continuo-log/continuo/model/embedding"
	"github.com/continuo-log/continuo/recall/vector"
)

// serve answers with a function, in memory.
type serve func(*http.Request) (int, string)

func (s serve) RoundTrip(r *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	status, body := s(r)
	recorder.WriteHeader(status)
	_, _ = recorder.WriteString(body)
	return recorder.Result(), nil
}

func client(options embedding.Options, answer serve) *embedding.Client {
	options.BaseURL, options.Model, options.HTTP = "http://e/v1", "small", &http.Client{Transport: answer}
	return embedding.New(options)
}

func TestARequestAndItsVectors(t *testing.T) {
	made, tokens, err := client(embedding.Options{Key: "secret", Dimensions: 2}, func(r *http.Request) (int, string) {
		var asked map[string]any
		_ = json.NewDecoder(r.Body).Decode(&asked)
		got := fmt.Sprint(r.Method, " ", r.URL.Path, " ", r.Header.Get("Authorization"), " ", asked)
		if want := "POST /v1/embeddings Bearer secret map[dimensions:2 encoding_format:float input:[a b] model:small]"; got != want {
			t.Errorf("the request is %s, want %s", got, want)
		}
		return 200, `{"data":[{"index":1,"embedding":[3,4]},{"index":0,"embedding":[1,-2.5]}],"usage":{"prompt_tokens":3,"total_tokens":3}}`
	}).Embed(t.Context(), []string{"a", "b"})
	if err != nil || fmt.Sprint(made) != "[[1 -2.5] [3 4]]" || tokens != 3 {
		t.Errorf("got %v, %d tokens, %v", made, tokens, err)
	}
	if a, b := client(embedding.Options{}, nil).Name(), client(embedding.Options{Dimensions: 2}, nil).Name(); a == b {
		t.Errorf("the vectors of %s and %s would be compared", a, b)
	}
}

func TestWrongResponses(t *testing.T) {
	for name, answer := range map[string]string{
		"no JSON": "<html>", "none": `{"data":[]}`, "one too few": `{"data":[{"index":0,"embedding":[1]}]}`,
		"twice": `{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`, "outside": `{"data":[{"index":2,"embedding":[1]},{"index":-1,"embedding":[1]}]}`,
		"of two lengths": `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}`,
		"endless":        `{"data":[{"index":0,"embedding":[` + strings.Repeat("1,", 9<<20),
	} {
		if made, _, err := client(embedding.Options{}, func(*http.Request) (int, string) { return 200, answer }).Embed(t.Context(), []string{"a", "b"}); err == nil {
			t.Errorf("%s: got %v", name, made)
		}
	}
}

// TestADownServerIsLeftAlone: callers fail at once until the cooldown has passed; refused texts are no failures.
func TestADownServerIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		status := http.StatusBadGateway
		c := client(embedding.Options{}, func(*http.Request) (int, string) {
			asked.Add(1)
			return status, `{"data":[{"index":0,"embedding":[1]}]}`
		})
		for range 10 {
			if _, _, err := c.Embed(t.Context(), []string{"a"}); err == nil {
				t.Error("a server that is down answers")
			}
		}
		if n := asked.Load(); n != 3 {
			t.Errorf("it was asked %d times", n)
		}
		time.Sleep(31 * time.Second)
		status = http.StatusOK
		if _, _, err := c.Embed(t.Context(), []string{"a"}); err != nil {
			t.Errorf("after the cooldown: %v", err)
		}
		status = http.StatusBadRequest
		for range 5 {
			if _, _, err := c.Embed(t.Context(), []string{"a"}); !errors.Is(err, vector.ErrRefused) {
				t.Errorf("a refused text: %v", err)
			}
		}
		if n := asked.Load(); n != 9 {
			t.Errorf("it was asked %d times", n)
		}
	})
}
