package app

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/posthorn/posthorn/app/cli"
)

func TestConfigFile(t *testing.T) {
	t.Parallel()
	config, err := parseConfig("posthorn.yaml", []byte(`
listen: 127.0.0.1:9000
hosts: [posthorn.example.org]
data_dir: /var/lib/posthorn
egress: {allow: ["127.0.0.0/8", "10.1.2.3"]}
files: {allow: [/srv/out]}
settings:
  delivery-timeout: {value: 20s, observation: "the ledger needs 16 s at month end"}
log: {level: debug, format: json}
`))
	if err != nil {
		t.Fatal(err)
	}
	if config.Listen != "127.0.0.1:9000" || config.DataDir != "/var/lib/posthorn" || config.Files.Allow[0] != "/srv/out" {
		t.Errorf("config %+v", config)
	}
	if err := config.policy.Check(netip.MustParseAddr("127.0.0.1")); err != nil {
		t.Errorf("egress: %v", err)
	}
	set, err := loadRecords(t.TempDir(), config.Settings)
	if err != nil || set.Duration("delivery-timeout").String() != "20s" {
		t.Errorf("settings: %v", err)
	}
	for _, empty := range []string{"", "# nothing\n"} {
		if _, err := parseConfig("posthorn.yaml", []byte(empty)); err != nil {
			t.Errorf("an empty file: %v", err)
		}
	}
}

func TestConfigFileIsReadStrictly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		line int
		says string
	}{
		"listen: a\nlisn: b\n":   {2, "lisn"},
		"listen: a\nlisten: b\n": {2, "listen"},
		"egress:\n  deny: []\n":  {2, "deny"},
		"listen: [1]\n":          {1, ""},
		"listen: a\nhosts: &a [x, x]\negress: {allow: *a}\n": {2, "anchors and aliases"},
		"hosts: " + strings.Repeat("[", 100_000):             {1, "nested too deeply"},
		"listen: {\n":                                        {1, ""},
		"egress: {allow: [nonsense]}\n":                      {0, "egress.allow"},
		"files: {allow: [relative]}\n":                       {0, "files.allow"},
		"files: {allow: [/]}\n":                              {0, "files.allow"},
		"hosts: ['http://x']\n":                              {0, "hosts"},
		"tls: {certificate: x}\n":                            {0, "tls"},
		"log: {level: loud}\n":                               {0, "log.level"},
		"log: {format: xml}\n":                               {0, "log.format"},
		"listen: \xff\n":                                     {0, "UTF-8"},
		"# " + strings.Repeat("x", maxConfig):                {0, "KiB"},
		"hosts: [" + strings.Repeat("a,", maxHosts+1) + "a]": {0, "hosts"},
	} {
		_, err := parseConfig("posthorn.yaml", []byte(text))
		var wrong *ConfigError
		if !errors.As(err, &wrong) || wrong.Line != want.line && want.line != 0 || !strings.Contains(wrong.Text, want.says) {
			t.Errorf("%.60q: %v, want line %d and %q", text, err, want.line, want.says)
		}
		if strings.Contains(text, "lisn") && !strings.Contains(wrong.Hint(), "insecure_listen") {
			t.Errorf("hint %q does not list the keys", wrong.Hint())
		}
	}
}

func TestConfigure(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	named := filepath.Join(folder, "own.yaml")
	for path, text := range map[string]string{named: "data_dir: /named\nlisten: 127.0.0.1:1\n", filepath.Join(folder, ConfigName): "listen: 127.0.0.1:2\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct{ dataDir, file, wantDir, wantListen string }{
		"neither":          {"", filepath.Join(folder, "own.yaml"), "/named", "127.0.0.1:1"},
		"folder":           {folder, "", folder, "127.0.0.1:2"},
		"both":             {folder, named, folder, "127.0.0.1:1"},
		"folder without":   {filepath.Join(folder, "none"), "", filepath.Join(folder, "none"), ""},
		"nothing is given": {"", "", cli.DefaultDataDir, ""},
	} {
		config, dataDir, err := configure(c.dataDir, c.file)
		if err != nil || dataDir != c.wantDir || config.Listen != c.wantListen {
			t.Errorf("%s: %q, %q, %v", name, dataDir, config.Listen, err)
		}
	}
	if _, _, err := configure(folder, filepath.Join(folder, "missing.yaml")); err == nil {
		t.Error("a file that was named and is missing is no error")
	}
}

func FuzzConfig(f *testing.F) {
	f.Add([]byte("listen: 127.0.0.1:0\nsettings: {port: {value: 1, observation: x}}\n"))
	f.Add([]byte("a: &x [*x]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		config, err := parseConfig("posthorn.yaml", text)
		if err != nil && len(config.Hosts) > 0 {
			t.Error("a refused file leaves something behind")
		}
	})
}
