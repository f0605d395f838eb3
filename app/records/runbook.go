package records

// Runbook is what an operator does in a situation: its text has the exact commands.
type Runbook struct {
	Head  `yaml:",inline"`
	When  string   `yaml:"when"`  // how one notices
	Tells []string `yaml:"tells"` // the settings whose breach calls for it
}

func (r *Runbook) inspect(i *inspection) {
	i.required("when", r.When)
	i.body(r.Body, "the steps, with their commands")
}

func (r *Runbook) references() []reference { return to(KindSetting, "tells", r.Tells...) }
