// Package api defines the operations that Continuo offers, once for every adapter: the types of their inputs and outputs,
// one function each, and one table of errors.
//
// [Service.Operations] is the table. An adapter decodes a request with [Operation.Decode], which reads the input type by
// its struct tags (see [Input]), and calls [Operation.Run]. The OpenAPI document that the HTTP server serves is generated
// from the table, the types and their doc comments: go generate writes it, and a test fails while it is out of date.
//
// [ProblemOf] maps an error to what a client sees; [KindOf] finds its row in the table of errors, which determines the
// code, the HTTP status and the exit code.
//
// Pitfalls: the doc comments of the types here, and of the types of other packages that they contain, are the
// descriptions of the public document. A member without omitempty or omitzero is a required member of its schema.
package api

//go:generate go run ../internal/apigen
//go:generate go run ../internal/clientgen

import (
	"context"

	"github.com/continuo-log/continuo/audit"
	"github.com/continuo-log/continuo/engine"
)

// Service carries out the operations. It is safe for concurrent use.
type Service struct {
	Engine  *engine.Engine
	Version string // of the program
	// Diagnose makes the report of GET /api/health.
	Diagnose func(context.Context) (HealthReport, error)
	// Audit is what GET /api/audit reads. Default: nothing is recorded.
	Audit *audit.Trail
}
