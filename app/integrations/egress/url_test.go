package egress_test

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/posthorn/posthorn/app/integrations/egress"
)

func TestCheckURL(t *testing.T) {
	t.Parallel()
	good := []string{
		"https://example.com", "http://example.com/", "https://example.com:8443/hook?x=1&y=%20", "https://EXAMPLE.com.", "https://xn--bcher-kva.example/",
		"https://my_service/hook", "https://8.8.8.8/", "https://[2606:4700:4700::1111]:443/", "http://a1.b2.c3d", "HTTPS://example.com/",
		"https://example.com/?q=a", "https://1.2.3.4.example",
	}
	for _, raw := range good {
		if err := (egress.Policy{}).CheckURL(raw); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
	bad := []string{
		"", "example.com", "/hook", "//example.com/", "ftp://example.com", "file:///etc/passwd", "gopher://example.com", "javascript:alert(1)", "https:",
		"https://", "https:///path", "https:example.com", "https://user@example.com", "https://user:pw@example.com", "https://@example.com",
		"https://example.com/#part", "https://example.com/#", "https://example.com:0/", "https://example.com:65536/", "https://example.com:/",
		"https://example.com:http/", "https://example.com:-1/", "https://exa mple.com/", "https://example.com/a b", "https://example.com/\n", "https://example.com\t/",
		" https://example.com", "https://example.com\\@evil.example/", "https://example.com/%zz", "https://.example.com/", "https://a..b/", "https://.",
		"https://" + strings.Repeat("a", 64) + ".example/", "https://" + strings.Repeat("a.", 127) + "a/", "https://example.com/" + strings.Repeat("a", 2048),
		"https://exam$ple.com/", "https://[::1", "https://::1/", "https://[1.1.1.1]/x y",
		// Spellings of 127.0.0.1 that are not addresses to us, and are to somebody.
		"http://2130706433/", "http://017700000001/", "http://0x7f000001/", "http://0x7f.1/", "http://0177.0.0.1/", "http://127.1/", "http://127.0.1/", "http://0/",
		"http://127.0.0.0x1/", "http://0X7F000001/", "http://127.0.0.01/", "http://1.1.1.1.1/", "http://999.1.1.1/", "http://0x/",
		"http://①②⑦.⓪.⓪.①/", "http://127。0。0。1/", "http://127.0.0.1/", "http://127．0．0．1/", "http://ｌocalhost/", "http://%E2%91%A0.0.0.1/",
		"http://l\u00adocalhost/", "http://example\u3002com/",
	}
	for _, raw := range bad {
		err := (egress.Policy{}).CheckURL(raw)
		if !errors.Is(err, egress.ErrInvalidURL) && !errors.Is(err, egress.ErrRefused) {
			t.Errorf("%q: %v, want it refused", raw, err)
		}
	}
}

func TestCheckURLJudgesLiterals(t *testing.T) {
	t.Parallel()
	lenient := egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	for raw, allowable := range map[string]bool{
		"http://127.0.0.1:80/": true, "http://127.8.9.1/": true, "http://[::ffff:127.0.0.1]/": true, "http://[::ffff:7f00:1]/": true, "http://127.0.0.1./": true,
		"http://localhost/": true, "http://LOCALHOST./": true, "http://app.localhost:3000/": true,
		"http://0.0.0.0/": false, "http://[::]/": false, "http://[::1]/": false, "http://10.0.0.1/": false, "http://169.254.169.254/latest/meta-data/": false,
		"http://[fd00:ec2::254]/": false, "http://[fe80::1%25eth0]/": false, "http://[64:ff9b::7f00:1]/": false, "http://[2002:7f00:1::]/": false,
		"http://[fec0::1]/": false, "http://100.64.0.1/": false, "http://198.18.0.1/": false, "http://192.0.0.1/": false, "http://255.255.255.255/": false,
	} {
		if err := (egress.Policy{}).CheckURL(raw); !errors.Is(err, egress.ErrRefused) {
			t.Errorf("%s: %v, want ErrRefused", raw, err)
		}
		if err := lenient.CheckURL(raw); (err == nil) != allowable {
			t.Errorf("%s with loopback allowed: %v", raw, err)
		}
	}
	err := (egress.Policy{}).CheckURL("http://127.0.0.1/")
	if want := `egress: {allow: ["127.0.0.0/8"]}`; !strings.Contains(err.Error(), want) {
		t.Errorf("%q does not hold %q", err, want)
	}
}

func TestCheckURLKeepsPasswordsToItself(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"https://user:hunter2@example.com/", "https://user:hunter2@exa mple/", "https://hunter2:%zz/", "ht!tp://hunter2/"} {
		if err := (egress.Policy{}).CheckURL(raw); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// FuzzCheckURL holds that whatever passes without an allow list is a plain http URL to a public address or to a plain ASCII name.
func FuzzCheckURL(f *testing.F) {
	for _, seed := range []string{
		"https://example.com/hook?x=1", "http://127.0.0.1/", "http://[::ffff:127.0.0.1]:80/", "http://①②⑦.0.0.1", "http://0x7f.1", "http://user@h/#f",
		"http://[fe80::1%25eth0]/", "http://127。0。0。1/", "http://a:99999", "https://xn--bcher-kva.example/", "http://1.1.1.1.", "http://%31/",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		err := (egress.Policy{}).CheckURL(raw)
		if err != nil {
			if !errors.Is(err, egress.ErrInvalidURL) && !errors.Is(err, egress.ErrRefused) {
				t.Fatalf("%q: an error of neither kind: %v", raw, err)
			}
			return
		}
		target, err := url.Parse(raw)
		if err != nil {
			t.Fatalf("%q passes and is no URL: %v", raw, err)
		}
		host := strings.TrimSuffix(target.Hostname(), ".")
		if target.User != nil || target.Fragment != "" || host == "" || (target.Scheme != "http" && target.Scheme != "https") {
			t.Fatalf("%q passes", raw)
		}
		if addr, err := netip.ParseAddr(host); err == nil {
			if addr.IsLoopback() || addr.IsPrivate() || addr.IsLinkLocalUnicast() || addr.IsMulticast() || addr.IsUnspecified() || addr.Is4In6() && addr.Unmap().IsPrivate() {
				t.Fatalf("%q passes", raw)
			}
			return
		}
		for _, r := range host {
			if r >= 0x80 || r <= ' ' {
				t.Fatalf("%q passes with the host %q", raw, host)
			}
		}
		if last := host[strings.LastIndex(host, ".")+1:]; strings.Trim(last, "0123456789") == "" || strings.EqualFold(host, "localhost") {
			t.Fatalf("%q passes with the host %q", raw, host)
		}
	})
}
