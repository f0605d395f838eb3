package access

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/posthorn/posthorn/outbox"
	"github.com/uptrace/bun"
)

// Tokens makes, lists, revokes and verifies API tokens. Its methods are safe for concurrent use.
type Tokens struct {
	writer   *outbox.Writer
	read     *bun.DB
	now      func() time.Time
	verified verified
}

// NewTokens serves the tokens of a store: its writer and its pool of query-only connections.
func NewTokens(writer *outbox.Writer, read *bun.DB) *Tokens {
	return &Tokens{writer: writer, read: read, now: time.Now}
}

// OnRevoke has fn called with the id of each token that is revoked, after the commit and before the revocation is acknowledged, so that
// what the token had opened can be closed. It is called before the first request is served.
func (t *Tokens) OnRevoke(fn func(tokenID string)) { t.verified.onRevoke(fn) }

// Create makes a token and returns its text, which is shown this once.
func (t *Tokens) Create(ctx context.Context, by Principal, n NewToken) (token Token, text string, err error) {
	err = t.writer.Do(ctx, func(ctx context.Context, tx *outbox.Tx) error {
		token, text, err = t.CreateTx(ctx, tx, by, n)
		return err
	})
	if err != nil {
		return Token{}, "", err
	}
	return token, text, nil
}

const (
	countTokens = `SELECT count(*), coalesce(sum(name = ?), 0) FROM posthorn_tokens
WHERE tenant = ? AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)`
	insertToken = `INSERT INTO posthorn_tokens(id, hash, name, tenant, role, created_at, created_by, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`
)

// CreateTx is Create inside the caller's command.
func (t *Tokens) CreateTx(ctx context.Context, tx *outbox.Tx, by Principal, n NewToken) (Token, string, error) {
	if err := by.Require(Admin); err != nil {
		return Token{}, "", err
	}
	id := newID()
	n, err := n.filled(by, id)
	if err != nil {
		return Token{}, "", err
	}
	token := Token{ID: id, Name: n.Name, Tenant: n.Tenant, Role: n.Role, CreatedAt: tx.Now, CreatedBy: by.Actor}
	var expires sql.NullInt64
	if !n.ExpiresAt.IsZero() {
		at := n.ExpiresAt.UTC().Truncate(time.Microsecond)
		if !at.After(tx.Now) {
			return Token{}, "", fmt.Errorf("%w: expires_at is in the past", ErrInvalidToken)
		}
		if at.Year() > 9999 { // RFC 3339 cannot write it
			return Token{}, "", fmt.Errorf("%w: expires_at is after the year 9999", ErrInvalidToken)
		}
		token.ExpiresAt, expires = &at, sql.NullInt64{Int64: at.UnixMicro(), Valid: true}
	}
	var inForce, named int
	if err := tx.Tx.Tx.QueryRowContext(ctx, countTokens, n.Name, string(n.Tenant), tx.Now.UnixMicro()).Scan(&inForce, &named); err != nil {
		return Token{}, "", fmt.Errorf("count API tokens: %w", err)
	}
	switch {
	case named > 0:
		return Token{}, "", fmt.Errorf("create API token %s: %w", n.Name, ErrTokenExists)
	case inForce >= MaxTokens:
		return Token{}, "", fmt.Errorf("create API token %s: %w: a tenant may have %d", n.Name, ErrTooManyTokens, MaxTokens)
	}
	text, hash := newText()
	if _, err := tx.Tx.Tx.ExecContext(ctx, insertToken, token.ID, hash[:], token.Name, string(token.Tenant), string(token.Role),
		tx.Now.UnixMicro(), by.Actor, expires); err != nil {
		return Token{}, "", fmt.Errorf("create API token %s: %w", n.Name, err)
	}
	if err := AuditFor(ctx, tx, by, token.Tenant, "token.create", token.ID, token.Name+", "+string(token.Role)); err != nil {
		return Token{}, "", err
	}
	return token, text, nil
}

const tokenColumns = `id, name, tenant, role, created_at, created_by, expires_at, revoked_at`

