package records

import (
	_ "embed"
	"regexp"

	"github.com/posthorn/posthorn/app/mutants"
)

//go:embed conformance.md
var conformance string

// Provision is one row of the conformance table: how the product meets a provision, and the tests that show it.
type Provision struct {
	Provision string   `json:"provision"`
	State     string   `json:"state" enum:"met,partly,open"`
	How       string   `json:"how"`
	Tests     []string `json:"tests"`
	Mutations []string `json:"mutations" doc:"faults in the code that its tests are shown to catch; make mutants runs them"`
}

var (
	provisionRow = regexp.MustCompile(`(?m)^\| (P\d+) \| (met|partly|open) \| (.+) \| (.*?) ?\|$`)
	provisionRef = regexp.MustCompile("`([a-z/]+\\.Test[A-Za-z0-9]+)`")
)

// mutations names the faults of a provision.
func mutations(provision string) []string {
	names := []string{}
	for _, m := range mutants.Table {
		if m.Provision == provision {
			names = append(names, m.Name)
		}
	}
	return names
}

// Conformance is the table of conformance.md, in the order of the provisions.
func Conformance() []Provision {
	var list []Provision
	for _, row := range provisionRow.FindAllStringSubmatch(conformance, -1) {
		p := Provision{Provision: row[1], State: row[2], How: row[3], Tests: []string{}, Mutations: mutations(row[1])}
		for _, test := range provisionRef.FindAllStringSubmatch(row[4], -1) {
			p.Tests = append(p.Tests, test[1])
		}
		list = append(list, p)
	}
	return list
}
