package destinations

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestKeyFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "posthorn.key")
	if _, err := LoadKey(path); !errors.Is(err, ErrNoKey) {
		t.Errorf("load nothing: %v", err)
	}
	key, err := CreateKey(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key file %v, %v", info.Mode(), err)
	}
	if _, err := CreateKey(path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("create twice: %v", err)
	}
	again, err := LoadKey(path)
	if err != nil {
		t.Fatal(err)
	}
	sealed := key.Seal([]byte("secret"), "row/1")
	if bytes.Contains(sealed, []byte("secret")) || bytes.Equal(sealed, key.Seal([]byte("secret"), "row/1")) {
		t.Error("the seal is plain, or repeats itself")
	}
	if plain, err := again.Open(sealed, "row/1"); err != nil || string(plain) != "secret" {
		t.Errorf("open: %q, %v", plain, err)
	}
	if _, err := again.Open(sealed, "row/2"); !errors.Is(err, ErrSealBroken) {
		t.Errorf("open for another row: %v", err)
	}
	for i := range sealed {
		spoiled := bytes.Clone(sealed)
		spoiled[i] ^= 1
		if _, err := again.Open(spoiled, "row/1"); !errors.Is(err, ErrSealBroken) {
			t.Fatalf("byte %d changed: %v", i, err)
		}
		if _, err := again.Open(sealed[:i], "row/1"); !errors.Is(err, ErrSealBroken) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
	if err := os.WriteFile(path, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadKey(path); !errors.Is(err, ErrBadKey) {
		t.Errorf("load nonsense: %v", err)
	}
}
