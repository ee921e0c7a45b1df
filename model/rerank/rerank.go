// Package rerank asks a reranker model which texts answer a query best (POST BASE/rerank, as Cohere, Jina, vLLM, llama.cpp and
// others serve it). After Failures failed requests in a row no request is sent for Cooldown, so that callers fail at once:
// they have an order to go by. Servers differ in what their scores mean and in whether they sort: only the order counts.
package rerank

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/continuo-log/continuo/model/internal/textserver"
)

// Options configures a client.
type Options struct {
	BaseURL  string // as for models: with /v1, without a slash at its end
	Provider string // who it is, as prices name it
	Model    string
	Key      string // "" sends none
	// KeyNote says where the key comes from, or that there is none: the error of a request that is refused with 401 or 403 ends
	// with it. It must not hold the key. Default none.
	KeyNote string
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
	server  *textserver.Client[response]
}

// maxResponse bounds the bytes of a response, which may repeat the texts.
const maxResponse = 4 << 20

// New makes a client.
func New(options Options) *Client {
	return &Client{options, textserver.New[response](textserver.Options{
		Name: "reranker", URL: options.BaseURL + "/rerank", Key: options.Key, KeyNote: options.KeyNote, MaxResponse: maxResponse,
		Timeout: cmp.Or(options.Timeout, 500*time.Millisecond), Failures: options.Failures, Cooldown: options.Cooldown, HTTP: options.HTTP,
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
	read, err := c.server.Post(ctx, request{c.options.Model, query, texts, len(texts)}, func(body io.Reader) (response, error) {
		return decode(body, len(texts))
	})
	if err != nil {
		return nil, 0, fmt.Errorf("rerank with %s: %w", c.options.Model, err)
	}
	return read.order, read.tokens, nil
}

// decode reads a response, which must have a score for each text, and orders the texts.
func decode(body io.Reader, texts int) (response, error) {
	var read struct {
		Results []result `json:"results"`
		textserver.Counted
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
