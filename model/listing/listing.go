// Package listing asks upstreams for the names of their models, each in its own protocol. Nothing is kept: the caller
// decides how long an answer is good for.
package listing

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/continuo-log/continuo/model"
)

// Upstream is where models are.
type Upstream struct {
	Protocol string // of package model
	BaseURL  string // as a model has it: the protocol's own path follows
	// Header has the credentials and what else each request carries.
	Header http.Header
	// Client is used for the request. Default: http.DefaultClient.
	Client *http.Client
}

// maxListBytes bounds a list of models.
const maxListBytes = 4 << 20

// Credentials returns the header of a protocol that has a key; empty for none.
func Credentials(protocol, key string) http.Header {
	header := http.Header{}
	switch {
	case key == "":
	case protocol == model.ProtocolAnthropic:
		header.Set("X-Api-Key", key)
	case protocol == model.ProtocolGemini:
		header.Set("X-Goog-Api-Key", key)
	default:
		header.Set("Authorization", "Bearer "+key)
	}
	return header
}

// Models returns the names of an upstream's models, in its order.
func Models(ctx context.Context, u Upstream) ([]string, error) {
	address, err := u.address()
	if err != nil {
		return nil, fmt.Errorf("list the models: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("list the models: %w", err)
	}
	for name, values := range u.Header {
		request.Header[name] = values
	}
	if u.Protocol == model.ProtocolAnthropic && request.Header.Get("Anthropic-Version") == "" {
		request.Header.Set("Anthropic-Version", "2023-06-01")
	}
	response, err := cmp.Or(u.Client, http.DefaultClient).Do(request)
	if err != nil {
		return nil, fmt.Errorf("list the models: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("list the models of %s: status %d", request.URL.Host, response.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxListBytes))
	if err != nil {
		return nil, fmt.Errorf("list the models of %s: %w", request.URL.Host, err)
	}
	return names(request.URL.Host, body)
}

// address is where an upstream lists its models.
func (u Upstream) address() (string, error) {
	base, err := url.Parse(u.BaseURL)
	if err != nil {
		return "", err
	}
	path, query := "models", ""
	switch u.Protocol {
	case model.ProtocolAnthropic:
		path, query = "v1/models", "limit=1000"
	case model.ProtocolGemini:
		path, query = "v1beta/models", "pageSize=1000"
	}
	listed := base.JoinPath(path)
	listed.RawQuery = query
	return listed.String(), nil
}

// names reads a list in any of the protocols' forms.
func names(host string, body []byte) ([]string, error) {
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
		Models []struct {
			Name string `json:"name"`
		} `json:"models"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("list the models of %s: %w", host, err)
	}
	var found []string
	for _, entry := range list.Data {
		found = append(found, entry.ID)
	}
	for _, entry := range list.Models {
		found = append(found, strings.TrimPrefix(entry.Name, "models/"))
	}
	return found, nil
}
