package documents

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/posthorn/posthorn/app/mediator"
)

// VersionConflict refuses a change because of the version that its document has.
type VersionConflict struct {
	// Path is where the change's if_version stands in the request.
	Path string
	// Current is the version that the document has; 0: it does not exist.
	Current int64
}

// Error says which version there is.
func (c *VersionConflict) Error() string {
	if c.Current == 0 {
		return "The document does not exist."
	}
	return fmt.Sprintf("The document has version %d.", c.Current)
}

const (
	selectVersion = `SELECT version, body IS NOT NULL FROM documents WHERE tenant = ? AND collection = ? AND id = ?`
	upsert        = `INSERT INTO documents(tenant, collection, id, version, body, changed_at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, collection, id) DO UPDATE SET version = excluded.version, body = excluded.body, changed_at = excluded.changed_at`
)

// apply makes one change. The version that decides is read in the same unit of work.
func apply(ctx context.Context, work *mediator.UnitOfWork, path string, c Change) (Version, error) {
	tenant := string(work.By.Tenant)
	find, err := work.Stmt(ctx, selectVersion)
	if err != nil {
		return Version{}, fmt.Errorf("read version of document: %w", err)
	}
	var version int64
	var exists bool
	err = find.QueryRowContext(ctx, tenant, c.Collection, c.ID).Scan(&version, &exists)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return Version{}, fmt.Errorf("read version of document: %w", err)
	}
	current := version
	if !exists {
		current = 0
	}
	switch {
	case c.IfVersion != nil && *c.IfVersion != current:
		return Version{}, &VersionConflict{Path: path + "/if_version", Current: current}
	case c.Op == Delete && !exists:
		return Version{}, missing(path+"/id", "must name a document that exists")
	}
	var body any
	if c.Op == Put {
		body = []byte(c.Body)
	}
	version++
	write, err := work.Stmt(ctx, upsert)
	if err != nil {
		return Version{}, fmt.Errorf("write document: %w", err)
	}
	if _, err := write.ExecContext(ctx, tenant, c.Collection, c.ID, version, body, work.Now.UnixMicro()); err != nil {
		return Version{}, fmt.Errorf("write document: %w", err)
	}
	return Version{Collection: c.Collection, ID: c.ID, Version: version, Deleted: c.Op == Delete}, nil
}

func missing(path, message string) error {
	return &mediator.Refusal{Kind: mediator.Missing, Code: "no-document", Sentence: "There is no such document.",
		Hint: "List the collection to see what there is.", At: []mediator.Violation{{Path: path, Message: message}}}
}
