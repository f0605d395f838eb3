package records

import "fmt"

// Check finds what no single file shows: records that name records which do not exist, and settings that pass the setting they may
// not pass. The error is Problems.
func (s *Set) Check() error {
	var problems Problems
	for _, record := range s.All() {
		head := record.About()
		for _, reference := range record.references() {
			if _, ok := s.records[reference.to]; !ok {
				problems = append(problems, Problem{File: head.File, Line: head.document.line(reference.field),
					Text: fmt.Sprintf("%s names %s, which does not exist", reference.field, reference.to),
					Hint: fmt.Sprintf("write %s.md or name another record", reference.to)})
			}
		}
		if setting, ok := record.(*Setting); ok {
			problems = append(problems, s.checkOrder(setting)...)
		}
		if useCase, ok := record.(*UseCase); ok {
			problems = append(problems, s.checkAlerts(useCase)...)
		}
	}
	return problems.orNil()
}

// checkOrder holds a setting below the one that its record names.
func (s *Set) checkOrder(setting *Setting) Problems {
	bound, ok := s.Setting(setting.NotAbove)
	if !ok {
		return nil
	}
	problem := Problem{File: setting.File, Line: setting.document.line("not_above")}
	if setting.Overridden || bound.Overridden {
		problem.File, problem.Line = configFile, 0
	}
	switch {
	case setting.Unit != bound.Unit:
		problem.Text = fmt.Sprintf("%s is counted in %s and %s in %s", setting.ID, setting.Unit, bound.ID, bound.Unit)
		problem.Hint = "not_above compares settings of one unit"
	case setting.Value.compare(bound.Value) > 0:
		problem.Text = fmt.Sprintf("%s %s is above %s %s", setting.ID, setting.Value, bound.ID, bound.Value)
		problem.Hint = fmt.Sprintf("lower %s or raise %s", setting.ID, bound.ID)
	default:
		return nil
	}
	return Problems{problem}
}
