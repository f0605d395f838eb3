package records_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/posthorn/posthorn/app/records"
)

const eventFile = "integration-events/order-placed.md"

// eventText is a sound event whose only version has these lines, indented below it.
func eventText(lines ...string) string {
	return `---
title: An order was placed
direction: outbound
trust: authoritative
guarantee: at-least-once
boundary: the receiver's 2xx status line
duplicates: the receiver keeps the ids it handled
retry_horizon: retry-horizon
runbook: recover-dead-letters
versions:
  - version: 1
    ` + strings.Join(lines, "\n    ") + "\n---\n"
}

func order(t *testing.T, lines ...string) *records.IntegrationEvent {
	t.Helper()
	set := mustLoad(t, map[string]string{eventFile: eventText(lines...)})
	event, ok := set.IntegrationEvent("order-placed")
	if !ok {
		t.Fatal("order-placed is not declared")
	}
	return event
}

func TestValidate(t *testing.T) {
	t.Parallel()
	event := order(t,
		`fields: {"*": internal}`,
		`schema:`,
		`  type: object`,
		`  required: [id, lines]`,
		`  additionalProperties: false`,
		`  properties:`,
		`    id: {type: string, minLength: 1, maxLength: 8, pattern: "^[a-z0-9]+$"}`,
		`    placed: {type: string, format: date-time}`,
		`    total: {type: integer, minimum: 1, maximum: 9007199254740993}`,
		`    price: {type: number, multipleOf: 0.01}`,
		`    state: {enum: [open, paid]}`,
		`    "a/b": {type: "null"}`,
		`    lines: {type: array, minItems: 1, items: {type: object, properties: {count: {type: integer}}}}`,
		`    payer: {anyOf: [{type: string}, {type: object}]}`)
	for name, test := range map[string]struct {
		payload string
		want    string // "" for sound
	}{
		"sound":             {`{"id":"a1","lines":[{"count":1}],"placed":"2026-01-02T03:04:05+02:00"}`, ""},
		"exact large":       {`{"id":"a1","lines":[{}],"total":9007199254740993}`, ""},
		"one above":         {`{"id":"a1","lines":[{}],"total":9007199254740994}`, "/total must be at most 9007199254740993"},
		"exact decimal":     {`{"id":"a1","lines":[{}],"price":123456789012345678.99}`, ""},
		"too exact":         {`{"id":"a1","lines":[{}],"price":123456789012345678.999}`, "/price must be a multiple of 0.01"},
		"missing":           {`{"id":"a1"}`, "/lines is missing"},
		"nested type":       {`{"id":"a1","lines":[{"count":1},{"count":"hidden-4711"}]}`, "/lines/1/count must be integer"},
		"undeclared":        {`{"id":"a1","lines":[{}],"extra":"hidden-4711"}`, "/extra is not declared"},
		"wrong case":        {`{"ID":"a1","id":"a1","lines":[{}]}`, "/ID is not declared"},
		"pattern":           {`{"id":"HIDDEN-4","lines":[{}]}`, "/id must match"},
		"too long":          {`{"id":"hidden4711x","lines":[{}]}`, "/id must have at most 8 characters"},
		"too few":           {`{"id":"a1","lines":[]}`, "/lines must have at least 1 elements"},
		"enum":              {`{"id":"a1","lines":[{}],"state":"hidden-4711"}`, "/state must be one of the declared values"},
		"format":            {`{"id":"a1","lines":[{}],"placed":"hidden-4711"}`, "/placed must be a valid date-time"},
		"alternatives":      {`{"id":"a1","lines":[{}],"payer":4711}`, "/payer must match one of the declared alternatives"},
		"escaped name":      {`{"id":"a1","lines":[{}],"a/b":4711}`, "/a~1b must be null"},
		"forged name":       {`{"id":"a1","lines":[{}],"x\ny":4711}`, `/x\ny is not declared`},
		"no object":         {`"hidden-4711"`, "the payload must be object"},
		"repeated name":     {`{"id":"a1","lines":[{"count":"hidden-4711","count":1}]}`, "/lines/0/count must be there once"},
		"no JSON":           {`{"id":hidden-4711}`, "the payload must be JSON; it breaks off or goes wrong at byte 7"},
		"two values":        {`{"id":"a1","lines":[{}]} {}`, "the payload must be JSON"},
		"empty":             {``, "the payload must be JSON"},
		"no UTF-8":          {"{\"id\":\"\xff\"}", "the payload must be UTF-8"},
		"huge exponent":     {`{"id":"a1","lines":[{}],"total":1e1000001}`, "/total must be a number of at most 6144 digits"},
		"large exponent":    {`{"id":"a1","lines":[{}],"total":1e999999}`, "/total must be a number of at most 6144 digits"},
		"small exponent":    {`{"id":"a1","lines":[{}],"total":1E-99999999999999999999}`, "/total must be a number of at most 6144 digits"},
		"many digits":       {`{"id":"a1","lines":[{}],"total":1` + strings.Repeat("0", 7000) + `}`, "/total must be a number of at most 6144 digits"},
		"deep":              {strings.Repeat("[", 9000) + strings.Repeat("]", 9000), "the payload must be object"},
		"deeper than JSON":  {strings.Repeat("[", 100_000), "the payload must be JSON"},
		"deep fault":        {strings.Repeat("[", 9000) + "1e99999" + strings.Repeat("]", 9000), "/0/0/…"},
		"a large long name": {`{"id":"a1","lines":[{}],"` + strings.Repeat("n", 5000) + `":1}`, strings.Repeat("n", 64) + "… is not declared"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := event.Validate(1, []byte(test.payload))
			if test.want == "" {
				if err != nil {
					t.Errorf("validate: %v", err)
				}
				return
			}
			var invalid *records.PayloadError
			if !errors.As(err, &invalid) {
				t.Fatalf("got %v, want a PayloadError", err)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %q, want %q", err, test.want)
			}
			for _, received := range []string{"4711", "hidden", "HIDDEN"} {
				if strings.Contains(err.Error(), received) {
					t.Errorf("%q holds a received value", err)
				}
			}
			if len(err.Error()) > 600 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestValidateVersions(t *testing.T) {
	t.Parallel()
	event := order(t, `fields: {"*": internal}`)
	if err := event.Validate(1, []byte("any bytes \xff")); err != nil {
		t.Errorf("a version without schema refuses: %v", err)
	}
	if err := event.Validate(2, []byte("{}")); !errors.Is(err, records.ErrNoVersion) {
		t.Errorf("version 2: got %v, want ErrNoVersion", err)
	}
}

func TestManyViolationsAreBounded(t *testing.T) {
	t.Parallel()
	event := order(t, `fields: {"*": internal}`, `schema: {type: array, items: {type: string}}`)
	var invalid *records.PayloadError
	if err := event.Validate(1, []byte("["+strings.Repeat("1,", 10_000)+"1]")); !errors.As(err, &invalid) {
		t.Fatalf("got %v, want a PayloadError", err)
	}
	if len(invalid.Violations) != 20 || !strings.HasSuffix(invalid.Error(), "; and 17 more") {
		t.Errorf("%d violations: %v", len(invalid.Violations), invalid)
	}
}

func TestIntegrationEventsAreChecked(t *testing.T) {
	t.Parallel()
	secret := t.TempDir() + "/secret.json"
	for name, test := range map[string]struct {
		lines []string
		line  int
		words []string
	}{
		"no fields":    {[]string{"schema: {type: object}"}, 11, []string{"fields is missing", `"*"`}},
		"wrong class":  {[]string{"fields: {id: private}"}, 12, []string{"private", "public, internal, personal or secret"}},
		"wrong path":   {[]string{"fields: {/id: public}"}, 12, []string{"/id", "is no path"}},
		"unclassified": {[]string{"fields: {id: public}", "schema: {properties: {id: {}, name: {properties: {first: {}}}}}"}, 12, []string{"name/first", "no classification"}},
		"bad schema":   {[]string{`fields: {"*": internal}`, "schema: {type: strnig}"}, 13, []string{"schema", "/type"}},
		"bad pattern":  {[]string{`fields: {"*": internal}`, `schema: {pattern: "("}`}, 13, []string{"schema"}},
		"outside":      {[]string{`fields: {"*": internal}`, "schema: {$ref: 'file://" + secret + "'}"}, 13, []string{"schema"}},
		"twice":        {[]string{`fields: {"*": internal}`, "schema: {type: object}\n  - version: 1\n    fields: {x: public}"}, 14, []string{"declared twice"}},
		"version 0":    {[]string{`fields: {"*": internal}`, "schema: {type: object}\n  - version: 0\n    fields: {x: public}"}, 14, []string{"from 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, map[string]string{eventFile: eventText(test.lines...)})
			wantProblem(t, err, eventFile, test.line, test.words...)
		})
	}
}

func TestClass(t *testing.T) {
	t.Parallel()
	event := order(t, `fields: {"id": public, "payer": personal, "payer/country": internal, "lines/*/note": secret, "lines/*": internal, "*/0/note": public}`)
	version, _ := event.Version(1)
	for path, want := range map[string]records.Class{
		"id":              records.Public,
		"payer":           records.Personal,
		"payer/name":      records.Personal,
		"payer/country":   records.Internal,
		"lines/3/note":    records.Secret,
		"lines/3/count":   records.Internal,
		"lines/0/note":    records.Secret,
		"nobody-named-it": records.Personal,
	} {
		if got := version.Class(strings.Split(path, "/")...); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
}

// TestAnEventSaysHowItIsDelivered takes away one by one what a delivery specification has to say (P3).
func TestAnEventSaysHowItIsDelivered(t *testing.T) {
	t.Parallel()
	whole := eventText(`fields: {"*": internal}`)
	for _, field := range []string{"direction", "trust", "guarantee", "boundary", "duplicates", "retry_horizon", "runbook"} {
		var lines []string
		for line := range strings.Lines(whole) {
			if !strings.HasPrefix(line, field+":") {
				lines = append(lines, line)
			}
		}
		if _, err := load(t, map[string]string{eventFile: strings.Join(lines, "")}); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("without %s: %v", field, err)
		}
	}
}
