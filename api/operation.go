package api

import (
	"context"
	"net/http"
	"reflect"

	continuo "github.com/continuo-log/continuo"
)

// Operation is one operation of the API: what adapters need in order to offer it, and what the OpenAPI document says of
// it. The document's description of the operation is the doc comment of the method of [Service] that has its ID, without
// the first paragraph.
type Operation struct {
	ID, Method, Path string
	Tag              string // its group in the OpenAPI document
	Summary          string // in lower case: the index page and the OpenAPI document show it
	Description      string // of an operation that has no method
	// Answers are the documented answers. Every operation has the answer default besides.
	Answers []Answer
	// Body are the media types of a body that is not read by the tags of the input. Default: what the tags say.
	Body []Media
	// AnyText says that the body may have escapes that are half of a character.
	AnyText bool
	// Example is an example of the body, in JSON.
	Example string
	// NeedsBody says that a body is required although no single member is.
	NeedsBody bool
	// Public says that the operation needs no API key.
	Public bool
	// AnyQuery says that the operation ignores its query.
	AnyQuery bool
	// Probe says that the operation is for monitors: any query, any name of the server and any key will do.
	Probe bool
	// Figures says that the answer is about the whole server: only a key of the server's own project that no user is bound
	// to may have it.
	Figures bool

	// Unbound says that the answer is about all users of the project: only a key that no user is bound to may have it.
	Unbound bool

	in, out reflect.Type
	binding *binding
	run     func(ctx context.Context, scope continuo.Scope, in any) (any, error)
}

// Answer is one documented answer of an operation.
type Answer struct {
	Status      int // 0: the default
	Description string
	// Ref names one of SharedAnswers that this one is, in place of everything else.
	Ref string
	// Media are the media types. Default: application/json with the operation's output or, from status 400 on, an error.
	Media []Media
}

// Media is a media type of an answer.
type Media struct {
	Type string
	// Schema is the Go type of the value. Default nil: text.
	Schema reflect.Type
	// AnyOf are the Go types of the alternatives, in place of Schema.
	AnyOf []reflect.Type
}

// JSON is the media type of nearly all bodies.
const JSON = "application/json"

// None is the output of an operation that answers without a body.
type None struct{}

// Statuser is implemented by outputs that determine the HTTP status of their answer.
type Statuser interface{ HTTPStatus() int }

// Former is implemented by outputs whose JSON is that of another type.
type Former interface{ Form() reflect.Type }

// JSONWriter is implemented by outputs that write their JSON themselves, as it is sent.
type JSONWriter interface{ WriteJSON() []byte }

// TextWriter is implemented by outputs that are text for clients that do not ask for JSON.
type TextWriter interface{ WriteText() []byte }

// define makes a row of the table: an operation with its function, which may be nil for one that the adapter carries out.
func define[In, Out any](row Operation, run func(context.Context, continuo.Scope, In) (Out, error)) Operation {
	row.in, row.out = reflect.TypeFor[In](), reflect.TypeFor[Out]()
	if f, ok := any(*new(Out)).(Former); ok {
		row.out = f.Form()
	}
	row.binding = bind(row.in)
	if run != nil {
		row.run = func(ctx context.Context, scope continuo.Scope, in any) (any, error) {
			return run(ctx, scope, *in.(*In))
		}
	}
	return row
}

// Types returns the Go types of the operation's input and output.
func (o Operation) Types() (in, out reflect.Type) { return o.in, o.out }

// Inputs describes the members of the operation's input, in order.
func (o Operation) Inputs() []Input { return o.binding.inputs }

// Decode reads the input of a request: a pointer to the operation's input type.
func (o Operation) Decode(r Request) (any, error) {
	if o.AnyQuery || o.Probe {
		return reflect.New(o.in).Interface(), nil
	}
	return o.binding.decode(r)
}

// Adapted reports whether the adapter carries out the operation: it has no function that Run could call.
func (o Operation) Adapted() bool { return o.run == nil }

// Run carries out an operation with what Decode returned.
func (o Operation) Run(ctx context.Context, scope continuo.Scope, in any) (any, error) {
	return o.run(ctx, scope, in)
}

// Status is the HTTP status of an answer with an output: the first documented one, unless the output determines it.
func (o Operation) Status(out any) int {
	if s, ok := out.(Statuser); ok {
		return s.HTTPStatus()
	}
	return o.Answers[0].Status
}

// answers lists answers, the successful one first.
func answers(all ...Answer) []Answer { return all }

func ok(description string) Answer { return Answer{Status: http.StatusOK, Description: description} }

func created(description string) Answer {
	return Answer{Status: http.StatusCreated, Description: description}
}

// as is an answer with other media types than JSON.
func (a Answer) as(media ...Media) Answer {
	a.Media = media
	return a
}

// accepted is the answer to a change that another process carries out a moment later.
func accepted(description string) Answer {
	return Answer{Status: http.StatusAccepted, Description: description}
}

// failing is the answer of a failed operation whose status has a meaning of its own.
func failing(status int, description string) Answer {
	return Answer{Status: status, Description: description}
}
