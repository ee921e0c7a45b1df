// Package embedding asks an OpenAI-compatible server for embeddings (POST BASE/embeddings). After Failures failed requests
// in a row no request is sent for Cooldown, so that callers fail at once: they have words to go by.
package embedding

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/continuo-log/continuo/model/internal/counted"
	"github.com/continuo-log/continuo/recall/vector"
)

// Options configures a client.
type Options struct {
	BaseURL    string // as for models: with /v1, without a slash at its end
	Provider   string // who it is, as prices name it
	Model      string
	Key        string // "" sends none
	Dimensions int    // 0: as many as the model has
	// Timeout bounds a request. Default 30 s.
	Timeout time.Duration
	// Failures and Cooldown: see the package comment. Defaults 3 and 30 s.
	Failures int
	Cooldown time.Duration
	// HTTP sends the requests. Default http.DefaultClient.
	HTTP *http.Client
}

// Client makes embeddings. It is safe for concurrent use.
type Client struct {
	options Options
	breaker *gobreaker.CircuitBreaker[response]
}

// New makes a client.
func New(options Options) *Client {
	options.Timeout = cmp.Or(options.Timeout, 30*time.Second)
	options.Failures = cmp.Or(options.Failures, 3)
	options.Cooldown = cmp.Or(options.Cooldown, 30*time.Second)
	if options.HTTP == nil {
		options.HTTP = http.DefaultClient
	}
	return &Client{options, gobreaker.NewCircuitBreaker[response](gobreaker.Settings{
		Name: "embeddings", Timeout: options.Cooldown,
		ReadyToTrip: func(counts gobreaker.Counts) bool { return counts.ConsecutiveFailures >= uint32(options.Failures) },
		IsSuccessful: func(err error) bool {
			return err == nil || errors.Is(err, context.Canceled) || errors.Is(err, vector.ErrRefused)
		},
	})}
}

// Name identifies the model and the dimensions.
func (c *Client) Name() string {
	if c.options.Dimensions == 0 {
		return c.options.Model
	}
	return c.options.Model + "/" + strconv.Itoa(c.options.Dimensions)
}

// Model returns the provider and the model of the options.
func (c *Client) Model() (provider, model string) { return c.options.Provider, c.options.Model }

type request struct {
	Model      string   `json:"model"`
	Input      []string `json:"input"`
	Dimensions int      `json:"dimensions,omitempty"`
	Format     string   `json:"encoding_format"`
}

// response is what was read of a response.
type response struct {
	vectors [][]float32
	tokens  int
}

// Embed returns a vector for each text, and the tokens that the server has counted.
func (c *Client) Embed(ctx context.Context, texts []string) (vectors [][]float32, tokens int, err error) {
	made, err := c.breaker.Execute(func() (response, error) { return c.embed(ctx, texts) })
	if err != nil {
		return nil, 0, fmt.Errorf("embeddings of %s: %w", c.options.Model, err)
	}
	return made.vectors, made.tokens, nil
}

// maxResponse bounds the bytes of a response, and maxError those of an error that are read.
const (
	maxResponse = 16 << 20
	maxError    = 300
)

func (c *Client) embed(ctx context.Context, texts []string) (response, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	body, err := json.Marshal(request{c.options.Model, texts, c.options.Dimensions, "float"})
	if err != nil {
		return response{}, err
	}
	asked, err := http.NewRequestWithContext(ctx, http.MethodPost, c.options.BaseURL+"/embeddings", bytes.NewReader(body))
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
		err := fmt.Errorf("status %d: %q", answer.StatusCode, text)
		switch answer.StatusCode {
		case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
			err = fmt.Errorf("%w: %w", vector.ErrRefused, err)
		}
		return response{}, err
	}
	return decode(io.LimitReader(answer.Body, maxResponse), len(texts))
}

// decode reads a response: one vector for each text, all of one length.
func decode(body io.Reader, texts int) (response, error) {
	var read struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
		counted.Response
	}
	if err := json.NewDecoder(body).Decode(&read); err != nil {
		return response{}, fmt.Errorf("read the response: %w", err)
	}
	made := make([][]float32, texts)
	for _, one := range read.Data {
		if one.Index < 0 || one.Index >= texts || made[one.Index] != nil {
			return response{}, fmt.Errorf("the response has a vector %d for %d texts", one.Index, texts)
		}
		made[one.Index] = one.Embedding
	}
	for i := range made {
		if len(made[i]) == 0 || len(made[i]) != len(made[0]) {
			return response{}, fmt.Errorf("the response has no vector of %d dimensions for text %d", len(made[0]), i)
		}
	}
	return response{made, read.Tokens()}, nil
}
