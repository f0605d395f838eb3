package records

import (
	"fmt"
	"time"
)

// Setting is one bound or default of the product: its value, the range that is safe, what it follows from and what was seen.
type Setting struct {
	Head        `yaml:",inline"`
	RawValue    Scalar `yaml:"value"`
	Unit        Unit   `yaml:"unit"`
	RawLeast    Scalar `yaml:"least"`
	RawMost     Scalar `yaml:"most"`
	NotAbove    string `yaml:"not_above"`    // another setting whose value this one may not pass
	DerivedFrom string `yaml:"derived_from"` // the target that it serves, "use-cases/change-documents"
	Observation string `yaml:"observation"`  // what the value was drawn from
	// Measures makes the setting the threshold of an alert: what is compared with it.
	Measures Measure `yaml:"measures"`

	Value   Quantity `yaml:"-"` // in effect
	Least   Quantity `yaml:"-"`
	Most    Quantity `yaml:"-"`
	Default Quantity `yaml:"-"` // as the record file has it
	// Overridden says that Value and Observation come from the configuration file.
	Overridden bool `yaml:"-"`

	derivedFrom Ref
}

func (s *Setting) inspect(i *inspection) {
	oneOf(i, "unit", s.Unit, Duration, Bytes, Count, Ratio, Rate)
	i.required("observation", s.Observation)
	i.id("not_above", s.NotAbove)
	s.Measures.inspect(i, s.Unit)
	s.derivedFrom = i.ref("derived_from", s.DerivedFrom, KindUseCase, KindJourney, KindNotification, KindJob, KindConvention, KindSetting)
	if s.Unit.form() == "" {
		return
	}
	sound := true
	read := func(field string, raw Scalar) Quantity {
		quantity, err := parseQuantity(raw, s.Unit)
		if raw == "" {
			i.required(field, "")
			sound = false
		} else if err != nil {
			i.report(field, field+" "+err.Error(), "")
			sound = false
		}
		return quantity
	}
	s.Value, s.Least, s.Most = read("value", s.RawValue), read("least", s.RawLeast), read("most", s.RawMost)
	s.Default = s.Value
	if !sound {
		return
	}
	if s.Least.compare(s.Most) > 0 {
		i.report("least", fmt.Sprintf("least %s is above most %s", s.Least, s.Most), "")
		return
	}
	if !s.within(s.Value) {
		i.report("value", s.outside(s.Value), "")
	}
}

func (s *Setting) references() []reference {
	list := to(KindSetting, "not_above", s.NotAbove)
	return append(list, reference{field: "derived_from", to: s.derivedFrom})
}

func (s *Setting) within(value Quantity) bool {
	return s.Least.compare(value) <= 0 && value.compare(s.Most) <= 0
}

func (s *Setting) outside(value Quantity) string {
	return fmt.Sprintf("%s %s is out of range: at least %s, at most %s", s.ID, value, s.Least, s.Most)
}

// Duration reads a setting counted in time. Like Bytes, Int, Ratio and Rate it panics when no built-in record declares a setting of
// that name and unit: the names stand in the code, so that is a mistake in the program, and it shows at the first start.
func (s *Set) Duration(id string) time.Duration { return time.Duration(s.value(id, Duration).whole) }

// Bytes reads a setting counted in bytes.
func (s *Set) Bytes(id string) int64 { return s.value(id, Bytes).whole }

// Int reads a setting that is a count.
func (s *Set) Int(id string) int { return int(s.value(id, Count).whole) }

// Ratio reads a setting that is a part of a whole, 20% as 0.2.
func (s *Set) Ratio(id string) float64 { return s.value(id, Ratio).real }

// Rate reads a setting counted for each second; what 0 means, its record says.
func (s *Set) Rate(id string) float64 { return s.value(id, Rate).real }

func (s *Set) value(id string, unit Unit) Quantity {
	setting, ok := s.Setting(id)
	if !ok {
		panic(fmt.Sprintf("records: no setting %q is declared; write app/records/settings/%s.md", id, id))
	}
	if setting.Unit != unit {
		panic(fmt.Sprintf("records: setting %q is read as %s but declared in %s", id, unit, setting.Unit))
	}
	return setting.Value
}
