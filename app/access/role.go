package access

// Role is what a principal may do: each role may do all that the one before it may.
type Role string

// The roles, from the least to the most.
const (
	// Viewer reads.
	Viewer Role = "viewer"
	// Operator also stages, changes documents, replays, pauses and resumes.
	Operator Role = "operator"
	// Admin also manages destinations and API tokens.
	Admin Role = "admin"
)

// Roles lists the roles from the least to the most.
func Roles() []Role { return []Role{Viewer, Operator, Admin} }

// Allows says whether the role includes what least may do. A role that is none allows nothing.
func (r Role) Allows(least Role) bool {
	return least.rank() > 0 && r.rank() >= least.rank()
}

func (r Role) rank() int {
	switch r {
	case Viewer:
		return 1
	case Operator:
		return 2
	case Admin:
		return 3
	}
	return 0
}
