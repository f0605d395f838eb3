package horn_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// behindNginx starts Debian's nginx in front of the program, with the buffering, compression and time-outs that it has by default.
func behindNginx(t *testing.T, to string) (url string) {
	t.Helper()
	path, err := exec.LookPath("nginx")
	if err != nil {
		if path = "/usr/sbin/nginx"; !exists(path) {
			t.Fatal("no nginx found. Debian: apt-get install --no-install-recommends nginx; or run: make test")
		}
	}
	dir, port := t.TempDir(), freePort(t)
	config := fmt.Sprintf(`
daemon off;
pid %[1]s/pid;
error_log stderr;
worker_processes 1;
events { worker_connections 256; }
http {
	access_log off;
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
	sendfile on;
	tcp_nopush on;
	gzip on;
	gzip_proxied any;
	gzip_types text/plain text/event-stream application/json text/javascript text/css;
	proxy_buffering on;
	server {
		listen 127.0.0.1:%[2]d;
		location / {
			proxy_pass %[3]s;
			proxy_set_header Host $http_host;
		}
	}
}
`, dir, port, to)
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "-p", dir, "-e", "stderr", "-c", file)
	said := &tail{}
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	url = fmt.Sprintf("http://127.0.0.1:%d", port)
	waitFor(t, "nginx answers", func() bool {
		answer, err := http.Get(url + "/healthz")
		if err != nil {
			return false
		}
		_ = answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	}, said.String)
	return url
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestBehindNginx: through a proxy that buffers and compresses answers, screens hear of each change while nothing else is sent, and go on when the
// proxy's own connection to the program is cut.
func TestBehindNginx(t *testing.T) {
	t.Parallel()
	p := newProgram(t, quickRetries)
	url := behindNginx(t, p.url)
	overview := p.enter(url, "/")
	overview.mark()
	for round := range 3 {
		id := p.order(round, "order-placed")
		// Nothing polls what "Happening now" shows: it was heard of.
		overview.until(`document.querySelector('.recent a[href="/messages/`+id+`"]')`, "the overview has heard of the message")
	}
	overview.phase("live")
	message := p.enter(url, "/messages/"+p.order(9, "order-placed"))
	message.state("pending")
	p.destination("shop", newTarget(t).URL, "*")
	later := p.order(10, "order-cancelled")
	overview.until(`document.querySelector('.recent a[href="/messages/`+later+`"]')`, "the overview has heard of the latest message")
	for _, tb := range []*tab{overview, message} {
		tb.phase("live")
	}
	overview.unloaded()

	// The program dies: nginx answers 502, which is no refusal.
	overview.expect(append(brokenLine, "502", "504")...)
	message.expect(append(brokenLine, "502", "504")...)
	p.kill()
	overview.phase("stale")
	p.start()
	overview.phase("live")
	last := p.order(11, "order-placed")
	overview.until(`document.querySelector('.recent a[href="/messages/`+last+`"]')`, "the overview goes on")
	overview.unloaded()
	overview.clean()
	message.clean()
}
