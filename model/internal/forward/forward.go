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

// Apply sets the headers of the client's request in that of the forwarded one.
func (r *Request) Apply(header http.Header) {
	for name, values := range r.Header {
		header[name] = values
	}
}
