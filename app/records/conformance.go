package records

import (
	_ "embed"
	"regexp"
)

//go:embed conformance.md
var conformance string

// Provision is one row of the conformance table: how the product meets a provision, and the tests that show it.
type Provision struct {
	Provision string   `json:"provision"`
	State     string   `json:"state" enum:"met,partly,open"`
	How       string   `json:"how"`
	Tests     []string `json:"tests"`
}

var (
	provisionRow = regexp.MustCompile(`(?m)^\| (P\d+) \| (met|partly|open) \| (.+) \| (.*?) ?\|$`)
	provisionRef = regexp.MustCompile("`([a-z/]+\\.Test[A-Za-z0-9]+)`")
)

// Conformance is the table of conformance.md, in the order of the provisions.
func Conformance() []Provision {
	var list []Provision
	for _, row := range provisionRow.FindAllStringSubmatch(conformance, -1) {
		p := Provision{Provision: row[1], State: row[2], How: row[3], Tests: []string{}}
		for _, test := range provisionRef.FindAllStringSubmatch(row[4], -1) {
			p.Tests = append(p.Tests, test[1])
		}
		list = append(list, p)
	}
	return list
}
