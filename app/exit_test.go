package app

import (
	"errors"
	"fmt"
	"testing"

	"github.com/posthorn/posthorn/app/cli"
	"github.com/posthorn/posthorn/app/destinations"
	"github.com/posthorn/posthorn/app/store"
	"github.com/posthorn/posthorn/outbox"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]int{
		errors.New("anything"):         cli.ExitFailed,
		&ConfigError{Advice: "h"}:      cli.ExitFailed,
		&store.HeldError{PID: 1}:       73,
		store.ErrSchemaNewer:           74,
		store.ErrIntegrity:             75,
		store.ErrReplaced:              70,
		outbox.ErrInDoubt:              70,
		outbox.ErrCorrupt:              70,
		outbox.ErrStoreFull:            70,
		&listenError{"text", "advice"}: 2,
		destinations.ErrNoKey:          cli.ExitFailed,
	} {
		coded, ok := exit(fmt.Errorf("serve: %w", err)).(*exitError) //nolint:errorlint // exit returns it bare
		if !ok || coded.ExitCode() != want || !errors.Is(coded, err) {
			t.Errorf("%v: %+v, want %d", err, coded, want)
		}
		if want > 2 && coded.Hint() == "" {
			t.Errorf("%v: exit %d has no hint", err, want)
		}
	}
	if exit(nil) != nil {
		t.Error("nothing is an error")
	}
}
