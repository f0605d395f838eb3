package records_test

import (
	"slices"
	"testing"

	"github.com/posthorn/posthorn/app/records"
)

// TestMask holds who sees what of a payload: what is open stays as it was written, what is closed, or was never thought of, holds its class.
func TestMask(t *testing.T) {
	t.Parallel()
	order := &records.Version{Fields: map[string]records.Class{
		"order": records.Internal, "total": records.Public, "recipient": records.Personal, "recipient/country": records.Public, "card": records.Secret, "lines/*/sku": records.Internal,
	}}
	open := &records.Version{Fields: map[string]records.Class{"*": records.Internal}}
	for _, test := range []struct {
		name    string
		version *records.Version
		payload string
		binary  bool
		want    string
		masked  []string
	}{
		{"open fields", order, `{"order": 12345678901234567890.10}`, false, `{"order": 12345678901234567890.10}`, nil},
		{"closed field", order, `{"order":1.0,"card":"4111"}`, false, `{"order":1.0,"card":"[secret]"}`, []string{"/card"}},
		{"a part of a closed field", order, `{"recipient":{"name":"Ada","country":"SE"},"total":2}`, false,
			`{"recipient":{"name":"[personal]","country":"SE"},"total":2}`, []string{"/recipient/name"}},
		{"a closed object", order, `{"card":{"4111":["a",{"b":1}]},"total":2}`, false, `{"card":"[secret]","total":2}`, []string{"/card"}},
		{"elements", order, `{"lines":[{"sku":"B","to":"Ada"},{"sku":"K"}]}`, false, `{"lines":[{"sku":"B","to":"[personal]"},{"sku":"K"}]}`, []string{"/lines/0/to"}},
		{"never thought of", order, `{"phone":"1","order":true}`, false, `{"phone":"[personal]","order":true}`, []string{"/phone"}},
		{"repeated name", order, `{"card":1,"card":2}`, false, `{"card":"[secret]","card":"[secret]"}`, []string{"/card", "/card"}},
		{"no object", order, `"Ada"`, false, `"[secret]"`, []string{""}},
		{"undeclared", records.Undeclared(), `{"a@example.org":1}`, false, `"[personal]"`, []string{""}},
		{"all open", open, `{"a": {"b": [1.00, null]}}`, false, `{"a": {"b": [1.00, null]}}`, nil},
		{"all open, no object", open, `"x"`, false, `"x"`, nil},
		{"no JSON", order, "Ada", true, "", []string{""}},
		{"no JSON, all open", open, "Ada", true, "Ada", nil},
	} {
		shown, masked := test.version.Mask([]byte(test.payload), !test.binary)
		if string(shown) != test.want || !slices.Equal(masked, test.masked) && len(masked)+len(test.masked) > 0 {
			t.Errorf("%s: got %s %q, want %s %q", test.name, shown, masked, test.want, test.masked)
		}
	}
}

// TestHTML holds what a page of a record may contain: links between records, and nothing that runs.
func TestHTML(t *testing.T) {
	t.Parallel()
	set, err := records.Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	link := func(ref records.Ref) string { return "/records/" + ref.String() }
	for _, test := range []struct{ markdown, want string }{
		{"See `retry-cap`.", `<p>See <a href="/records/settings/retry-cap"><code>retry-cap</code></a>.</p>` + "\n"},
		{"`runbooks/store-outage`", `<p><a href="/records/runbooks/store-outage"><code>runbooks/store-outage</code></a></p>` + "\n"},
		{"`nobody`", "<p><code>nobody</code></p>\n"},
		{"<script>alert(1)</script>", "<!-- raw HTML omitted -->\n"},
		{"[x](javascript:alert(1))", "<p><a href=\"\">x</a></p>\n"},
		{"| a |\n|--:|\n| 1 |", "<table>\n<thead>\n<tr>\n<th align=\"right\">a</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td align=\"right\">1</td>\n</tr>\n</tbody>\n</table>\n"},
	} {
		if got, err := set.HTML(test.markdown, link); err != nil || got != test.want {
			t.Errorf("%q: got %q, %v, want %q", test.markdown, got, err, test.want)
		}
	}
}
