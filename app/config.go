package app

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/netip"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/posthorn/posthorn/app/inbound"
	"github.com/posthorn/posthorn/app/integrations/egress"
	"github.com/posthorn/posthorn/app/records"
	"github.com/posthorn/posthorn/app/regular"
	"github.com/posthorn/posthorn/outbox"
)

// ConfigName is the configuration file that a data folder may hold.
const ConfigName = "posthorn.yaml"

// maxConfig bounds the configuration file: far above what a person writes.
const maxConfig = 256 << 10

// Config is posthorn.yaml: what the operator of a machine decides. A flag goes before an environment variable (POSTHORN_…), which goes
// before this file, which goes before the defaults.
type Config struct {
	// Listen is where HTTP is answered. Defaults to 127.0.0.1 and the port of the setting.
	Listen string `yaml:"listen"`
	// InsecureListen allows Listen to be no loopback address without TLS, as behind a proxy that has it.
	InsecureListen bool `yaml:"insecure_listen"`
	// TLS, if set, is what HTTP is answered with.
	TLS *TLSFiles `yaml:"tls"`
	// Hosts are the names under which requests come, beside localhost and addresses. Others are refused, since a hostile page can have its
	// own name resolve to this machine.
	Hosts []string `yaml:"hosts"`
	// Proxies are the addresses of the proxies in front, whose X-Forwarded-For is believed where live connections of an address are counted.
	Proxies []string `yaml:"proxies"`
	// DataDir is the data folder.
	DataDir string `yaml:"data_dir"`
	// Egress is where webhooks may go beside the public internet.
	Egress struct {
		Allow []string `yaml:"allow"`
	} `yaml:"egress"`
	// Files is where file destinations may write beside <data-dir>/files.
	Files struct {
		Allow []string `yaml:"allow"`
	} `yaml:"files"`
	// Alerts is who is told of alerts: the name of one of the main tenant's destinations, used past its lane. Without one they are shown, and
	// logged.
	Alerts struct {
		Destination string `yaml:"destination"`
	} `yaml:"alerts"`
	// Settings are the operator's values for setting records, each with what it was drawn from.
	Settings map[string]records.Override `yaml:"settings"`
	// Lending switches the lending branch on: the reference domain, which demo shows.
	Lending bool `yaml:"lending"`
	// Notices is the provider that tells the branch's members something. Without a URL notices are written to <data-dir>/files/notices.jsonl.
	Notices struct {
		URL   string `yaml:"url"`
		Token string `yaml:"token"`
	} `yaml:"notices"`
	// Inbound are the sources that may send events to /v1/inbound/{source}, by name.
	Inbound map[string]inbound.Source `yaml:"inbound"`
	// Log says what is logged and how.
	Log struct {
		Level  string `yaml:"level"`  // debug, info, warn, error; defaults to info
		Format string `yaml:"format"` // text, json; defaults to text
	} `yaml:"log"`

	policy  egress.Policy
	proxies []netip.Prefix
}

// TLSFiles are a certificate chain and its key, PEM.
type TLSFiles struct {
	Certificate string `yaml:"certificate"`
	Key         string `yaml:"key"`
}

// ConfigError says what is wrong with a configuration file, and where.
type ConfigError struct {
	File   string
	Line   int // 0 where the whole file is meant
	Text   string
	Advice string
}

// Error is "file:line: what is wrong".
func (e *ConfigError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Text)
	}
	return e.File + ": " + e.Text
}

// Hint says what to do.
func (e *ConfigError) Hint() string { return e.Advice }

// ReadConfig reads a configuration file. A path that was not asked for by name may be missing.
func ReadConfig(path string, asked bool) (Config, error) {
	text, err := regular.Read(path, maxConfig)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !asked:
		return Config{}, nil
	case errors.Is(err, regular.ErrTooLong):
		return Config{}, errLongConfig(path)
	case err != nil:
		return Config{}, &ConfigError{File: path, Text: "it cannot be read: " + err.Error(), Advice: "put a file there, name another with --config, or do without one"}
	}
	return parseConfig(path, text)
}

func errLongConfig(path string) error {
	return &ConfigError{File: path, Text: fmt.Sprintf("it has more than %d KiB", maxConfig>>10)}
}

const configKeys = "the keys are listen, insecure_listen, tls, hosts, proxies, data_dir, egress, files, alerts, settings, lending, notices, inbound, log"

// parseConfig reads the file's text: every key known, none twice.
func parseConfig(path string, text []byte) (Config, error) {
	var config Config
	switch {
	case len(text) > maxConfig:
		return config, errLongConfig(path)
	case !utf8.Valid(text):
		return config, &ConfigError{File: path, Text: "it is not UTF-8 text", Advice: "save it as UTF-8"}
	}
	if err := decodeConfig(text, &config); err != nil {
		return Config{}, configProblem(path, err)
	}
	if err := config.judge(path); err != nil {
		return Config{}, err
	}
	return config, nil
}

