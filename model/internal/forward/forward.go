// Package forward has what a client's request that is forwarded adds to its body. It is imported by package model, which
// exports it, so that the code that clients share can use it.
package forward

import (
	"context"
	"net/http"
)

// Request is a client's request that is sent on as it came; see model.Forwarding.
type Request struct {
	Header   http.Header
	Query    string
	Path     string
	KeepsKey bool
	Other    string
	Answered func(status int, header http.Header, refusal []byte)
}

type key struct{}

type answeredKey struct{}

// WithAnswered returns a context whose requests report the answers of their upstreams.
func WithAnswered(ctx context.Context, answered func(status int, header http.Header)) context.Context {
	return context.WithValue(ctx, answeredKey{}, answered)
}

// AnsweredOf returns the function to which a context's requests report; nil for none.
func AnsweredOf(ctx context.Context) func(status int, header http.Header) {
	answered, _ := ctx.Value(answeredKey{}).(func(status int, header http.Header))
	return answered
}

// With returns a context whose requests are those of a client.
func With(ctx context.Context, request *Request) context.Context {
	return context.WithValue(ctx, key{}, request)
}

// Of returns the request that a context forwards; nil for none.
func Of(ctx context.Context) *Request {
	request, _ := ctx.Value(key{}).(*Request)
	return request
}

// Headers are those of a client's request that a request has which is built for it; see model.ClientHeaders.
type Headers struct {
	Header   http.Header
	KeepsKey bool
}

type headersKey struct{}

// WithHeaders returns a context whose requests have the headers of a client's.
func WithHeaders(ctx context.Context, headers *Headers) context.Context {
	return context.WithValue(ctx, headersKey{}, headers)
}

// HeadersOf returns the headers of a client's request, or of one that a context forwards; nil for none.
func HeadersOf(ctx context.Context) *Headers {
	if forwarded := Of(ctx); forwarded != nil {
		return &Headers{forwarded.Header, forwarded.KeepsKey}
	}
	headers, _ := ctx.Value(headersKey{}).(*Headers)
	return headers
}

// Apply sets the headers of the client's request in another one.
func (h *Headers) Apply(header http.Header) {
	for name, values := range h.Header {
		header[name] = values
	}
}
