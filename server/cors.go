package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// cors lets pages of listed origins call the API: Cross-Origin Resource Sharing. Answers to other origins have no header of
// it, so that browsers keep them from their pages. No origin is allowed by a pattern: a page that may call this server
// acts with the rights of the person who has it open.
type cors struct{ origins []string }

// exposedHeaders are the headers of answers that pages may read besides those that browsers always show.
const exposedHeaders = "Location, Retry-After, X-Request-Id, X-Continuo-Matched, X-Continuo-Omitted, X-Continuo-Request-Id, X-Continuo-Turn, X-Continuo-View"

// allows reports whether an origin is listed.
func (c *cors) allows(origin string) bool { return origin != "" && slices.Contains(c.origins, origin) }

// begin adds the headers that a page of a listed origin needs to read the answer, and answers a preflight. It reports
// whether it has answered.
func (c *cors) begin(w http.ResponseWriter, r *http.Request) bool {
	if len(c.origins) == 0 {
		return false
	}
	header := w.Header()
	header.Add("Vary", "Origin")
	if !c.allows(r.Header.Get("Origin")) {
		return false
	}
	header.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	header.Set("Access-Control-Allow-Credentials", "true")
	header.Set("Access-Control-Expose-Headers", exposedHeaders)
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	header.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PATCH, DELETE")
	if names := strings.Join(r.Header.Values("Access-Control-Request-Headers"), ", "); names != "" {
		header.Set("Access-Control-Allow-Headers", names) // the origin is trusted, so any of them
	}
	header.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// trust lets the guard pass requests of the origins. It panics for what is no origin; the settings refuse those.
func (c *cors) trust(origins *http.CrossOriginProtection) {
	for _, origin := range c.origins {
		if err := origins.AddTrustedOrigin(origin); err != nil {
			panic(fmt.Sprintf("server: Options.Origins: %v", err))
		}
	}
}
