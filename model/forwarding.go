package model

import (
	"context"
	"net/http"

	"github.com/continuo-log/continuo/model/internal/forward"
)

// Forwarding is what the request of a client adds to its body where it is forwarded: the model then yields the bytes of
// the answer too ([Delta.Wire]), makes one attempt, and reports the upstream's status and headers.
//
//   - Header is sent with the request and replaces headers of the same name, except the upstream's configured ones.
//   - Query replaces the upstream's query, and Path the path of its endpoint below the base URL; "" keeps them. With a
//     Path, the query is replaced in every case.
//   - Other is the operation of a request that asks for no answer of a model in its protocol, such as [Embeddings]; "" for
//     one that does. The body of its answer is one delta, with the usage that it reports.
//   - KeepsKey says that Header has the client's own credentials, which are sent instead of the configured ones.
//   - Answered is called when the upstream has answered, before the first delta. Refusal is the body of an answer
//     whose status is not a success, nil for any other. It may be nil.
type Forwarding = forward.Request

// Embeddings is the operation of a request for embeddings, by its name in the conventions of OpenTelemetry.
const Embeddings = "embeddings"

// WithForwarding returns a context whose requests to a model are those of a client. It goes through all wrappers of the
// model.
func WithForwarding(ctx context.Context, request *Forwarding) context.Context {
	return forward.With(ctx, request)
}

// WithAnswered returns a context whose requests to a model report the status and the headers of each answer of an upstream,
// refusals included, before the first delta. It goes through all wrappers of the model.
func WithAnswered(ctx context.Context, answered func(status int, header http.Header)) context.Context {
	return forward.WithAnswered(ctx, answered)
}

// ForwardingOf returns the forwarding of a context; nil for none.
func ForwardingOf(ctx context.Context) *Forwarding { return forward.Of(ctx) }

// ClientHeaders are the headers of a client's request that a request has too which is built for it in the same protocol.
// KeepsKey is as in [Forwarding].
type ClientHeaders = forward.Headers

// WithClientHeaders returns a context whose requests to a model have headers of a client's. It goes through all wrappers of
// the model.
func WithClientHeaders(ctx context.Context, headers *ClientHeaders) context.Context {
	return forward.WithHeaders(ctx, headers)
}
