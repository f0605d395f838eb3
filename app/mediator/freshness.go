package mediator

// Freshness says how far an answer may be trusted (P43). Every query's output carries it.
type Freshness struct {
	// Mode is immediate or advisory.
	Mode string `json:"mode" enum:"immediate,advisory" doc:"immediate: read from what is committed. advisory: a hint; the record named by authority says who decides"`
	// Authority is the id of the record that says who decides, for an advisory answer.
	Authority string `json:"authority,omitempty"`
}

// Immediate is the freshness of an answer read from what is committed.
var Immediate = Freshness{Mode: "immediate"}
