package records

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

//go:embed */*.md
var builtIn embed.FS

// Set is every record in effect.
type Set struct {
	records map[Ref]Record
}

// Load reads the built-in records and, over them, those of the overlay, which is <data-dir>/records; nil or a folder that does not
// exist has none. The error is Problems when files are wrong.
func Load(overlay fs.FS) (*Set, error) {
	set := &Set{records: map[Ref]Record{}}
	var problems Problems
	if err := set.read(builtIn, BuiltIn, &problems); err != nil {
		return nil, fmt.Errorf("read built-in records: %w", err)
	}
	if overlay != nil {
		if err := set.read(overlay, Overlay, &problems); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read records: %w", err)
		}
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return set, nil
}

// read adds the records of one file tree.
func (s *Set) read(files fs.FS, origin Origin, problems *Problems) error {
	folders, err := fs.ReadDir(files, ".")
	if err != nil {
		return err
	}
	for _, folder := range folders {
		kind := Kind(folder.Name())
		if hidden(folder.Name()) {
			continue
		}
		if kind.blank() == nil {
			*problems = append(*problems, Problem{File: folder.Name(), Text: "this is no kind of record",
				Hint: "records stand in " + joinOr(Kinds())})
			continue
		}
		entries, err := fs.ReadDir(files, folder.Name())
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if hidden(entry.Name()) {
				continue
			}
			if err := s.readFile(files, kind, entry.Name(), origin, problems); err != nil {
				return err
			}
		}
	}
	return nil
}

// readFile adds one record.
func (s *Set) readFile(files fs.FS, kind Kind, name string, origin Origin, problems *Problems) error {
	file := path.Join(string(kind), name)
	id, markdown := strings.CutSuffix(name, ".md")
	if !markdown {
		*problems = append(*problems, Problem{File: file, Text: "a record is a Markdown file", Hint: "name it <id>.md, or move it away"})
		return nil
	}
	info, err := fs.Stat(files, file)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFileSize {
		*problems = append(*problems, Problem{File: file, Text: fmt.Sprintf("a record is a file of at most %d KiB", maxFileSize>>10)})
		return nil
	}
	text, err := fs.ReadFile(files, file)
	if err != nil {
		return err
	}
	record, err := readRecord(kind, id, origin, file, text)
	if err != nil {
		var found Problems
		if !errors.As(err, &found) {
			return err
		}
		*problems = append(*problems, found...)
		return nil
	}
	if problem, wrong := s.unlike(record); wrong {
		*problems = append(*problems, problem)
		return nil
	}
	s.put(record)
	return nil
}

// unlike refuses an overlay that would change what a built-in setting counts, since the code reads it in that unit.
func (s *Set) unlike(record Record) (Problem, bool) {
	setting, ok := record.(*Setting)
	if !ok {
		return Problem{}, false
	}
	before, ok := s.Setting(setting.ID)
	if !ok || before.Unit == setting.Unit {
		return Problem{}, false
	}
	return Problem{File: setting.File, Line: setting.document.line("unit"),
		Text: fmt.Sprintf("%s is counted in %s, not in %s", setting.ID, before.Unit, setting.Unit),
		Hint: "keep the unit of the built-in record"}, true
}

// hidden says that a name is none of ours: editors and file managers leave such files.
func hidden(name string) bool { return strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") }

func (s *Set) put(record Record) { s.records[record.About().Ref()] = record }

// Get finds a record.
func (s *Set) Get(ref Ref) (Record, bool) {
	record, ok := s.records[ref]
	return record, ok
}

// All lists every record by kind, then by id.
func (s *Set) All() []Record { return List[Record](s) }

// List lists the records of one type by id: List[*Runbook](set).
func List[T Record](s *Set) []T {
	var list []T
	for _, record := range s.records {
		if typed, ok := record.(T); ok {
			list = append(list, typed)
		}
	}
	kinds := Kinds()
	slices.SortFunc(list, func(a, b T) int {
		left, right := a.About(), b.About()
		return cmp.Or(cmp.Compare(slices.Index(kinds, left.Kind), slices.Index(kinds, right.Kind)), cmp.Compare(left.ID, right.ID))
	})
	return list
}

// Setting finds a setting by its id.
func (s *Set) Setting(id string) (*Setting, bool) {
	setting, ok := s.records[Ref{Kind: KindSetting, ID: id}].(*Setting)
	return setting, ok
}

// Settings lists the settings by id.
func (s *Set) Settings() []*Setting { return List[*Setting](s) }

// IntegrationEvent finds the record of an event type.
func (s *Set) IntegrationEvent(eventType string) (*IntegrationEvent, bool) {
	event, ok := s.records[Ref{Kind: KindIntegrationEvent, ID: eventType}].(*IntegrationEvent)
	return event, ok
}

// IntegrationEvents lists the integration events by type.
func (s *Set) IntegrationEvents() []*IntegrationEvent { return List[*IntegrationEvent](s) }

// Notifications lists the notification records by id.
func (s *Set) Notifications() []*Notification { return List[*Notification](s) }
