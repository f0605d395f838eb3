package records

// Record is one declaration: a *UseCase, *Journey, *IntegrationEvent, *Notification, *Setting, *Runbook, *Reaction, *Job or
// *Convention.
//
//sumtype:decl
type Record interface {
	// About is what every record has.
	About() *Head
	// inspect reports what strict decoding does not see.
	inspect(*inspection)
	// references lists the records that this one names.
	references() []reference
}

// Origin is where a record comes from.
type Origin string

// The origins of a record.
const (
	BuiltIn Origin = "built-in" // embedded in the binary
	Overlay Origin = "overlay"  // a file in <data-dir>/records
)

// Head is what every record has.
type Head struct {
	Title string `yaml:"title"`

	Kind   Kind   `yaml:"-"`
	ID     string `yaml:"-"`
	Origin Origin `yaml:"-"`
	File   string `yaml:"-"` // "settings/retry-cap.md", below the folder of its origin
	Text   string `yaml:"-"` // the file as it was read
	Body   string `yaml:"-"` // the Markdown below the front matter

	document *document
}

// About returns the head itself, so that each record has it through embedding.
func (h *Head) About() *Head { return h }

// Ref is the record's own reference.
func (h *Head) Ref() Ref { return Ref{Kind: h.Kind, ID: h.ID} }

// reference is a mention of another record, and the field that makes it.
type reference struct {
	field string
	to    Ref
}

// to builds the references of a field that names records of one kind; an empty id names nothing.
func to(kind Kind, field string, ids ...string) []reference {
	var list []reference
	for _, id := range ids {
		if id != "" {
			list = append(list, reference{field: field, to: Ref{Kind: kind, ID: id}})
		}
	}
	return list
}

// readRecord reads one file as a record of a kind.
func readRecord(kind Kind, id string, origin Origin, file string, text []byte) (Record, error) {
	if err := CheckID(id); err != nil {
		return nil, Problems{{File: file, Text: err.Error(), Hint: "rename the file"}}
	}
	doc, err := readDocument(file, text)
	if err != nil {
		return nil, err
	}
	record := kind.blank()
	if err := doc.decode(record); err != nil {
		return nil, err
	}
	head := record.About()
	head.Kind, head.ID, head.Origin, head.File = kind, id, origin, file
	head.Text, head.Body, head.document = string(text), doc.body, doc
	check := &inspection{document: doc}
	check.required("title", head.Title)
	record.inspect(check)
	if len(check.problems) > 0 {
		return nil, check.problems
	}
	return record, nil
}
