package app

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/posthorn/posthorn/app/cli"
)

func TestListenAddress(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"": "127.0.0.1:7678", "127.0.0.1:0": "127.0.0.1:0", "[::1]:80": "[::1]:80", ":80": ":80",
		"80": "", "127.0.0.1": "", "127.0.0.1:": "", "127.0.0.1:99999": "", "127.0.0.1:-1": "", "127.0.0.1:http": "", "127.0.0.1:+80": ""} {
		got, err := listenAddress(given, 7678)
		if got != want || (err != nil) != (want == "") || err != nil && !errors.Is(err, errListen) {
			t.Errorf("%q: %q, %v; want %q", given, got, err, want)
		}
	}
}

func TestNetworkNeedsTLSOrConsent(t *testing.T) {
	t.Parallel()
	for address, open := range map[string]bool{"127.0.0.1:0": true, "127.9.9.9:1": true, "[::1]:1": true, "localhost:1": true, "[::ffff:127.0.0.1]:1": true,
		":1": false, "0.0.0.0:1": false, "[::]:1": false, "192.168.1.4:1": false, "example.org:1": false} {
		err := judgeExposure(address, false, false)
		if (err == nil) != open {
			t.Errorf("%s: %v", address, err)
		}
		if err != nil {
			var coded interface{ ExitCode() int }
			var hinted interface{ Hint() string }
			err = exit(err)
			if !errors.As(err, &coded) || coded.ExitCode() != cli.ExitUsage || !errors.As(err, &hinted) || !strings.Contains(hinted.Hint(), "--insecure-listen") {
				t.Errorf("%s: exit %v", address, err)
			}
		}
		if judgeExposure(address, true, false) != nil || judgeExposure(address, false, true) != nil {
			t.Errorf("%s: refused with TLS or consent", address)
		}
	}
}

func TestSocketPathFits(t *testing.T) {
	t.Parallel()
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	short := filepath.Join(folder, "d")
	if got := SocketPath(short); len(short) < 80 && got != filepath.Join(short, "posthorn.sock") {
		t.Errorf("socket of %s at %s", short, got)
	}
	long := filepath.Join(folder, strings.Repeat("d", 120))
	got := SocketPath(long)
	if len(got) > maxSocketPath || got != SocketPath(long) || got == SocketPath(long+"x") {
		t.Errorf("socket of a long folder at %s", got)
	}
	// A link to the folder means the same socket.
	if err := os.MkdirAll(long, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(folder, "l")
	if err := os.Symlink(long, link); err != nil {
		t.Fatal(err)
	}
	if SocketPath(link) != SocketPath(long) {
		t.Errorf("by a link the socket is at %s", SocketPath(link))
	}
}

func TestStaleSocketIsReplacedAndAFileIsNot(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for range 2 {
		listener, err := listenSocket(folder)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(SocketPath(folder)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("socket %v, %v", info.Mode(), err)
		}
		// As a killed process leaves it.
		listener.(interface{ SetUnlinkOnClose(bool) }).SetUnlinkOnClose(false)
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(SocketPath(folder)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(SocketPath(folder), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listenSocket(folder); err == nil {
		t.Error("a file in the socket's place was replaced")
	}
}
