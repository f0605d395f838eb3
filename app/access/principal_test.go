package access_test

import (
	"context"
	"errors"
	"testing"

	"github.com/posthorn/posthorn/app/access"
)

func TestRolesContainTheLesserOnes(t *testing.T) {
	t.Parallel()
	roles := access.Roles()
	for i, has := range roles {
		for j, least := range roles {
			if got := has.Allows(least); got != (i >= j) {
				t.Errorf("%s allows %s: %t", has, least, got)
			}
		}
	}
	for _, none := range []access.Role{"", "root", "Admin"} {
		if none.Allows(access.Viewer) || access.Admin.Allows(none) {
			t.Errorf("role %q allows or is allowed", none)
		}
	}
}

func TestRequire(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	if _, err := access.Require(ctx, access.Viewer); !errors.Is(err, access.ErrUnauthenticated) {
		t.Errorf("nobody: %v", err)
	}
	ctx = access.With(ctx, operator)
	if p, err := access.Require(ctx, access.Operator); err != nil || p != operator {
		t.Errorf("operator: %+v, %v", p, err)
	}
	if _, err := access.Require(ctx, access.Admin); !errors.Is(err, access.ErrForbidden) {
		t.Errorf("operator as admin: %v", err)
	}
}
