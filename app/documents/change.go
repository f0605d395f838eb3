package documents

import (
	"encoding/json"
	"regexp"

	"github.com/posthorn/posthorn/app/mediator"
)

// Op is what a change does to a document.
type Op string

const (
	// Put writes the whole body.
	Put Op = "put"
	// Delete removes the document; its version is kept.
	Delete Op = "delete"
)

// Change is one change of one document.
type Change struct {
	Op         Op              `json:"op" enum:"put,delete"`
	Collection string          `json:"collection" pattern:"^[a-z][a-z0-9-]{0,62}$" example:"orders"`
	ID         string          `json:"id" pattern:"^[A-Za-z0-9._-]{1,128}$" example:"1001"`
	Body       json.RawMessage `json:"body,omitempty" doc:"put only: any JSON value, kept byte for byte"`
	IfVersion  *int64          `json:"if_version,omitempty" doc:"the version that the document must have; 0: it must not exist" minimum:"0"`
}

var (
	collectionPattern = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)
	idPattern         = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)
)

const (
	collectionForm = "must be 1 to 63 lower-case letters, digits and hyphens, a letter first"
	idForm         = "must be 1 to 128 of A-Z a-z 0-9 . _ -, and neither . nor .."
)

func validCollection(name string) bool { return collectionPattern.MatchString(name) }

// validID leaves out the two ids that no URL can name.
func validID(id string) bool { return idPattern.MatchString(id) && id != "." && id != ".." }

func (c Change) validate(path string, wrong *mediator.Violations) {
	if !validCollection(c.Collection) {
		wrong.Add(path+"/collection", collectionForm)
	}
	if !validID(c.ID) {
		wrong.Add(path+"/id", idForm)
	}
	if c.IfVersion != nil && *c.IfVersion < 0 {
		wrong.Add(path+"/if_version", "must be a version, or 0 for a document that must not exist")
	}
	switch {
	case c.Op == Put && c.Body == nil:
		wrong.Add(path+"/body", "is missing; put writes the whole document")
	case c.Op == Delete && c.Body != nil:
		wrong.Add(path+"/body", "must be left out of a delete")
	case c.Op == Delete && c.IfVersion != nil && *c.IfVersion == 0:
		wrong.Add(path+"/if_version", "must not be 0: what does not exist cannot be deleted")
	case c.Op != Put && c.Op != Delete:
		wrong.Add(path+"/op", "must be put or delete")
	}
}
