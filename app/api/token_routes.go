package api

import (
	"context"
	"net/http"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/outbox"
)

// tokenBody asks for an API token.
type tokenBody struct {
	Role      string  `json:"role" enum:"viewer,operator,admin"`
	Name      string  `json:"name,omitempty" doc:"how audit rows name whoever uses it; made up when left out"`
	Tenant    string  `json:"tenant,omitempty" doc:"the caller's own tenant; the machine's own user may name another"`
	ExpiresAt *string `json:"expires_at,omitempty" format:"date-time" doc:"when it stops being accepted"`
}

// createdToken is a token with its text, shown this once.
type createdToken struct {
	access.Token
	Text string `json:"token" doc:"what callers send; only its hash is kept"`
}

// tokenList is the tokens of the caller's tenant.
type tokenList struct {
	Tokens    []access.Token     `json:"tokens"`
	Freshness mediator.Freshness `json:"freshness"`
}

// createToken is the command that makes a token.
type createToken struct{ access.NewToken }

// Validate finds nothing wrong: access judges with the caller in view.
func (createToken) Validate() error { return nil }

// Authorize asks for an admin.
func (createToken) Authorize(by access.Principal) error { return by.Require(access.Admin) }

// revokeToken is the command that ends one.
type revokeToken struct {
	id    string
	alone bool // of the tenant that was named only
}

// Validate finds nothing wrong: whether the token exists, the store tells.
func (revokeToken) Validate() error { return nil }

// Authorize asks for an admin.
func (revokeToken) Authorize(by access.Principal) error { return by.Require(access.Admin) }

func (s *server) tokenRoutes() {
	add[tokenBody, createdToken](s, operation{
		method: http.MethodPost, path: "/v1/tokens", tag: "tokens", status: http.StatusCreated, summary: "Create an API token",
		description: "Its text is in this answer only.",
	}, func(x *exchange, in tokenBody) (reply, error) {
		n := access.NewToken{Name: in.Name, Role: access.Role(in.Role), Tenant: outbox.TenantID(in.Tenant)}
		if in.ExpiresAt != nil {
			at, ok := parseMoment(*in.ExpiresAt)
			if !ok {
				return reply{}, mediator.Violations{{Path: "/expires_at", Message: "must be a time with its offset: 2026-01-31T09:30:00+01:00"}}.
					Refusal("invalid-token", "The token cannot be made as asked.", "")
			}
			n.ExpiresAt = at
		}
		created, err := mediator.Send(x.Context(), s.Mediator, createToken{n}, func(ctx context.Context, work *mediator.UnitOfWork, c createToken) (createdToken, error) {
			token, text, err := s.Tokens.CreateTx(ctx, work.Tx, work.By, c.NewToken)
			return createdToken{Token: token, Text: text}, err
		})
		return reply{http.StatusCreated, created}, err
	})
	add[nothing, tokenList](s, operation{method: http.MethodGet, path: "/v1/tokens", tag: "tokens", summary: "List API tokens, those in force first",
		query: []parameter{tenantParameter}, description: "The machine's own user sees those of every tenant, unless the query names one."},
		func(x *exchange, _ nothing) (reply, error) {
			by, err := access.Require(x.Context(), access.Admin)
			if err != nil {
				return reply{}, err
			}
			tokens, err := s.Tokens.List(x.Context(), by, x.query.Has("tenant"))
			return reply{http.StatusOK, tokenList{Tokens: tokens, Freshness: mediator.Immediate}}, err
		})
	add[nothing, access.Token](s, operation{
		method: http.MethodDelete, path: "/v1/tokens/{id}", tag: "tokens", summary: "Revoke an API token, by its id or name", description: "From this answer on it is refused.",
		query: []parameter{tenantParameter},
	}, func(x *exchange, _ nothing) (reply, error) {
		token, err := mediator.Send(x.Context(), s.Mediator, revokeToken{x.PathValue("id"), x.query.Has("tenant")}, func(ctx context.Context, work *mediator.UnitOfWork, c revokeToken) (access.Token, error) {
			return s.Tokens.RevokeTx(ctx, work.Tx, work.By, c.alone, c.id)
		})
		return reply{http.StatusOK, token}, err
	})
}
