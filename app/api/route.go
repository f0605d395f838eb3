package api

import (
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

var root = &url.URL{Path: "/"}

var notFound = &Problem{Status: http.StatusNotFound, Code: "not-found", Detail: "There is nothing at this path.", Hint: "/openapi.json lists what there is."}

// operation describes a route.
type operation struct {
	method, path         string
	summary, description string
	tag                  string
	query                []parameter
	// keyed: it takes an Idempotency-Key.
	keyed bool
	// optionalBody: the body may be left out.
	optionalBody bool
	// stages: it stages messages, which a disk that is nearly full has no room for.
	stages bool
	// public: it is reached without a principal.
	public bool
	// most bounds its body, in bytes. Defaults to the setting body-limit.
	most int64
	// status is that of success. Defaults to 200.
	status int
	// also are other statuses with a body of the same form.
	also []int
}

// parameter is one of the query. Every route refuses those that it does not have.
type parameter struct{ name, description string }

// nothing is the body of a route that takes none.
type nothing struct{}

// bytesOf is the answer of a route that writes no JSON.
type bytesOf struct{}

var tenantParameter = parameter{"tenant", "the caller's own tenant; the machine's own user may name another"}

// add serves an operation. In is its body, Out what it answers, both for the OpenAPI document as well.
func add[In any, Out any](s *server, op operation, serve func(x *exchange, in In) (reply, error)) {
	document[In, Out](s, &op)
	decodable(reflect.TypeFor[In]())
	hasBody := reflect.TypeFor[In]() != reflect.TypeFor[nothing]()
	described := &huma.Operation{Method: op.method, Path: op.path}
	s.huma.Adapter().Handle(described, func(c huma.Context) {
		r, w := humago.Unwrap(c)
		x := &exchange{Request: r, w: w, api: s}
		answer, err := func() (answer reply, err error) {
			var in In
			if op.stages {
				if err := s.Intake(); err != nil {
					return answer, err
				}
			}
			if err := x.readQuery(op.query); err != nil {
				return answer, err
			}
			if x.query.Has("tenant") && slices.Contains(op.query, tenantParameter) {
				tenant := x.query.Get("tenant")
				if err := x.actFor(&tenant); err != nil {
					return answer, err
				}
			}
			if hasBody && (!op.optionalBody || r.ContentLength != 0) {
				defer func() { x.room.leave() }()
				if err := x.readBody(op.most, op.public); err != nil {
					return answer, err
				}
				if err := decode(x.body, &in); err != nil {
					return answer, err
				}
			}
			return serve(x, in)
		}()
		if err != nil {
			s.fail(w, r, err)
			return
		}
		x.write(answer)
	})
	s.methods[op.path] = append(s.methods[op.path], op.method)
	if op.public {
		s.public[op.method+" "+op.path] = true
	}
}

// fail answers an error.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	problem, expected := problemOf(err)
	switch {
	case r.Context().Err() != nil && !expected:
		problem = &Problem{Status: http.StatusServiceUnavailable, Code: "cancelled", Detail: "The request ended before it was answered.", Hint: "Send it again, with the same Idempotency-Key."}
	case !expected, problem.Status == http.StatusInternalServerError:
		s.Logger.Error("request failed", "request_id", w.Header().Get(requestIDHeader), "error", err)
	}
	problem.write(w)
}

// allowed writes methods as the Allow header does. Where there is GET, net/http serves HEAD too.
func allowed(methods []string) string {
	if slices.Contains(methods, http.MethodGet) {
		methods = append(slices.Clone(methods), http.MethodHead)
	}
	slices.Sort(methods)
	return strings.Join(slices.Compact(methods), ", ")
}

// describe begins the OpenAPI document.
func (s *server) describe() *huma.OpenAPI {
	version := s.Version
	if version == "" {
		version = "dev"
	}
	registry := huma.NewMapRegistry("#/components/schemas/", schemaName)
	registry.Schema(reflect.TypeFor[Problem](), true, "Problem") // refused names it
	return &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{Title: "Posthorn", Version: version,
			Description: "Durable and live delivery. Every refusal is application/problem+json with a stable code; lists are read by cursor; times are RFC 3339; a duration is text with its unit where it is set (15s), and a number with _seconds in its name where it is told."},
		Components: &huma.Components{Schemas: registry, SecuritySchemes: map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer"}}},
		Security:   []map[string][]string{{"token": {}}},
	}
}

// schemaName tells types of one name in different packages apart: Page of documents is DocumentsPage.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	path := t.PkgPath()
	module := path[strings.LastIndexByte(path, '/')+1:]
	if module == "" || module == "api" {
		return name
	}
	return strings.ToUpper(module[:1]) + module[1:] + strings.ToUpper(name[:1]) + name[1:]
}

// document enters an operation into the OpenAPI document.
func document[In any, Out any](s *server, op *operation) {
	if op.status == 0 {
		op.status = http.StatusOK
	}
	registry := s.huma.OpenAPI().Components.Schemas
	schema := func(t reflect.Type) *huma.Schema { return huma.SchemaFromType(registry, t) }
	entry := &huma.Operation{
		OperationID: strings.ToLower(op.method) + strings.NewReplacer("/", "-", "{", "", "}", "", ".", "-").Replace(op.path),
		Method:      op.method, Path: op.path, Summary: op.summary, Description: op.description, Tags: []string{op.tag},
		Responses: map[string]*huma.Response{
			"default": refused(),
		},
	}
	if op.public {
		entry.Security = []map[string][]string{}
	}
	for _, part := range strings.Split(op.path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			entry.Parameters = append(entry.Parameters, &huma.Param{Name: strings.TrimSuffix(name, "}"), In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}})
		}
	}
	for _, p := range op.query {
		kind := huma.TypeString
		if p.name == "limit" {
			kind = huma.TypeInteger
		}
		entry.Parameters = append(entry.Parameters, &huma.Param{Name: p.name, In: "query", Description: p.description, Schema: &huma.Schema{Type: kind}})
	}
	if op.keyed {
		entry.Parameters = append(entry.Parameters, &huma.Param{Name: "Idempotency-Key", In: "header", Schema: &huma.Schema{Type: huma.TypeString},
			Description: "1 to 200 printable characters; the same request under the same key is answered like the first time, with Idempotency-Replayed: true"})
	}
	if in := reflect.TypeFor[In](); in != reflect.TypeFor[nothing]() {
		entry.RequestBody = &huma.RequestBody{Required: !op.optionalBody, Content: map[string]*huma.MediaType{"application/json": {Schema: schema(in)}}}
	}
	var content map[string]*huma.MediaType
	switch out := reflect.TypeFor[Out](); out {
	case reflect.TypeFor[nothing]():
	case reflect.TypeFor[bytesOf]():
		content = map[string]*huma.MediaType{"*/*": {}}
	default:
		content = map[string]*huma.MediaType{"application/json": {Schema: schema(out)}}
	}
	for _, status := range append([]int{op.status}, op.also...) {
		entry.Responses[strconv.Itoa(status)] = &huma.Response{Description: http.StatusText(status), Content: content}
	}
	s.huma.OpenAPI().AddOperation(entry)
}
