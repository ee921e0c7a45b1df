package api

import (
	"cmp"
	"context"
	"net/url"
	"regexp"
	"slices"

	continuo "github.com/continuo-log/continuo"
	"github.com/continuo-log/continuo/internal/clients"
)

// ConnectQuery says for which address ready lines are made.
type ConnectQuery struct {
	// The address by which the clients reach the server, such as `http://127.0.0.1:8787`: the server itself does not know by which
	// names it is reached.
	BaseURL string `query:"base_url" default:"http://127.0.0.1:8787" maxLength:"500"`
	// The model in the lines of libraries. Default: the server's.
	Model *string `query:"model"`
	// Whether the server needs API keys, so that the lines have a place for one.
	Keys bool `query:"keys" default:"false"`
}

// plainURL is an address that needs no quotes in any of the lines.
var plainURL = regexp.MustCompile(`^https?://[A-Za-z0-9._:\[\]/~-]+[A-Za-z0-9\]]$`)

// Check refuses what is no address.
func (in *ConnectQuery) Check() error {
	if parsed, err := url.Parse(in.BaseURL); err != nil || parsed.Host == "" || !plainURL.MatchString(in.BaseURL) {
		return Refuse("base_url", "base_url must be an address such as http://127.0.0.1:8787, without a slash at its end, not %q", Bounded(in.BaseURL))
	}
	return nil
}

// Connections say how clients are pointed at the server.
type Connections struct {
	BaseURLs []clients.Endpoint `json:"base_urls"`
	Clients  []clients.Ready    `json:"clients"`
	// What to set before an agent is connected: the server has none of the models that agents ask for by themselves. Absent
	// where it has an upstream.
	Note string `json:"note,omitempty"`
}

func (s *Service) connectOperation() Operation {
	return define(Operation{
		ID: "connect", Method: "GET", Path: "/api/connect", Tag: "service", Summary: "say how clients are pointed at the server",
		Answers: answers(ok("Base URLs, and ready lines for each client.")),
	}, s.Connect)
}

// Connect says how clients are pointed at the server.
//
// The lines of agents are those of `continuo launch --print`. No client is asked, and no key is made.
func (s *Service) Connect(_ context.Context, _ continuo.Scope, in ConnectQuery) (Connections, error) {
	model := valueOf(in.Model)
	if model == "" {
		model = cmp.Or(s.Engine.Catalog.Models()...)
	}
	if !slices.Contains(s.Engine.Catalog.Models(), model) {
		return Connections{}, oneOf("model", model, s.Engine.Catalog.Models()...)
	}
	connections := Connections{BaseURLs: clients.Endpoints(in.BaseURL), Clients: clients.All(in.BaseURL, model, in.Keys)}
	if !s.Engine.Catalog.ServesOthers() {
		connections.Note = clients.WithoutUpstream(s.Engine.Catalog.Models())
	}
	return connections, nil
}
