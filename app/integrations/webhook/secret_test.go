package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestSecretRoundTrip(t *testing.T) {
	t.Parallel()
	secret := GenerateSecret()
	text := secret.Reveal()
	parsed, err := ParseSecret(text)
	if err != nil || parsed.Reveal() != text || len(parsed.key) != 32 {
		t.Fatalf("round trip: %v", err)
	}
	if GenerateSecret().Reveal() == text {
		t.Fatal("two secrets are the same")
	}
}

func TestParseSecretRefuses(t *testing.T) {
	t.Parallel()
	good := strings.TrimPrefix(GenerateSecret().Reveal(), "whsec_")
	for name, text := range map[string]string{
		"empty": "", "no prefix": good, "prefix only": "whsec_", "wrong case": "WHSEC_" + good, "no padding": "whsec_" + strings.TrimRight(good, "="),
		"URL alphabet": "whsec_" + strings.Repeat("-_", 22), "space": "whsec_ " + good, "newline": "whsec_" + good + "\n", "23 bytes": "whsec_" + strings.Repeat("A", 31) + "=",
		"66 bytes": "whsec_" + strings.Repeat("A", 88), "asymmetric": "whsk_" + good, "bits behind the end": "whsec_" + strings.Repeat("A", 42) + "B=",
	} {
		_, err := ParseSecret(text)
		if !errors.Is(err, ErrInvalidSecret) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), good) {
			t.Errorf("%s: the error repeats the secret", name)
		}
	}
}

// TestSecretsDoNotPrint tries every ordinary way of printing one by accident.
func TestSecretsDoNotPrint(t *testing.T) {
	t.Parallel()
	secret := GenerateSecret()
	var out bytes.Buffer
	config := Config{URL: "https://example.com", Secrets: []Secret{secret}}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X"} {
		fmt.Fprintf(&out, verb+"\n"+verb+"\n"+verb+"\n", secret, &secret, config)
	}
	slog.New(slog.NewJSONHandler(&out, nil)).Info("secret", "secret", secret, "config", config)
	slog.New(slog.NewTextHandler(&out, nil)).Info("secret", "secret", secret, "config", config)
	if text, err := json.Marshal(secret); err == nil {
		out.Write(text)
	}
	printed := strings.ToLower(out.String())
	encoded := strings.TrimPrefix(secret.Reveal(), "whsec_")
	for _, leak := range []string{
		encoded, fmt.Sprintf("%x", secret.key), fmt.Sprintf("%x", encoded), strings.Trim(fmt.Sprintf("%d", secret.key), "[]"),
		strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%#v", secret.key), "[]byte{"), "}"),
	} {
		if strings.Contains(printed, strings.ToLower(leak)) {
			t.Errorf("printed %q", leak)
		}
	}
}
