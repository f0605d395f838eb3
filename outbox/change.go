package outbox

// Change is what an observer is told after a commit: a delivery came into a state.
type Change struct {
	Tenant   TenantID
	Message  MessageID
	Type     string
	Delivery DeliveryID
	Handler  HandlerName
	State    StateName
	// Attempt tells repeats of one state apart.
	Attempt int
}
