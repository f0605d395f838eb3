package records

import (
	"fmt"
	"regexp"
)

// Convention is a habit of the project that a provision leaves to it, with the reason.
type Convention struct {
	Head       `yaml:",inline"`
	Provisions []string `yaml:"provisions"` // P1 to P56
	Replaces   bool     `yaml:"replaces"`   // the project does it another way than the provision's default
	Choice     string   `yaml:"choice"`
	Reason     string   `yaml:"reason"`
}

var provisionForm = regexp.MustCompile(`\AP([1-9]|[1-4][0-9]|5[0-6])\z`)

func (c *Convention) inspect(i *inspection) {
	if len(c.Provisions) == 0 {
		i.report("provisions", "provisions is missing", "name the provisions that it answers, such as [P50]")
	}
	for _, provision := range c.Provisions {
		if !provisionForm.MatchString(provision) {
			i.report("provisions", fmt.Sprintf("%.20q is no provision", provision), "they are P1 to P56")
		}
	}
	i.required("choice", c.Choice)
	i.required("reason", c.Reason)
}

func (c *Convention) references() []reference { return nil }
