package gateway

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/continuo-log/continuo/auth"
	"github.com/continuo-log/continuo/model"
)

// ownRequestHeaders are the headers of a client's request that are not sent on: those of the connection, the credentials
// for this server, and what only this server reads. The upstream's credentials are its settings'.
var ownRequestHeaders = map[string]bool{
	"Accept-Encoding": true, "Api-Key": true, "Authorization": true, "Connection": true, "Content-Length": true, "Cookie": true,
	"Expect": true, "Forwarded": true, "Host": true, "Keep-Alive": true, "Origin": true, "Proxy-Authorization": true, "Proxy-Connection": true,
	"Referer": true, "Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true, "Via": true,
	"X-Api-Key": true, "X-Conversation-Id": true, "X-Goog-Api-Key": true, "X-Real-Ip": true,
}

// requestHeader returns the headers of a client's request that are sent on.
func requestHeader(header http.Header) http.Header {
	sent := http.Header{}
	for name, values := range header {
		if !ownRequestHeaders[name] && !strings.HasPrefix(name, "X-Continuo-") && !strings.HasPrefix(name, "X-Forwarded-") {
			sent[name] = values
		}
	}
	return sent
}

// builtHeaders are the headers of a client's request that a request in the same protocol has which is built for it, with
// the client's own credentials where withCredentials says so. Its form, and that it is sent once, are not the client's.
func builtHeaders(header http.Header, withCredentials bool) *model.ClientHeaders {
	sent := requestHeader(header)
	for _, name := range []string{"Accept", "Content-Type", "Content-Encoding", "Idempotency-Key", "User-Agent"} {
		sent.Del(name)
	}
	if withCredentials {
		addCredentials(sent, header)
	}
	return &model.ClientHeaders{Header: sent, KeepsKey: withCredentials}
}

// ownResponseHeaders are the headers of an upstream's answer that the client does not get: those of the connection, and
// those that are meant for the upstream's own host, such as what other sites may read.
var ownResponseHeaders = map[string]bool{
	"Alt-Svc": true, "Connection": true, "Content-Encoding": true, "Content-Length": true, "Date": true, "Keep-Alive": true,
	"Proxy-Authenticate": true, "Server": true, "Set-Cookie": true, "Strict-Transport-Security": true, "Trailer": true, "Transfer-Encoding": true,
	"Upgrade": true, "Www-Authenticate": true,
}

// requestIDHeader names a request at the server that answered it, and ownRequestIDHeader at this one, where the first is
// the upstream's.
const (
	requestIDHeader    = "X-Request-Id"
	ownRequestIDHeader = "X-Continuo-Request-Id"
)

// passRequestID makes the upstream's id of a request the one that the client sees.
func passRequestID(to, from http.Header) {
	if id := from.Get(requestIDHeader); id != "" {
		if own := to.Get(requestIDHeader); own != "" {
			to.Set(ownRequestIDHeader, own)
		}
		to.Set(requestIDHeader, id)
	}
}

// passLimits adds to the header of an answer that an upstream's client did not get as it came what the upstream says of
// its limits and of the request.
func passLimits(to, from http.Header) {
	passRequestID(to, from)
	for name, values := range from {
		if strings.HasPrefix(name, "X-Ratelimit-") || strings.HasPrefix(name, "Anthropic-Ratelimit-") || name == "Request-Id" || name == shouldRetryHeader {
			to[name] = values
		}
	}
}

// copyResponseHeader adds the headers of an upstream's answer to ours, which are not replaced.
func copyResponseHeader(to, from http.Header) {
	passRequestID(to, from)
	for name, values := range from {
		if _, ours := to[name]; !ours && !ownResponseHeaders[name] && !strings.HasPrefix(name, "Access-Control-") {
			to[name] = values
		}
	}
}

// credentialHeaders are the headers in which clients send their credentials.
var credentialHeaders = []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"}

// addCredentials adds a client's credentials for the upstream to the headers that are sent on; a key of this server is
// none.
func addCredentials(to, from http.Header) {
	for _, name := range credentialHeaders {
		for _, value := range from.Values(name) {
			if _, token, ok := strings.Cut(value, " "); !strings.HasPrefix(value, auth.Prefix) && !(ok && strings.HasPrefix(token, auth.Prefix)) {
				to.Add(name, value)
			}
		}
	}
}

// sentQuery is the query of a client's request that is sent on; a key in it is a credential.
func sentQuery(location *url.URL, withCredentials bool) string {
	query := location.Query()
	if withCredentials || !query.Has("key") {
		return location.RawQuery
	}
	query.Del("key")
	return query.Encode()
}
