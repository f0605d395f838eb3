package records

import (
	"fmt"
	"maps"
	"slices"
)

// Override is an operator's own value for a setting, in posthorn.yaml:
//
//	settings:
//	  delivery-timeout: {value: 20s, observation: "the ledger needs 16 s at month end"}
type Override struct {
	Value       Scalar `yaml:"value"`
	Observation string `yaml:"observation"` // what the value was drawn from; required, for whoever reads it next
}

// configFile is how the operator's file is named in problems.
const configFile = "posthorn.yaml"

// Override puts the operator's values over those of the records. It is called once, before the set is shared; what it refuses
// leaves the set as it was.
func (s *Set) Override(overrides map[string]Override) error {
	var problems Problems
	report := func(id, text, hint string) {
		problems = append(problems, Problem{File: configFile, Text: "settings." + id + ": " + text, Hint: hint})
	}
	changed := map[string]*Setting{}
	for _, id := range slices.Sorted(maps.Keys(overrides)) {
		override := overrides[id]
		if CheckID(id) != nil {
			report(fmt.Sprintf("%.80q", id), "there is no such setting", "posthorn settings lists them")
			continue
		}
		setting, ok := s.Setting(id)
		if !ok {
			report(id, "there is no such setting", "posthorn settings lists them")
			continue
		}
		value, err := parseQuantity(override.Value, setting.Unit)
		switch {
		case override.Value == "":
			report(id, "value is missing", "write "+setting.Unit.form())
		case err != nil:
			report(id, err.Error(), "")
		case !setting.within(value):
			report(id, setting.outside(value), "")
		case override.Observation == "":
			report(id, "observation is missing", "write in a sentence what you saw that calls for this value")
		default:
			with := *setting
			with.Value, with.Observation, with.Overridden = value, override.Observation, true
			changed[id] = &with
		}
	}
	if len(problems) == 0 {
		for _, setting := range changed {
			s.put(setting)
		}
	}
	return problems.orNil()
}
