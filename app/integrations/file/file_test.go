package file

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/posthorn/posthorn/app/regular"
	"github.com/posthorn/posthorn/outbox"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func register(t *testing.T, folder, path string) *File {
	t.Helper()
	f, err := New(Config{Path: path, Allow: []string{folder}})
	if err != nil {
		t.Fatalf("new file: %v", err)
	}
	t.Cleanup(f.Close)
	return f
}

func orderPlaced(id, payload string) outbox.Delivery {
	return outbox.Delivery{
		Attempt: 2, Fence: 9,
		Message: outbox.Message{
			ID: outbox.MessageID(id), Type: "order-placed", SchemaVersion: 1, Tenant: "main", ContentType: "application/json", Payload: []byte(payload),
			OccurredAt: time.Date(2026, 7, 1, 14, 0, 0, 5000, time.FixedZone("", 7200)),
		},
	}
}

func deliver(t *testing.T, f *File, d outbox.Delivery) {
	t.Helper()
	if err := f.Deliver(t.Context(), d); err != nil {
		t.Fatalf("deliver: %v", err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("read file: %v", err)
	}
	return string(text)
}

func wantClass(t *testing.T, err error, class outbox.Class) {
	t.Helper()
	failure := new(outbox.Failure)
	if !errors.As(err, &failure) || failure.Class != class {
		t.Errorf("error %v (%+v), want class %s", err, failure, class)
	}
}

func TestLine(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	f := register(t, folder, "new/sub/events.jsonl")
	deliver(t, f, orderPlaced("m1", `{"n":1.10,"n":1e400,"h":"<é\u00e9>"}`))
	deliver(t, f, orderPlaced("m2", "{\n}"))
	want := `{"id":"m1","type":"order-placed","schema_version":1,"tenant":"main","occurred_at":"2026-07-01T12:00:00.000005Z","attempt":2,"fence":9,` +
		`"content_type":"application/json","payload":{"n":1.10,"n":1e400,"h":"<é\u00e9>"}}` + "\n" +
		`{"id":"m2","type":"order-placed","schema_version":1,"tenant":"main","occurred_at":"2026-07-01T12:00:00.000005Z","attempt":2,"fence":9,` +
		`"content_type":"application/json","payload_base64":"ewp9"}` + "\n"
	path := filepath.Join(folder, "new", "sub", "events.jsonl")
	if got := read(t, path); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// recoverPayload reads the exact bytes back in both of the ways that the documentation names.
func recoverPayload(t *testing.T, text []byte) []byte {
	t.Helper()
	var parsed struct {
		Payload json.RawMessage `json:"payload"`
		Base64  *string         `json:"payload_base64"`
	}
	if err := json.Unmarshal(text, &parsed); err != nil {
		t.Fatalf("line %q: %v", text, err)
	}
	if parsed.Base64 != nil {
		payload, err := base64.StdEncoding.DecodeString(*parsed.Base64)
		if err != nil {
			t.Fatalf("line %q: %v", text, err)
		}
		return payload
	}
	_, rest, _ := bytes.Cut(text, []byte(`,"payload":`))
	cut, _ := bytes.CutSuffix(rest, []byte("}\n"))
	if !bytes.Equal(cut, parsed.Payload) {
		t.Fatalf("line %q: cut out %q, parsed %q", text, cut, parsed.Payload)
	}
	return cut
}

func FuzzPayloadsAreRecoverable(f *testing.F) {
	for _, seed := range []string{
		"", "{}", "[]", "null", `"x"`, "1", " {}", "{} ", "{\n}", "\r", "plain", "\x00\xff", "\"\xff\"", `{"payload":1}`, `,"payload":`, "{}}", "\u2028", "\"\u2028\"", "{}\t", "\v1",
		strings.Repeat("[", 10001) + strings.Repeat("]", 10001),
	} {
		f.Add([]byte(seed), "type", "text/x")
	}
	f.Add([]byte(`{"a":1}`), `x,"payload":2}`, `\`)
	f.Fuzz(func(t *testing.T, payload []byte, kind, contentType string) {
		d := orderPlaced("m", string(payload))
		d.Message.Type, d.Message.ContentType = kind, contentType
		text, err := line(d)
		if err != nil {
			t.Fatalf("line: %v", err)
		}
		if bytes.Count(text, []byte("\n")) != 1 || bytes.ContainsRune(text, '\r') {
			t.Fatalf("more than a line: %q", text)
		}
		if got := recoverPayload(t, text); !bytes.Equal(got, payload) {
			t.Fatalf("%q came back as %q", payload, got)
		}
	})
}

func TestTornLines(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "events.jsonl")
	if err := os.WriteFile(path, []byte("{\"id\":\"m0\"}\n{\"id\":\"m"), 0o600); err != nil {
		t.Fatalf("write file: %v", err)
	}
	f := register(t, folder, path)
	deliver(t, f, orderPlaced("m1", "{}"))
	// Somebody else tears a line while the file is open.
	other, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatalf("open file: %v", err)
	}
	defer other.Close()
	if _, err := other.WriteString("\x00\x00"); err != nil {
		t.Fatalf("tear: %v", err)
	}
	deliver(t, f, orderPlaced("m2", "{}"))
	lines := strings.Split(read(t, path), "\n")
	if len(lines) != 6 || lines[1] != `{"id":"m` || !strings.HasPrefix(lines[2], `{"id":"m1"`) || lines[3] != "\x00\x00" || !strings.HasPrefix(lines[4], `{"id":"m2"`) || lines[5] != "" {
		t.Errorf("lines %q", lines)
	}
}

func TestConcurrentDeliveriesShareSyncs(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	f := register(t, folder, "events.jsonl")
	// While the first batch waits, the rest gathers: all of it is one more batch.
	f.writing.Lock()
	const count = 100
	var wg sync.WaitGroup
	joined := make(map[*batch]int)
	for i := range count {
		text, err := line(orderPlaced(strconv.Itoa(i), "{}"))
		if err != nil {
			t.Fatalf("line: %v", err)
		}
		b, _, err := f.join(text)
		if err != nil {
			t.Fatalf("join: %v", err)
		}
		joined[b]++
	}
	f.writing.Unlock()
	for b := range joined {
		wg.Go(func() { <-b.done })
	}
	wg.Wait()
	if len(joined) != 1 {
		t.Errorf("%d batches for %d deliveries", len(joined), count)
	}
	if n := strings.Count(read(t, filepath.Join(folder, "events.jsonl")), "\n"); n != count {
		t.Errorf("%d lines", n)
	}
}

func TestConcurrentDeliveriesToOneFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	// Two destinations may name one file.
	files := []*File{register(t, folder, "events.jsonl"), register(t, folder, filepath.Join(folder, "events.jsonl"))}
	var wg sync.WaitGroup
	for worker := range 16 {
		wg.Go(func() {
			for i := range 20 {
				if err := files[worker%2].Deliver(t.Context(), orderPlaced(fmt.Sprintf("%d-%d", worker, i), `{"a":"b"}`)); err != nil {
					t.Errorf("deliver: %v", err)
				}
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for text := range strings.Lines(read(t, filepath.Join(folder, "events.jsonl"))) {
		if text == "\n" {
			continue // one of them saw the file end within a line that the other was writing
		}
		var parsed struct{ ID string }
		if err := json.Unmarshal([]byte(text), &parsed); err != nil {
			t.Errorf("line %q: %v", text, err)
		}
		seen[parsed.ID] = true
	}
	if len(seen) != 320 {
		t.Errorf("%d messages of 320", len(seen))
	}
}

func TestRotation(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "events.log")
	f := register(t, folder, path)
	deliver(t, f, orderPlaced("m1", "{}"))
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatalf("rotate: %v", err)
	}
	deliver(t, f, orderPlaced("m2", "{}"))
	if err := os.Remove(path); err != nil {
		t.Fatalf("remove: %v", err)
	}
	deliver(t, f, orderPlaced("m3", "{}"))
	if old, current := read(t, path+".1"), read(t, path); !strings.Contains(old, `"m1"`) || strings.Contains(old, `"m2"`) || !strings.Contains(current, `"m3"`) {
		t.Errorf("old %q, current %q", old, current)
	}
}

func TestLinksThatLeadOut(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	folder := t.TempDir()
	for link, target := range map[string]string{
		"folder": outside, "file.jsonl": filepath.Join(outside, "file.jsonl"), "up": "..", "loop.jsonl": "loop.jsonl", "inside": "real", "etc.jsonl": "/etc/passwd",
	} {
		if err := os.Symlink(target, filepath.Join(folder, link)); err != nil {
			t.Fatalf("link: %v", err)
		}
	}
	if err := os.Mkdir(filepath.Join(folder, "real"), 0o700); err != nil {
		t.Fatalf("make folder: %v", err)
	}
	for _, path := range []string{"folder/a.jsonl", "file.jsonl", "up/a.jsonl", "loop.jsonl", "etc.jsonl"} {
		wantClass(t, register(t, folder, path).Deliver(t.Context(), orderPlaced("m", "{}")), outbox.Failed)
	}
	deliver(t, register(t, folder, "inside/a.jsonl"), orderPlaced("m", "{}"))
	read(t, filepath.Join(folder, "real", "a.jsonl"))
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 0 {
		t.Errorf("outside the folder: %v, %v", entries, err)
	}
}

func TestWhatIsNoFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(folder, "pipe.log"), 0o600); err != nil {
		t.Fatalf("make pipe: %v", err)
	}
	for _, name := range []string{"folder.log", "plain.txt"} {
		if err := os.Mkdir(filepath.Join(folder, name), 0o700); err != nil {
			t.Fatalf("make folder: %v", err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "regular"), nil, 0o600); err != nil {
		t.Fatalf("write file: %v", err)
	}
	for _, path := range []string{"pipe.log", "folder.log", "regular/below.log"} {
		wantClass(t, register(t, folder, path).Deliver(t.Context(), orderPlaced("m", "{}")), outbox.Failed)
	}
}

// TestOutage unplugs the folder and plugs it in again.
func TestOutage(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "medium")
	f := register(t, folder, "events.jsonl")
	wantClass(t, f.Deliver(t.Context(), orderPlaced("m1", "{}")), outbox.Unreachable)
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("an allowed folder was made: %v", err)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatalf("make folder: %v", err)
	}
	deliver(t, f, orderPlaced("m1", "{}"))
	if err := os.Rename(folder, folder+".old"); err != nil {
		t.Fatalf("move folder: %v", err)
	}
	wantClass(t, f.Deliver(t.Context(), orderPlaced("m2", "{}")), outbox.Unreachable)
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatalf("make folder: %v", err)
	}
	deliver(t, f, orderPlaced("m2", "{}"))
	if got := read(t, filepath.Join(folder, "events.jsonl")); !strings.Contains(got, `"m2"`) {
		t.Errorf("file %q", got)
	}
}

