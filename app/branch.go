package app

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/posthorn/posthorn/app/inbound"
	"github.com/posthorn/posthorn/app/integrations/notices"
	"github.com/posthorn/posthorn/app/lending"
	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/outbox"
)

// NoticesName is the file of notices, among those of file destinations.
const NoticesName = "notices.jsonl"

// readers says what the product's own handlers read; nil when it has none.
func (a *Appliance) readers() *outbox.Readers {
	if !a.lends() {
		return nil
	}
	return lending.Readers()
}

// lends reports whether the branch is on. Its tables are in files of our own only.
func (a *Appliance) lends() bool { return a.options.Config.Lending && a.options.DB == "" }

// openLending prepares the lending branch, where it is on, and whoever may send events to it.
func (a *Appliance) openLending(ctx context.Context, set *records.Set) (err error) {
	config := a.options.Config
	receivers := map[string]inbound.Receiver{}
	if a.options.DB != "" {
		return nil
	}
	if a.lends() {
		a.notices, err = notices.New(notices.Config{URL: config.Notices.URL, Token: config.Notices.Token, Egress: config.policy,
			File: filepath.Join(a.options.DataDir, FilesName, NoticesName), Timeout: set.Duration("delivery-timeout")})
		if err != nil {
			return err
		}
		a.lending = lending.New(lending.Config{Mediator: a.mediator, Records: a.Records, Observe: a.live.Lending, Logger: a.logger})
		receivers = a.lending.Receivers()
		for _, handler := range a.lending.Handlers(a.notices.Deliver) {
			handler.Concurrency, handler.Timeout = set.Int("handler-concurrency"), set.Duration("delivery-timeout")
			if err := a.dispatcher.Register(ctx, handler); err != nil {
				return fmt.Errorf("prepare lending: %w", err)
			}
		}
	}
	a.inbound, err = inbound.New(a.mediator, a.Records, config.Inbound, receivers)
	return err
}
