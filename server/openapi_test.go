package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// apiDocument is openapi.json, ready to check answers against. Its schemas allow no members but those they
// list, so that an answer cannot have more than is documented.
type apiDocument struct {
	document map[string]any
	compiler *jsonschema.Compiler

	mu       sync.Mutex
	compiled map[string]*jsonschema.Schema // by pointer
	covered  map[string]bool               // "POST /chat success"
}

var description = sync.OnceValues(loadDescription)

func loadDescription() (*apiDocument, error) {
	data, err := openAPIDocument("test")
	if err != nil {
		return nil, err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	document := value.(map[string]any)
	closeObjects(document["paths"])
	closeObjects(document["components"])
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	if err := compiler.AddResource("mem:///openapi", document); err != nil {
		return nil, err
	}
	return &apiDocument{document: document, compiler: compiler, compiled: map[string]*jsonschema.Schema{}, covered: map[string]bool{}}, nil
}

// closeObjects forbids further members where a schema lists some and says nothing of others.
func closeObjects(value any) {
	switch value := value.(type) {
	case map[string]any:
		if value["properties"] != nil && value["type"] == "object" && value["additionalProperties"] == nil {
			value["additionalProperties"] = false
		}
		for _, member := range value {
			closeObjects(member)
		}
	case []any:
		for _, item := range value {
			closeObjects(item)
		}
	}
}

// validate checks a JSON value against the schema at a pointer into the document.
func (d *apiDocument) validate(pointer string, body []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	schema := d.compiled[pointer]
	if schema == nil {
		made, err := d.compiler.Compile("mem:///openapi#" + pointer)
		if err != nil {
			return fmt.Errorf("compile %s: %w", pointer, err)
		}
		d.compiled[pointer], schema = made, made
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// operation finds what the document says of a request, and the pointer to it.
func (d *apiDocument) operation(method, target string) (pattern, pointer string, operation map[string]any) {
	parsed, err := url.Parse(target)
	if err != nil {
		return "", "", nil
	}
	paths := d.document["paths"].(map[string]any)
	if paths[parsed.Path] != nil {
		return d.method(method, parsed.Path)
	}
	for pattern := range paths {
		if pathMatches(pattern, parsed.Path) {
			return d.method(method, pattern)
		}
	}
	return "", "", nil
}

func (d *apiDocument) method(method, pattern string) (string, string, map[string]any) {
	item := d.document["paths"].(map[string]any)[pattern].(map[string]any)
	operation, _ := item[strings.ToLower(method)].(map[string]any)
	return pattern, "/paths/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(pattern) + "/" + strings.ToLower(method), operation
}

func pathMatches(pattern, path string) bool {
	want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(have) {
		return false
	}
	for i := range want {
		if want[i] != have[i] && !strings.HasPrefix(want[i], "{") {
			return false
		}
	}
	return true
}

// checkDescribed holds an answer against the document.
func checkDescribed(t *testing.T, method, target string, answer *reply) {
	t.Helper()
	d, err := description()
	if err != nil {
		t.Fatal(err)
	}
	pattern, pointer, operation := d.operation(method, target)
	media, _, _ := strings.Cut(answer.header.Get("Content-Type"), ";")
	if operation == nil { // not a call of the API: its answer is an error all the same
		if err := d.validate("/components/schemas/Error", answer.body); err != nil {
			t.Errorf("%s %s: %v\n%s", method, target, err, answer.body)
		}
		return
	}
	status := fmt.Sprint(answer.status)
	responses := operation["responses"].(map[string]any)
	if responses[status] == nil {
		status = "default"
		if answer.status < 400 {
			t.Errorf("%s %s: the status %d is not described", method, pattern, answer.status)
			return
		}
	}
	d.recordOutcome(method+" "+pattern, answer.status)
	response := responses[status].(map[string]any)
	pointer += "/responses/" + status
	if ref, ok := response["$ref"].(string); ok {
		pointer = strings.TrimPrefix(ref, "#")
		response = d.document["components"].(map[string]any)["responses"].(map[string]any)[path.Base(ref)].(map[string]any)
	}
	content, _ := response["content"].(map[string]any)
	switch {
	case answer.status == http.StatusNoContent:
		if len(answer.body) > 0 {
			t.Errorf("%s %s: a body with status 204", method, pattern)
		}
	case content[media] == nil:
		t.Errorf("%s %s: status %d has the undescribed type %q: %s", method, pattern, answer.status, media, answer.body)
	case media == "application/json":
		if err := d.validate(pointer+"/content/application~1json/schema", answer.body); err != nil {
			t.Errorf("%s %s, status %d: %v\n%s", method, pattern, answer.status, err, answer.body)
		}
	}
}

func (d *apiDocument) recordOutcome(operation string, status int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	outcome := "success"
	if status >= 400 {
		outcome = "error"
	}
	d.covered[operation+" "+outcome] = true
}

func (d *apiDocument) has(operation, outcome string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.covered[operation+" "+outcome]
}

// The document must list exactly the calls that the server answers.
func TestOpenAPIListsTheRoutes(t *testing.T) {
	d, err := description()
	if err != nil {
		t.Fatal(err)
	}
	var want, have []string
	for pattern, item := range d.document["paths"].(map[string]any) {
		for method := range item.(map[string]any) {
			if method != "parameters" {
				have = append(have, strings.ToUpper(method)+" "+pattern)
			}
		}
	}
	s := &server{}
	for _, route := range s.routes() {
		want = append(want, route.Method+" "+route.shownPath())
	}
	slices.Sort(want)
	slices.Sort(have)
	if !slices.Equal(want, have) {
		t.Errorf("the document has\n%s\nthe server answers\n%s", strings.Join(have, "\n"), strings.Join(want, "\n"))
	}
}

// Every parameter that a path has must be described, and every description must name an operation of its own.
func TestOpenAPIIsConsistent(t *testing.T) {
	d, err := description()
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for pattern, item := range d.document["paths"].(map[string]any) {
		shared, _ := item.(map[string]any)["parameters"].([]any)
		for method, operation := range item.(map[string]any) {
			if method == "parameters" {
				continue
			}
			operation := operation.(map[string]any)
			id, _ := operation["operationId"].(string)
			if id == "" || ids[id] || operation["summary"] == nil {
				t.Errorf("%s %s: operationId %q is missing or there twice, or there is no summary", method, pattern, id)
			}
			ids[id] = true
			own, _ := operation["parameters"].([]any)
			inPath := 0
			for _, parameter := range append(slices.Clone(shared), own...) {
				if parameter := d.resolve(t, parameter.(map[string]any)); parameter["in"] == "path" {
					inPath++
				}
			}
			if want := strings.Count(pattern, "{"); inPath != want {
				t.Errorf("%s %s: %d path parameters are described, not %d", method, pattern, inPath, want)
			}
		}
	}
	for name := range d.document["components"].(map[string]any)["schemas"].(map[string]any) {
		if _, err := d.compiler.Compile("mem:///openapi#/components/schemas/" + name); err != nil {
			t.Errorf("schema %s: %v", name, err)
		}
	}
}

func (d *apiDocument) resolve(t *testing.T, value map[string]any) map[string]any {
	t.Helper()
	ref, ok := value["$ref"].(string)
	if !ok {
		return value
	}
	at := any(d.document)
	for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		at = at.(map[string]any)[name]
	}
	return at.(map[string]any)
}

func TestOpenAPIIsServed(t *testing.T) {
	handler := New(newEngine(t, withModel(&fakeModel{"gpt-4o", obedient})), Options{Version: "1.2.3"})
	var document struct {
		OpenAPI string
		Info    struct{ Title, Version string }
		Paths   map[string]json.RawMessage
	}
	ask(t, handler, "GET", "/openapi.json", "").into(200, &document)
	if document.OpenAPI != "3.1.0" || document.Info.Version != "1.2.3" || document.Paths["/chat"] == nil {
		t.Errorf("got %+v", document)
	}
}