// TestFailedWriteIsWrittenAgain makes a write fail, through a descriptor that is open for reading only.
func TestFailedWriteIsWrittenAgain(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "events.jsonl")
	f := register(t, folder, path)
	deliver(t, f, orderPlaced("m1", "{}"))
	readOnly, err := os.Open(path)
	if err != nil {
		t.Fatalf("open file: %v", err)
	}
	f.appender.file.Close()
	f.appender.file = readOnly
	wantClass(t, f.Deliver(t.Context(), orderPlaced("m2", "{}")), outbox.Unreachable)
	deliver(t, f, orderPlaced("m2", "{}"))
	if n := strings.Count(read(t, path), "\n"); n != 2 {
		t.Errorf("%d lines", n)
	}
}

func TestHungDisk(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	f := register(t, folder, "events.jsonl")
	f.writing.Lock() // as if a sync hung
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	wantClass(t, f.Deliver(ctx, orderPlaced("m1", "{}")), outbox.Unreachable)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := f.Deliver(stopped, orderPlaced("m2", "{}")); !errors.Is(err, context.Canceled) || errors.As(err, new(*outbox.Failure)) {
		t.Errorf("cancelled: %v", err)
	}
	f.writing.Unlock()
	deliver(t, f, orderPlaced("m3", "{}"))
	if got := read(t, filepath.Join(folder, "events.jsonl")); strings.Contains(got, `"m1"`) || strings.Contains(got, `"m2"`) {
		t.Errorf("lines that gave up were written: %q", got)
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	f := register(t, t.TempDir(), "events.jsonl")
	deliver(t, f, orderPlaced("m1", "{}"))
	f.Close()
	wantClass(t, f.Deliver(t.Context(), orderPlaced("m2", "{}")), outbox.Unreachable)
}

func TestCheckPath(t *testing.T) {
	t.Parallel()
	allow := []string{"/srv/posthorn", "/mnt/usb/"}
	for _, path := range []string{
		"events.jsonl", "a/b/c.ndjson", "/srv/posthorn/x.log", "/mnt/usb/y.txt", "/mnt/usb//z.json", "./w.json", "/srv/posthorn/..x.log", "Ümlaut.log",
	} {
		if err := CheckPath(Config{Path: path, Allow: allow}); err != nil {
			t.Errorf("%q: %v", path, err)
		}
	}
	for _, path := range []string{
		"", ".", "/", "/srv/posthorn", "/srv/posthorn/", "/srv/posthornx/a.log", "/etc/passwd", "/etc/x.log", "../x.log", "a/../../x.log", "/srv/posthorn/../x.log", "a/../b.log",
		"x", "posthorn.db", "posthorn.db-wal", "x.LOG", "x.log\x00", "x\n.log", "\xff.log", strings.Repeat("a", 1024) + ".log", "/srv/posthorn/x.log/",
		strings.Repeat("a", 252) + ".log",
	} {
		if err := CheckPath(Config{Path: path, Allow: allow}); !errors.Is(err, ErrInvalidPath) {
			t.Errorf("%q: %v", path, err)
		}
	}
	for path, fits := range map[string]bool{"x.log": true, "/mnt/usb/acme/x.log": true, "/srv/posthorn/acme/a/x.log": true, "/mnt/usb/x.log": false,
		"/srv/posthorn/acmex/x.log": false, "/srv/posthorn/acme.log": false} {
		if err := CheckPath(Config{Path: path, Allow: allow, Below: "acme"}); (err == nil) != fits {
			t.Errorf("%q below acme: %v", path, err)
		}
	}
	if err := CheckPath(Config{Path: "x.log"}); !errors.Is(err, ErrInvalidPath) || !strings.Contains(err.Error(), "posthorn.yaml") {
		t.Errorf("no folder allowed: %v", err)
	}
	if err := CheckPath(Config{Path: "x.log", Allow: []string{"relative"}}); !errors.Is(err, ErrInvalidPath) {
		t.Errorf("a relative folder: %v", err)
	}
}

// TestAFileWithAnotherNameIsNotWritten: what is appended under a name in an allowed folder would stand in the other file too, posthorn.yaml for one.
func TestAFileWithAnotherNameIsNotWritten(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	config, path := filepath.Join(t.TempDir(), "posthorn.yaml"), filepath.Join(folder, "events.jsonl")
	if err := os.WriteFile(config, []byte("listen: 127.0.0.1:0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(config, path); err != nil {
		t.Fatalf("the folder for temporary files must take hard links: %v", err)
	}
	f := register(t, folder, path)
	refused := func() {
		t.Helper()
		failure := new(outbox.Failure)
		if err := f.Deliver(t.Context(), orderPlaced("m1", "{}")); !errors.As(err, &failure) || failure.Class != outbox.Failed || !errors.Is(err, regular.ErrLinked) {
			t.Errorf("delivered to a file with two names: %v", err)
		}
	}
	refused()
	if text, err := os.ReadFile(config); err != nil || string(text) != "listen: 127.0.0.1:0\n" {
		t.Errorf("the other file holds %q, %v", text, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	deliver(t, f, orderPlaced("m2", "{}"))
	if err := os.Link(path, filepath.Join(folder, "other.jsonl")); err != nil { // while it is open
		t.Fatal(err)
	}
	refused()
}