// decodeConfig turns a panic of the YAML library, which some malformed texts cause, into an error.
func decodeConfig(text []byte, into *Config) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("this is no YAML that can be read")
		}
	}()
	if err := records.CheckYAML(text); err != nil {
		return err
	}
	err = yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()).Decode(into)
	if errors.Is(err, io.EOF) { // empty, or comments only
		return nil
	}
	return err
}

func configProblem(path string, err error) error {
	problem := &ConfigError{File: path, Text: err.Error()}
	var located yaml.Error
	if errors.As(err, &located) {
		problem.Text = located.GetMessage()
		if token := located.GetToken(); token != nil && token.Position != nil {
			problem.Line = token.Position.Line
		}
	}
	problem.Text, _, _ = strings.Cut(problem.Text, "\n")
	problem.Advice = "the README shows the form of each key"
	if strings.Contains(problem.Text, "unknown field") {
		problem.Advice = configKeys
	}
	return problem
}

// The bounds of lists in the file.
const (
	maxHosts  = 100
	maxAllow  = 1000
	maxFolder = 100
)

// judge checks what the types do not say.
func (c *Config) judge(path string) error {
	wrong := func(text, advice string) error { return &ConfigError{File: path, Text: text, Advice: advice} }
	var err error
	switch {
	case len(c.Hosts) > maxHosts || len(c.Proxies) > maxHosts || len(c.Egress.Allow) > maxAllow || len(c.Files.Allow) > maxFolder:
		return wrong(fmt.Sprintf("there are more than %d hosts or proxies, %d egress prefixes or %d folders", maxHosts, maxAllow, maxFolder), "")
	case c.TLS != nil && (c.TLS.Certificate == "" || c.TLS.Key == ""):
		return wrong("tls needs a certificate and a key", "tls: {certificate: /path/chain.pem, key: /path/key.pem}")
	}
	proxies, err := egress.ParseAllow(c.Proxies)
	if err != nil {
		return wrong("proxies: an entry is neither an address nor a prefix", `proxies: ["10.0.0.5"]`)
	}
	c.proxies = proxies.Allow
	if c.policy, err = egress.ParseAllow(c.Egress.Allow); err != nil {
		return wrong("egress.allow: "+err.Error(), `egress: {allow: ["10.0.0.0/8"]}`)
	}
	for _, folder := range c.Files.Allow {
		if !filepath.IsAbs(folder) || filepath.Clean(folder) != folder || folder == "/" {
			return wrong(fmt.Sprintf("files.allow: %q is not the absolute path of a folder", folder), "files: {allow: [/var/lib/orders]}")
		}
	}
	for _, host := range c.Hosts {
		if host == "" || len(host) > 253 || strings.ContainsAny(host, "/: \t*") {
			return wrong(fmt.Sprintf("hosts: %q is not a host's name", host), "hosts: [posthorn.example.org]; without scheme and port")
		}
	}
	for name, source := range c.Inbound {
		if err := source.Check(name); err != nil {
			return wrong(err.Error(), "inbound: {accounts: {secret: whsec_…}}")
		}
	}
	if c.Notices.URL != "" {
		if err := c.policy.CheckURL(c.Notices.URL); err != nil {
			return wrong("notices.url: "+err.Error(), "")
		}
	}
	if name := c.Alerts.Destination; name != "" && !outbox.ValidID(name) {
		return wrong("alerts.destination is no name of a destination", "alerts: {destination: NAME}; posthorn destinations list shows the names")
	}
	if _, err := c.level(); err != nil {
		return wrong("log.level must be debug, info, warn or error", "")
	}
	if f := c.Log.Format; f != "" && f != "text" && f != "json" {
		return wrong("log.format must be text or json", "")
	}
	return nil
}

func (c *Config) level() (level slog.Level, err error) {
	switch c.Log.Level {
	case "", "debug", "info", "warn", "error":
		if c.Log.Level != "" {
			err = level.UnmarshalText([]byte(c.Log.Level))
		}
		return level, err
	}
	return level, errors.New("unknown level")
}

// logger makes the process's logger. slog quotes what could forge a line.
func (c *Config) logger(to io.Writer) *slog.Logger {
	level, err := c.level()
	if err != nil {
		level = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: level}
	if c.Log.Format == "json" {
		return slog.New(slog.NewJSONHandler(to, options))
	}
	return slog.New(slog.NewTextHandler(to, options))
}
