package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/posthorn/posthorn/app/records"
)

// postOnce posts the payload and reads the answer, so that the connection is kept.
func postOnce(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(benchPayload))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

// httpScenarios measure the whole program, as a process of its own, from its outermost face.
func httpScenarios(program string) []Scenario {
	return []Scenario{
		{Name: "http/transactions/64", Unit: "/s", run: transactions(program, 64, func(f httpFigures) float64 { return f.rate })},
		{Name: "http/transactions/64/p99", Unit: "ms", run: transactions(program, 64, func(f httpFigures) float64 { return f.p99 })},
	}
}

type httpFigures struct{ rate, p99 float64 }

func transactions(program string, callers int, figure func(httpFigures) float64) func(context.Context, string, time.Duration) (float64, error) {
	return func(ctx context.Context, dir string, length time.Duration) (float64, error) {
		s, err := StartServer(ctx, program, dir)
		if err != nil {
			return 0, err
		}
		defer s.Stop()
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}}
		defer client.CloseIdleConnections()
		var mu sync.Mutex
		var took []time.Duration
		n := 0
		r, err := rate(callers, length, func() error {
			mu.Lock()
			n++
			id := n
			mu.Unlock()
			began := time.Now()
			if err := s.transaction(ctx, client, id); err != nil {
				return err
			}
			mu.Lock()
			took = append(took, time.Since(began))
			mu.Unlock()
			return nil
		})
		if err != nil {
			return 0, err
		}
		slices.Sort(took)
		p99 := took[min(len(took)-1, len(took)*99/100)]
		return figure(httpFigures{rate: r, p99: float64(p99.Microseconds()) / 1000}), nil
	}
}

// Server is the program under measurement, running in a folder of its own on a port that the system chose.
type Server struct {
	cmd   *exec.Cmd
	url   string
	token string
}

// URL is where it answers.
func (s *Server) URL() string { return s.url }

// Token is an admin's API token.
func (s *Server) Token() string { return s.token }

// PID is its process id.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// StartServer starts the program on a folder, which may hold its configuration already. Stop it.
func StartServer(ctx context.Context, program, dir string) (*Server, error) {
	if _, err := records.NewIntegrationEvent(dir, "bench-done", "authoritative", []int{1}); err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, program, "tokens", "create", "--data-dir", dir, "--role", "admin", "--json").Output()
	if err != nil {
		return nil, fmt.Errorf("create a token: %w", err)
	}
	var made struct{ Token string }
	if err := json.Unmarshal(out, &made); err != nil {
		return nil, fmt.Errorf("create a token: %w", err)
	}
	ready := filepath.Join(dir, "ready.json")
	s := &Server{token: made.Token, cmd: exec.CommandContext(ctx, program, "serve", "--data-dir", dir, "--listen", "127.0.0.1:0", "--ready-file", ready)}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	for range 200 {
		var said struct{ URL string }
		if text, err := os.ReadFile(ready); err == nil && json.Unmarshal(text, &said) == nil {
			s.url = said.URL
			return s, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.Stop()
	return nil, errors.New("the program did not become ready within ten seconds")
}

// Stop ends the program in good order and waits for it.
func (s *Server) Stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait()
}

func (s *Server) transaction(ctx context.Context, client *http.Client, id int) error {
	body := fmt.Sprintf(`{"changes":[{"op":"put","collection":"parcels","id":"%d","body":%s}],"emits":[{"type":"bench-done","payload":%s}]}`,
		id, benchPayload, benchPayload)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/transactions", strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+s.token)
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusCreated {
		err = fmt.Errorf("%s: %s", response.Status, text)
	}
	return err
}