const listTokens = `SELECT ` + tokenColumns + ` FROM posthorn_tokens WHERE ? OR tenant = ?
ORDER BY revoked_at IS NOT NULL, created_at DESC, id LIMIT 1000`

// List lists the tokens of the caller's tenant, those in force first, newest first; of all tenants for the machine's own user, unless that
// one acts for a tenant alone. It shows at most a thousand.
func (t *Tokens) List(ctx context.Context, by Principal, alone bool) ([]Token, error) {
	if err := by.Require(Admin); err != nil {
		return nil, err
	}
	rows, err := t.read.DB.QueryContext(ctx, listTokens, by.Local() && !alone, string(by.Tenant))
	if err != nil {
		return nil, fmt.Errorf("list API tokens: %w", err)
	}
	defer func() { _ = rows.Close() }()
	tokens := []Token{}
	for rows.Next() {
		token, err := scanToken(rows.Scan)
		if err != nil {
			return nil, fmt.Errorf("list API tokens: %w", err)
		}
		tokens = append(tokens, token)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list API tokens: %w", err)
	}
	return tokens, nil
}

func scanToken(scan func(...any) error, more ...any) (Token, error) {
	var token Token
	var created int64
	var expires, revoked sql.NullInt64
	into := []any{&token.ID, &token.Name, &token.Tenant, &token.Role, &created, &token.CreatedBy, &expires, &revoked}
	if err := scan(append(into, more...)...); err != nil {
		return Token{}, err
	}
	token.CreatedAt = time.UnixMicro(created).UTC()
	token.ExpiresAt, token.RevokedAt = timeOf(expires), timeOf(revoked)
	return token, nil
}

func timeOf(micros sql.NullInt64) *time.Time {
	if !micros.Valid {
		return nil
	}
	at := time.UnixMicro(micros.Int64).UTC()
	return &at
}

// Revoke ends a token, named by its id or its name, that List would show. From its return on the token is refused.
func (t *Tokens) Revoke(ctx context.Context, by Principal, alone bool, idOrName string) (token Token, err error) {
	err = t.writer.Do(ctx, func(ctx context.Context, tx *outbox.Tx) error {
		token, err = t.RevokeTx(ctx, tx, by, alone, idOrName)
		return err
	})
	if err != nil {
		return Token{}, err
	}
	return token, nil
}

const (
	findToken = `SELECT ` + tokenColumns + ` FROM posthorn_tokens
WHERE (id = ? OR name = ?) AND (? OR tenant = ?) AND revoked_at IS NULL
ORDER BY id = ? DESC, tenant = ? DESC, expires_at IS NOT NULL, created_at DESC LIMIT 1`
	revokeToken = `UPDATE posthorn_tokens SET revoked_at = ? WHERE id = ?`
)

// RevokeTx is Revoke inside the caller's command.
func (t *Tokens) RevokeTx(ctx context.Context, tx *outbox.Tx, by Principal, alone bool, idOrName string) (Token, error) {
	if err := by.Require(Admin); err != nil {
		return Token{}, err
	}
	row := tx.Tx.Tx.QueryRowContext(ctx, findToken, idOrName, idOrName, by.Local() && !alone, string(by.Tenant), idOrName, string(by.Tenant))
	token, err := scanToken(row.Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return Token{}, fmt.Errorf("revoke API token: %w", ErrNoToken)
	} else if err != nil {
		return Token{}, fmt.Errorf("revoke API token: %w", err)
	}
	if _, err := tx.Tx.Tx.ExecContext(ctx, revokeToken, tx.Now.UnixMicro(), token.ID); err != nil {
		return Token{}, fmt.Errorf("revoke API token %s: %w", token.ID, err)
	}
	at := tx.Now
	token.RevokedAt = &at
	if err := AuditFor(ctx, tx, by, token.Tenant, "token.revoke", token.ID, token.Name); err != nil {
		return Token{}, err
	}
	tx.AfterCommit(func() { t.verified.revoked(token.ID) })
	return token, nil
}
