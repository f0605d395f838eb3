package records

// Job is what the product does at a time rather than in answer to somebody.
type Job struct {
	Head      `yaml:",inline"`
	Exclusion `yaml:",inline"`
	Schedule  string `yaml:"schedule"`
}

func (j *Job) inspect(i *inspection) {
	i.required("schedule", j.Schedule)
	j.Exclusion.inspect(i)
}

func (j *Job) references() []reference { return nil }
