package server

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/continuo-log/continuo/api"
)

// guard keeps other web sites out. A page of another origin may not change anything (CrossOriginProtection). Where no
// key is required, a Host that is not this server's is refused too: a site whose name is made to resolve to this
// machine would otherwise count as the same origin (DNS rebinding). Such a site has no key.
type guard struct {
	origins *http.CrossOriginProtection
	hosts   []string
}

func newGuard(allowedHosts []string) *guard {
	g := &guard{origins: http.NewCrossOriginProtection()}
	for _, host := range allowedHosts {
		g.hosts = append(g.hosts, normalizeHost(host))
	}
	return g
}

// check refuses a request that may come from another site. The probes are open under any name: they reveal nothing.
func (g *guard) check(r *http.Request, keyRequired bool) error {
	if r.URL.Path == "/healthz" || r.URL.Path == "/readyz" {
		return nil
	}
	if !keyRequired && !g.allowsHost(r.Host) {
		return &api.Problem{
			Status: http.StatusForbidden, Type: api.InvalidRequest, Code: "host_not_allowed", Param: "Host",
			Message: fmt.Sprintf("this server does not answer under the name %q; ask it as localhost or 127.0.0.1", api.Bounded(r.Host)),
		}
	}
	checked := r
	if isUpgrade(r) { // it begins with GET, which may come from any page, and then takes messages
		changes := *r
		changes.Method, checked = http.MethodPost, &changes
	}
	if err := g.origins.Check(checked); err != nil {
		return &api.Problem{
			Status: http.StatusForbidden, Type: api.InvalidRequest, Code: "cross_origin", Param: "Origin",
			Message: "a page of another origin may not send this request",
		}
	}
	return nil
}

// isUpgrade reports whether a request begins a connection of another protocol, such as WebSocket.
func isUpgrade(r *http.Request) bool { return r.Header.Get("Upgrade") != "" }

// allowsHost reports whether a Host header names this server.
func (g *guard) allowsHost(hostport string) bool {
	host := hostport
	if name, _, err := net.SplitHostPort(hostport); err == nil {
		host = name
	}
	host = normalizeHost(host)
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || slices.Contains(g.hosts, host) {
		return host != ""
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

// normalizeHost normalizes a host name or address: no brackets, no trailing dot, lower case.
func normalizeHost(host string) string {
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
