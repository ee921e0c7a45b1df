// Package rerank asks a reranker model which texts answer a query best (POST BASE/rerank, as Cohere, Jina, vLLM, llama.cpp and
// others serve it). After Failures failed requests in a row no request is sent for Cooldown, so that callers fail at once:
// they have an order to go by. Servers differ in what their scores mean and in whether they sort: only the order counts.
package rerank

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/continuo-log/continuo/model/internal/counted"
)

// Options configures a client.
type Options struct {
	BaseURL  string // as for models: with /v1, without a slash at its end
	Provider string // who it is, as prices name it
	Model    string
	Key      string // "" sends none
	// Timeout bounds a request. Default 500 ms.
	Timeout time.Duration
	// Failures and Cooldown: see the package comment. Defaults 3 and 30 s.
	Failures int
	Cooldown time.Duration
	// HTTP sends the requests. Default http.DefaultClient.
	HTTP *http.Client
}

// Client orders texts. It is safe for concurrent use.
type Client struct {
	options Options
	breaker *gobreaker.CircuitBreaker[response]
}

// New makes a client.
func New(options Options) *Client {
	options.Timeout = cmp.Or(options.Timeout, 500*time.Millisecond)
	options.Failures = cmp.Or(options.Failures, 3)
	options.Cooldown = cmp.Or(options.Cooldown, 30*time.Second)
	if options.HTTP == nil {
		options.HTTP = http.DefaultClient
	}
	return &Client{options, gobreaker.NewCircuitBreaker[response](gobreaker.Settings{
		Name: "reranker", Timeout: options.Cooldown,
		ReadyToTrip:  func(counts gobreaker.Counts) bool { return counts.ConsecutiveFailures >= uint32(options.Failures) },
		IsSuccessful: func(err error) bool { return err == nil || errors.Is(err, context.Canceled) },
	})}
}

// Model returns the provider and the model of the options.
func (c *Client) Model() (provider, model string) { return c.options.Provider, c.options.Model }

type request struct {
	Model     string   `json:"model"`
	Query     string   `json:"query"`
	Documents []string `json:"documents"`
	TopN      int      `json:"top_n"`
}

type result struct {
	Index int      `json:"index"`
	Score *float64 `json:"relevance_score"`
}

// response is what was read of a response.
type response struct {
	order  []int
	tokens int
}

// Rerank returns the indexes of all texts, the one that answers the query best first, and the tokens that the server has counted.
// Texts with equal scores keep their order.
func (c *Client) Rerank(ctx context.Context, query string, texts []string) (order []int, tokens int, err error) {
	read, err := c.breaker.Execute(func() (response, error) { return c.rerank(ctx, query, texts) })
	if err != nil {
		return nil, 0, fmt.Errorf("rerank with %s: %w", c.options.Model, err)
	}
	return read.order, read.tokens, nil
}

// maxResponse bounds the bytes of a response, which may repeat the texts, and maxError those of an error that are read.
const (
	maxResponse = 4 << 20
	maxError    = 300
)

func (c *Client) rerank(ctx context.Context, query string, texts []string) (response, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	body, err := json.Marshal(request{c.options.Model, query, texts, len(texts)})
	if err != nil {
		return response{}, err
	}
	asked, err := http.NewRequestWithContext(ctx, http.MethodPost, c.options.BaseURL+"/rerank", bytes.NewReader(body))
	if err != nil {
		return response{}, err
	}
	asked.Header.Set("Content-Type", "application/json")
	if c.options.Key != "" {
		asked.Header.Set("Authorization", "Bearer "+c.options.Key)
	}
	answer, err := c.options.HTTP.Do(asked)
	if err != nil {
		return response{}, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, maxError))
		return response{}, fmt.Errorf("status %d: %q", answer.StatusCode, text)
	}
	return decode(io.LimitReader(answer.Body, maxResponse), len(texts))
}

// decode reads a response, which must have a score for each text, and orders the texts.
func decode(body io.Reader, texts int) (response, error) {
	var read struct {
		Results []result `json:"results"`
		counted.Response
	}
	if err := json.NewDecoder(body).Decode(&read); err != nil {
		return response{}, fmt.Errorf("read the response: %w", err)
	}
	scores := make([]*float64, texts)
	for _, one := range read.Results {
		if one.Index < 0 || one.Index >= texts || scores[one.Index] != nil || one.Score == nil || math.IsNaN(*one.Score) {
			return response{}, fmt.Errorf("the response has a result %d for %d texts, or no score for it", one.Index, texts)
		}
		scores[one.Index] = one.Score
	}
	if len(read.Results) != texts {
		return response{}, fmt.Errorf("the response has %d results for %d texts", len(read.Results), texts)
	}
	order := make([]int, texts)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(*scores[b], *scores[a]) })
	return response{order, read.Tokens()}, nil
}
