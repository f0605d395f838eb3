package access

import (
	"context"
	"fmt"

	"github.com/posthorn/posthorn/outbox"
)

const insertAudit = `INSERT INTO posthorn_audit(at, tenant, actor, action, subject, detail) VALUES (?, ?, ?, ?, ?, ?)`

// Audit writes down what a principal did, in the transaction that does it: there is no change without its row, and no row without its change.
// It says nothing secret. action is such as "token.create", subject what was acted on.
func Audit(ctx context.Context, tx *outbox.Tx, by Principal, action, subject, detail string) error {
	return AuditFor(ctx, tx, by, by.Tenant, action, subject, detail)
}

// AuditFor is Audit for something of a tenant that the principal need not belong to.
func AuditFor(ctx context.Context, tx *outbox.Tx, by Principal, tenant outbox.TenantID, action, subject, detail string) error {
	_, err := tx.Tx.Tx.ExecContext(ctx, insertAudit, tx.Now.UnixMicro(), string(tenant), by.Actor, action, subject, detail)
	if err != nil {
		return fmt.Errorf("audit %s: %w", action, err)
	}
	return nil
}
