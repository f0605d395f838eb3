package api_test

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/posthorn/posthorn/app/access"
)

// contract is what an OpenAPI document says of answers.
type contract struct {
	compiler *jsonschema.Compiler
	paths    map[string]map[string]struct {
		Responses map[string]struct {
			Content map[string]json.RawMessage
		}
	}
	compiled sync.Map // schemas by their place
}

// contracts are kept by the documents' text: nearly every bed has the same one.
var contracts sync.Map

func (b *bed) contract(t *testing.T) *contract {
	t.Helper()
	b.reads.Do(func() {
		text := b.exchange(t, b.tokens[access.Admin], "GET", "/openapi.json", "").body
		if known, ok := contracts.Load(text); ok {
			b.says = known.(*contract)
			return
		}
		c := &contract{compiler: jsonschema.NewCompiler()}
		if err := json.Unmarshal([]byte(text), &struct {
			Paths any `json:"paths"`
		}{&c.paths}); err != nil {
			t.Fatal(err)
		}
		document, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err == nil {
			err = c.compiler.AddResource("openapi.json", document)
		}
		if err != nil {
			t.Fatal(err)
		}
		kept, _ := contracts.LoadOrStore(text, c)
		b.says = kept.(*contract)
	})
	return b.says
}

// holds fails the test when an answer is not as the OpenAPI document says: a client made from the document would refuse it.
func (c *contract) holds(t *testing.T, method, target string, a answer) {
	t.Helper()
	media, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	template := c.template(target)
	status := strconv.Itoa(a.status)
	if a.status >= 400 && media == "application/problem+json" {
		template, method, status = "/healthz", "GET", "default" // each route has the same
	}
	route, known := c.paths[template][strings.ToLower(method)]
	if !known || media != "application/json" && status != "default" || route.Responses[status].Content["*/*"] != nil {
		return
	}
	if route.Responses[status].Content[media] == nil {
		t.Errorf("%s %s is answered %s with %s, of which the OpenAPI document does not know", method, target, status, media)
		return
	}
	escape := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D")
	place := "openapi.json#/paths/" + escape.Replace(template) + "/" + strings.ToLower(method) + "/responses/" + status + "/content/" + escape.Replace(media) + "/schema"
	schema, err := c.schema(place)
	if err != nil {
		t.Fatalf("%s: %v", place, err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(a.body))
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	if err := schema.Validate(value); err != nil {
		t.Errorf("%s %s is not answered as the OpenAPI document says: %v", method, target, err)
	}
	for _, found := range moments.FindAllString(a.body, -1) {
		if !written.MatchString(found) {
			t.Errorf("%s %s is answered with the time %s; times are in UTC, to the microsecond as the store keeps them", method, target, found)
		}
	}
}

var (
	moments = regexp.MustCompile(`"\d{4}-\d\d-\d\dT\d\d:[^"]*"`)
	written = regexp.MustCompile(`^"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z"$`)
)

var compiling sync.Mutex // a Compiler is not for concurrent use

func (c *contract) schema(place string) (*jsonschema.Schema, error) {
	if known, ok := c.compiled.Load(place); ok {
		return known.(*jsonschema.Schema), nil
	}
	compiling.Lock()
	defer compiling.Unlock()
	schema, err := c.compiler.Compile(place)
	if err == nil {
		c.compiled.Store(place, schema)
	}
	return schema, err
}

// template is the path of the document that a request's path fits; "" when there is none.
func (c *contract) template(target string) string {
	at, err := url.Parse(target)
	if err != nil {
		return ""
	}
	if _, literal := c.paths[at.Path]; literal {
		return at.Path
	}
	given := strings.Split(at.Path, "/")
paths:
	for template := range c.paths {
		parts := strings.Split(template, "/")
		if len(parts) != len(given) {
			continue
		}
		for i, part := range parts {
			if !strings.HasPrefix(part, "{") && part != given[i] {
				continue paths
			}
		}
		return template
	}
	return ""
}
