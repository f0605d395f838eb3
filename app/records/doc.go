// Package records holds the written declarations that the product lives by: use cases, journeys, integration events,
// notifications, settings, runbooks, reactions, jobs and conventions.
//
// A record is a Markdown file with YAML front matter, <kind>/<id>.md. The front matter is what the product reads, the text below it
// is what people read. The records in this folder are built in; those of <data-dir>/records overlay them, and where both have a
// record the overlay's wins as a whole.
//
//	set, err := records.Load(os.DirFS(filepath.Join(dataDir, "records")))
//	if err != nil {
//		return err // one line a problem: file, line, what is wrong, what to do
//	}
//	if err := set.Override(config.Settings); err != nil {
//		return err
//	}
//	if err := set.Check(); err != nil {
//		return err
//	}
//	timeout := set.Duration("delivery-timeout")
//
// A Set does not change after Override and is safe for concurrent use. It is read again, not mended, when a file changes. Front
// matter is read strictly: an unknown or repeated field, a wrong type, a value out of range each stop the load, so that no
// declaration is half obeyed.
package records
