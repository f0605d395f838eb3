package access

import "errors"

var (
	// ErrUnauthenticated: nobody vouches for the caller. It does not say why, since that would help whoever guesses.
	ErrUnauthenticated = errors.New("no valid API token was given")
	// ErrForbidden: the caller is known and may not do this.
	ErrForbidden = errors.New("the caller's role does not allow this")
	// ErrInvalidToken: a token cannot be made as asked.
	ErrInvalidToken = errors.New("invalid API token")
	// ErrTokenExists: a token of that name is in force.
	ErrTokenExists = errors.New("an API token of this name is in force already")
	// ErrTooManyTokens: the tenant has as many tokens in force as it may.
	ErrTooManyTokens = errors.New("too many API tokens are in force")
	// ErrNoToken: no token in force has that id or name.
	ErrNoToken = errors.New("no API token in force has this id or name")
)
