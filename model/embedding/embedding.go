// Package embedding asks an OpenAI-compatible server for embeddings (POST BASE/embeddings). After Failures failed requests
// in a row no request is sent for Cooldown, so that callers fail at once: they have words to go by.
package embedding

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/continuo-log/continuo/model/internal/textserver"
	"github.com/continuo-log/continuo/recall/vector"
)

// Options configures a client.
type Options struct {
	BaseURL  string // as for models: with /v1, without a slash at its end
	Provider string // who it is, as prices name it
	Model    string
	Key      string // "" sends none
	// KeyNote says where the key comes from, or that there is none: the error of a request that is refused with 401 or 403 ends
	// with it. It must not hold the key. Default none.
	KeyNote    string
	Dimensions int // 0: as many as the model has
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
	server  *textserver.Client[response]
}

// maxResponse bounds the bytes of a response.
const maxResponse = 16 << 20

// New makes a client.
func New(options Options) *Client {
	return &Client{options, textserver.New[response](textserver.Options{
		Name: "embeddings", URL: options.BaseURL + "/embeddings", Key: options.Key, KeyNote: options.KeyNote, MaxResponse: maxResponse,
		Timeout: cmp.Or(options.Timeout, 30*time.Second), Failures: options.Failures, Cooldown: options.Cooldown, HTTP: options.HTTP,
		IsHealthy: isRefusal,
	})}
}

// isRefusal reports whether a server has refused the texts of a request: others may do.
func isRefusal(err error) bool {
	refusal := new(textserver.StatusError)
	if !errors.As(err, &refusal) {
		return false
	}
	switch refusal.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	}
	return false
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
	made, err := c.server.Post(ctx, request{c.options.Model, texts, c.options.Dimensions, "float"}, func(body io.Reader) (response, error) {
		return decode(body, len(texts))
	})
	if isRefusal(err) {
		err = fmt.Errorf("%w: %w", vector.ErrRefused, err)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("embeddings of %s: %w", c.options.Model, err)
	}
	return made.vectors, made.tokens, nil
}

// decode reads a response: one vector for each text, all of one length.
func decode(body io.Reader, texts int) (response, error) {
	var read struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
		textserver.Counted
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
