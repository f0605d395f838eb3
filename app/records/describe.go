package records

import "github.com/goccy/go-yaml"

// Mention is a reference from one record to another, and the field that makes it.
type Mention struct {
	Field string `json:"field"`
	Kind  Kind   `json:"kind"`
	ID    string `json:"id"`
	Title string `json:"title"`
}

// References lists the records that a record names.
func (s *Set) References(record Record) []Mention {
	list := []Mention{}
	for _, reference := range record.references() {
		list = append(list, s.mention(reference.field, reference.to))
	}
	return list
}

// ReferencedBy lists the records that name a record.
func (s *Set) ReferencedBy(ref Ref) []Mention {
	list := []Mention{}
	for _, record := range s.All() {
		for _, reference := range record.references() {
			if reference.to == ref {
				list = append(list, s.mention(reference.field, record.About().Ref()))
			}
		}
	}
	return list
}

func (s *Set) mention(field string, ref Ref) Mention {
	m := Mention{Field: field, Kind: ref.Kind, ID: ref.ID}
	if record, ok := s.records[ref]; ok {
		m.Title = record.About().Title
	}
	return m
}

// FrontMatter is the front matter as JSON, its fields in the order of the file.
func (h *Head) FrontMatter() ([]byte, error) { return yaml.YAMLToJSON(h.document.front) }

// Source says where a setting's value comes from.
type Source string

// The sources of a value.
const (
	FromBuiltIn  Source = "built-in" // the record in the program
	FromFile     Source = "file"     // a record of <data-dir>/records
	FromOverride Source = "override" // settings: in posthorn.yaml
)

// Source is where the value in effect comes from.
func (s *Setting) Source() Source {
	switch {
	case s.Overridden:
		return FromOverride
	case s.Origin == Overlay:
		return FromFile
	default:
		return FromBuiltIn
	}
}

// SettingView is a setting as callers see it.
type SettingView struct {
	ID          string `json:"id"`
	Title       string `json:"title"`
	Value       string `json:"value" doc:"in effect"`
	Unit        Unit   `json:"unit" enum:"duration,bytes,count,ratio,per-second"`
	Least       string `json:"least"`
	Most        string `json:"most"`
	NotAbove    string `json:"not_above,omitempty" doc:"another setting whose value this one may not pass"`
	Default     string `json:"default" doc:"what the record has"`
	Source      Source `json:"source" enum:"built-in,file,override" doc:"the program, a record of the data folder, or settings in posthorn.yaml"`
	DerivedFrom string `json:"derived_from" doc:"the record of what it serves"`
	Observation string `json:"observation" doc:"what the value was drawn from"`
}

// View shows the setting.
func (s *Setting) View() SettingView {
	return SettingView{ID: s.ID, Title: s.Title, Value: s.Value.String(), Unit: s.Unit, Least: s.Least.String(), Most: s.Most.String(), NotAbove: s.NotAbove,
		Default: s.Default.String(), Source: s.Source(), DerivedFrom: s.DerivedFrom, Observation: s.Observation}
}
