package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// role says what a process that a test starts from this binary plays.
const role = "POSTHORN_DEMO_TEST"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		switch os.Getenv(role) {
		case "broken":
			fmt.Fprintln(os.Stderr, "the disk is a potato")
			os.Exit(1)
		case "held":
			fmt.Fprintln(os.Stderr, "another process holds the data folder")
			os.Exit(73)
		default:
			fakeServe(os.Args[2:])
		}
		os.Exit(0)
	}
	if os.Getenv(role) == "supervisor" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		err := Run(ctx, Config{DataDir: os.Args[1], Listen: "127.0.0.1:0", Every: 20 * time.Millisecond, Calm: true,
			Executable: os.Args[0], Out: os.Stdout, JSON: true})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// fakeServe is a child with as much of the API as the demo uses, which delivers each message at once.
func fakeServe(args []string) {
	flags := map[string]string{}
	for i := 0; i+1 < len(args); i += 2 {
		flags[args[i]] = args[i+1]
	}
	socket := filepath.Join(os.TempDir(), "demo-"+strconv.Itoa(os.Getpid())+".sock")
	unix, err := net.Listen("unix", socket)
	check(err)
	defer os.Remove(socket)
	tcp, err := net.Listen("tcp", flags["--listen"])
	check(err)
	f := &fake{dir: flags["--data-dir"]}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/backlog", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer ph_fake" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, `{"total":{"pending":0,"failed":0}}`)
	})
	mux.HandleFunc("POST /v1/tokens", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"token":"ph_fake"}`) })
	mux.HandleFunc("GET /v1/destinations/demo-receiver", f.destination)
	mux.HandleFunc("DELETE /v1/destinations/demo-receiver", func(http.ResponseWriter, *http.Request) { check(os.Remove(f.target())) })
	mux.HandleFunc("POST /v1/destinations", f.create)
	mux.HandleFunc("POST /v1/transactions", f.transact)
	server := &http.Server{Handler: mux}
	go server.Serve(unix)
	go server.Serve(tcp)
	said, err := json.Marshal(ready{URL: "http://" + tcp.Addr().String(), Socket: socket, PID: os.Getpid(), Version: "fake"})
	check(err)
	check(replace(flags["--ready-file"], said))
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	<-stop
	check(server.Shutdown(context.Background()))
	check(os.WriteFile(filepath.Join(f.dir, "drained"), nil, 0o600))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

const fakeSecret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

type fake struct {
	dir  string
	last atomic.Int64
}

func (f *fake) target() string { return filepath.Join(f.dir, "target") }

func (f *fake) destination(w http.ResponseWriter, _ *http.Request) {
	target, err := os.ReadFile(f.target())
	if err != nil {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{}`)
		return
	}
	check(json.NewEncoder(w).Encode(map[string]string{"url": string(target)}))
}

func (f *fake) create(w http.ResponseWriter, r *http.Request) {
	var ask struct{ URL string }
	check(json.NewDecoder(r.Body).Decode(&ask))
	check(os.WriteFile(f.target(), []byte(ask.URL), 0o600))
	check(json.NewEncoder(w).Encode(map[string]string{"secret": fakeSecret}))
}

func (f *fake) transact(w http.ResponseWriter, r *http.Request) {
	var t struct{ Emits []struct{ Type string } }
	if json.NewDecoder(r.Body).Decode(&t) != nil {
		return
	}
	id := fmt.Sprintf("m-%d-%d", os.Getpid(), f.last.Add(1))
	target, err := os.ReadFile(f.target())
	check(err)
	signer, err := standardwebhooks.NewWebhook(fakeSecret)
	check(err)
	now, body := time.Now(), []byte("{}")
	signature, err := signer.Sign(id, now, body)
	check(err)
	request, err := http.NewRequest(http.MethodPost, string(target), bytes.NewReader(body))
	check(err)
	for name, value := range map[string]string{"webhook-id": id, "webhook-timestamp": strconv.FormatInt(now.Unix(), 10),
		"webhook-signature": signature, "posthorn-attempt": "1", "posthorn-type": t.Emits[0].Type} {
		request.Header.Set(name, value)
	}
	if response, err := http.DefaultClient.Do(request); err == nil {
		response.Body.Close()
	}
	check(json.NewEncoder(w).Encode(map[string]any{"messages": []map[string]string{{"id": id, "type": t.Emits[0].Type}}}))
}
