package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/posthorn/posthorn/app/access"
	"github.com/posthorn/posthorn/realtime"
)

const (
	// serveLockWait is how long serve waits for a command that works on the data folder.
	serveLockWait = 5 * time.Second
	// watchInterval is how often the database's file is looked at.
	watchInterval = time.Second
)

// The bounds of an HTTP connection. A stream lifts the deadlines for itself.
const (
	headTime  = 10 * time.Second
	readTime  = time.Minute
	writeTime = time.Minute
	idleTime  = 2 * time.Minute
	headBytes = 64 << 10
)

// Serve opens an appliance and answers requests until ctx ends; then it drains and returns nil. When the store fails it returns at once, with
// the reason. It is handed what `posthorn serve` was given, read already.
func Serve(ctx context.Context, options Options, readyFile string) (err error) {
	// A bad address is told before anything is opened; the default one is a loopback address.
	if options.Config.Listen != "" {
		if _, err := listenAddress(options.Config.Listen, 0); err != nil {
			return err
		}
		if err := judgeExposure(options.Config.Listen, options.Config.TLS != nil, options.Config.InsecureListen); err != nil {
			return err
		}
	}
	options.LockWait = serveLockWait
	a, err := Open(ctx, options)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		if options.Logger != nil {
			options.Logger.Info("told to stop before it was ready")
		}
		return nil
	}
	if err != nil {
		return err
	}
	s := &serving{Appliance: a, failed: make(chan error, 2)}
	defer func() { err = errors.Join(err, s.end(ctx)) }()
	if readyFile != "" {
		if err := removeReady(readyFile); err != nil {
			return err
		}
	}
	address, err := listenAddress(options.Config.Listen, a.Records().Int("port"))
	if err != nil {
		return err
	}
	ready, err := s.listen(address)
	if err != nil {
		return err
	}
	s.watch()
	if readyFile != "" {
		if err := ready.write(readyFile); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, removeReady(readyFile)) }()
	}
	a.logger.Info("posthorn is ready", "url", ready.URL, "socket", ready.Socket, "data_dir", a.options.DataDir, "version", ready.Version)
	select {
	case <-ctx.Done():
		a.logger.Info("stopping: attempts that run may finish", "within", s.drainTime())
		return nil
	case <-a.Failed():
		return nil // end says why
	case err := <-s.failed:
		return err
	}
}

// serving is an appliance with its listeners.
type serving struct {
	*Appliance
	server *http.Server
	failed chan error

	background sync.WaitGroup
	quit       context.CancelFunc
}

// listen binds both listeners and answers on them.
func (s *serving) listen(address string) (Ready, error) {
	socket, err := listenSocket(s.options.DataDir)
	if err != nil {
		return Ready{}, err
	}
	tcp, err := listenTCP(address, s.options.Config.TLS, s.Records().Int("live-connections"))
	if err != nil {
		_ = socket.Close()
		return Ready{}, err
	}
	s.server = &http.Server{
		Handler:           s.handler,
		ConnContext:       s.recognize,
		ReadHeaderTimeout: headTime,
		ReadTimeout:       readTime,
		WriteTimeout:      writeTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    headBytes,
		ErrorLog:          slog.NewLogLogger(s.logger.Handler(), slog.LevelWarn),
	}
	// Streams never end by themselves; a shutdown would wait for them.
	s.server.RegisterOnShutdown(func() {
		ctx, cancel := context.WithTimeout(context.Background(), s.drainTime())
		defer cancel()
		_ = s.hub.Drain(ctx)
	})
	url := urlOf(tcp, s.options.Config.TLS != nil)
	s.url.Store(&url)
	for _, listener := range []net.Listener{socket, tcp} {
		s.background.Go(func() {
			if err := s.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				s.failed <- fmt.Errorf("answer requests: %w", err)
			}
		})
	}
	return Ready{URL: url, Socket: socket.Addr().String(), PID: os.Getpid(), Version: s.options.Build.Version}, nil
}

// recognize gives requests on the unix socket the principal that the kernel vouches for. Without one they need an API token like any other.
func (s *serving) recognize(ctx context.Context, conn net.Conn) context.Context {
	ctx = realtime.ConnContext(ctx, conn)
	if conn.LocalAddr().Network() != "unix" {
		return ctx
	}
	principal, err := access.PeerPrincipal(conn)
	if err != nil {
		s.logger.Warn("unix socket: peer is not admitted", "error", err)
		return ctx
	}
	return access.With(ctx, principal)
}

// watch looks after the records and the database's file in the background.
func (s *serving) watch() {
	ctx, cancel := context.WithCancel(context.Background())
	s.quit = cancel
	reload := make(chan os.Signal, 1)
	notifyReload(reload)
	s.background.Go(func() {
		defer signal.Stop(reload)
		s.declarations.watch(ctx, reload)
	})
	s.background.Go(func() {
		tick := time.NewTicker(watchInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				s.Verify()
			}
		}
	})
}

func (s *serving) drainTime() time.Duration { return s.Records().Duration("drain-timeout") }

// end drains: no new request, no new claim, and what runs may finish within the bound. A store that has failed is not waited for.
func (s *serving) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.drainTime())
	defer cancel()
	if s.quit != nil {
		s.quit()
	}
	var requests sync.WaitGroup
	if s.server != nil {
		requests.Go(func() {
			select {
			case <-s.Failed():
			default:
				_ = s.server.Shutdown(ctx)
			}
			_ = s.server.Close()
		})
	}
	s.drain(ctx)
	requests.Wait()
	err := s.Close(ctx)
	s.background.Wait()
	return err
}
