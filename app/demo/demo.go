package demo

import (
	"context"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/posthorn/posthorn/app/cli/client"
)

// demo is one run.
type demo struct {
	config   Config
	folder   folder
	screen   *screen
	receiver *receiver
	depot    *depot
	working  sync.WaitGroup
	once     sync.Once
}

// Run runs a demo until the context ends, and leaves nothing running behind. Its error may be a *Failure.
func Run(ctx context.Context, config Config) error {
	config, err := config.validate()
	if err != nil {
		return err
	}
	folder := folder(config.DataDir)
	remembered, err := folder.prepare()
	if err != nil {
		return err
	}
	screen := newScreen(config)
	receiver, err := receive(ctx, config, remembered, screen.arrived)
	if err != nil {
		return err
	}
	defer receiver.close()
	if err := os.Remove(folder.log()); err != nil && !os.IsNotExist(err) {
		return err
	}
	d := &demo{config: config, folder: folder, screen: screen, receiver: receiver, depot: &depot{config: config, screen: screen}}
	defer d.depot.use(nil)

	work, stopWork := context.WithCancel(ctx)
	supervisor := &supervisor{config: config, screen: screen, onReady: func(life context.Context, said ready) {
		d.working.Go(func() { d.ready(life, work, said) })
	}}
	// The first signal ended the context: what comes after it forces.
	force := make(chan os.Signal, 1)
	defer context.AfterFunc(ctx, func() { signal.Notify(force, os.Interrupt, syscall.SIGTERM) })()
	defer signal.Stop(force)
	supervisor.force = force
	err = supervisor.run(ctx)
	stopWork()
	d.working.Wait()
	if err == nil {
		screen.summary(nil, true)
	}
	return err
}

// ready puts the demo to work on a process that answers requests, until that process ends.
func (d *demo) ready(life, work context.Context, said ready) {
	api := d.provision(life, said)
	if api == nil {
		return
	}
	d.depot.use(api)
	first := false
	d.once.Do(func() {
		first = true
		var link struct{ URL string }
		if err := api.Do(life, http.MethodPost, "/v1/session/links", nil, &link); err != nil {
			link.URL = "posthorn link --data-dir " + quote(d.config.DataDir) + " makes one"
		}
		d.screen.hello(banner{
			Link: link.URL,
			URL:  said.URL, DataDir: d.config.DataDir, Token: d.folder.token(), Receiver: d.receiver.url(), Journal: d.folder.journal(),
			Log: d.folder.log(), PID: said.PID, Version: said.Version, program: called(d.config.Executable),
		})
		if d.config.Every > 0 {
			d.working.Go(func() { d.depot.work(work) })
			d.working.Go(func() { (&branch{depot: d.depot}).work(work, d.config.Every) })
		}
		if !d.config.Calm {
			d.working.Go(func() { d.receiver.misbehave(work) })
		}
		d.working.Go(func() { d.sumUp(work) })
	})
	if !first {
		d.screen.running(said)
	}
}

// provision tries until it works or the process ends; nil then.
func (d *demo) provision(life context.Context, said ready) *client.Client {
	told := ""
	for life.Err() == nil {
		api, err := provision(life, d.folder, said, d.receiver)
		if err == nil {
			return api
		}
		if life.Err() == nil && err.Error() != told {
			told = err.Error()
			d.screen.trouble(told)
		}
		sleep(life, time.Second)
	}
	return nil
}

// sumUp prints a summary every ten seconds.
func (d *demo) sumUp(ctx context.Context) {
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			d.screen.summary(d.backlog(ctx), false)
		case <-ctx.Done():
			return
		}
	}
}

// backlog asks the appliance; nil when it does not answer.
func (d *demo) backlog(ctx context.Context) *backlog {
	var answer struct {
		Total backlog `json:"total"`
	}
	api := d.depot.client()
	if api == nil || api.Do(ctx, http.MethodGet, "/v1/backlog", nil, &answer) != nil {
		return nil
	}
	return &answer.Total
}
