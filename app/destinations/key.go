package destinations

import (
	"crypto/cipher"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/posthorn/posthorn/app/regular"
)

var (
	// ErrNoKey: the key file is not there.
	ErrNoKey = errors.New("there is no key file")
	// ErrBadKey: the key file holds no key.
	ErrBadKey = errors.New("the key file holds no key")
	// ErrSealBroken: what was sealed cannot be opened with this key, or belongs elsewhere.
	ErrSealBroken = errors.New("sealed with another key, or damaged")
)

// Key seals and opens secrets. It is safe for concurrent use.
type Key struct{ aead cipher.AEAD }

// sealVersion stands before everything sealed, so that another cipher can follow one day.
const sealVersion = 1

// maxKeyFile bounds a file that holds 64 digits.
const maxKeyFile = 4 << 10

// LoadKey reads a key file.
func LoadKey(path string) (*Key, error) {
	text, err := regular.Read(path, maxKeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNoKey, path)
	} else if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	raw, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(raw) != chacha20poly1305.KeySize {
		return nil, fmt.Errorf("%w: %s must hold 64 hexadecimal digits", ErrBadKey, path)
	}
	return newKey(raw)
}

// CreateKey makes a new key and its file, for its owner alone; the caller holds the data folder's lock. A file that is there already is kept,
// and is the error fs.ErrExist. The file is whole and on the disk before it has its name, since what is sealed with a lost key is lost.
func CreateKey(path string) (*Key, error) {
	raw := make([]byte, chacha20poly1305.KeySize)
	_, _ = rand.Read(raw) // never fails: the runtime aborts first
	folder := filepath.Dir(path)
	file, err := os.CreateTemp(folder, ".posthorn.key-*") // made with mode 0600
	if err != nil {
		return nil, fmt.Errorf("create key: %w", err)
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = file.WriteString(hex.EncodeToString(raw) + "\n")
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return nil, fmt.Errorf("create key: %w", err)
	}
	// The caller holds the data folder's lock, so nobody makes one in between.
	if _, err := os.Lstat(path); err == nil {
		return nil, fmt.Errorf("create key: %w", &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist})
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return nil, fmt.Errorf("create key: %w", err)
	}
	dir, err := os.Open(folder)
	if err != nil {
		return nil, fmt.Errorf("create key: %w", err)
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil {
		return nil, fmt.Errorf("create key: %w", err)
	}
	return newKey(raw)
}

func newKey(raw []byte) (*Key, error) {
	aead, err := chacha20poly1305.NewX(raw)
	if err != nil {
		return nil, fmt.Errorf("use key: %w", err)
	}
	return &Key{aead: aead}, nil
}

// Seal encrypts a secret. It opens only for the same owner, so that a row's secret cannot be moved to another row.
func (k *Key) Seal(secret []byte, owner string) []byte {
	sealed := make([]byte, 1+chacha20poly1305.NonceSizeX, 1+chacha20poly1305.NonceSizeX+len(secret)+chacha20poly1305.Overhead)
	sealed[0] = sealVersion
	_, _ = rand.Read(sealed[1:])
	return k.aead.Seal(sealed, sealed[1:], secret, []byte(owner))
}

// Open decrypts what Seal made for this owner.
func (k *Key) Open(sealed []byte, owner string) ([]byte, error) {
	if len(sealed) < 1+chacha20poly1305.NonceSizeX || sealed[0] != sealVersion {
		return nil, ErrSealBroken
	}
	nonce, text := sealed[1:1+chacha20poly1305.NonceSizeX], sealed[1+chacha20poly1305.NonceSizeX:]
	secret, err := k.aead.Open(nil, nonce, text, []byte(owner))
	if err != nil {
		return nil, ErrSealBroken
	}
	return secret, nil
}
