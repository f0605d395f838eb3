package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/app/api"
	"github.com/posthorn/posthorn/app/documents"
	"github.com/posthorn/posthorn/app/emits"
	"github.com/posthorn/posthorn/app/mediator"
	"github.com/posthorn/posthorn/app/messages"
	"github.com/posthorn/posthorn/app/records"
)

// openFaces prepares what callers see.
func (a *Appliance) openFaces() (err error) {
	a.tokens = access.NewTokens(a.store.Writer, a.store.Read)
	judge := emits.Judge{Records: a.Records, DataDir: a.options.DataDir}
	a.handler, err = api.New(api.Deps{
		Mediator: a.mediator, Documents: documents.New(a.mediator, judge, nil), Messages: messages.New(a.mediator, judge),
		Destinations: a.destinations, Tokens: a.tokens, Records: a.Records, Reload: a.reload, Dispatcher: a.dispatcher, Writer: a.store.Writer,
		Hosts: a.options.Config.Hosts, Version: a.options.Build.Version, Logger: a.logger,
	})
	if err != nil {
		return fmt.Errorf("prepare the API: %w", err)
	}
	return nil
}

// reload reads the records again for an admin, who may be shown what is wrong with the operator's files.
func (a *Appliance) reload(ctx context.Context) error {
	err := a.declarations.Reload(ctx)
	problems := (records.Problems)(nil)
	if !errors.As(err, &problems) {
		return err
	}
	refusal := &mediator.Refusal{Kind: mediator.Invalid, Code: "invalid-records", Sentence: "The record files are wrong; those read before stay in effect.",
		Hint: "posthorn records check says the same; mend the files and try again."}
	for _, p := range problems[:min(len(problems), 20)] {
		at := p.File
		if p.Line > 0 {
			at = fmt.Sprintf("%s:%d", p.File, p.Line)
		}
		refusal.At = append(refusal.At, mediator.Violation{Path: at, Message: p.Text})
	}
	return refusal
}
