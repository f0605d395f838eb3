package app

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
)

const (
	socketName = "posthorn.sock"
	// maxSocketPath is below what the systems allow for a socket's path: 104 bytes at least, its end included.
	maxSocketPath = 100
)

// SocketPath tells where the unix socket of a data folder is: inside it, or, if that path would be too long for a socket, in the user's
// runtime folder, else below /tmp, under a name made from the folder's.
func SocketPath(dataDir string) string {
	folder, err := filepath.Abs(dataDir)
	if err != nil {
		folder = dataDir
	}
	if resolved, err := filepath.EvalSymlinks(folder); err == nil {
		folder = resolved
	}
	path := filepath.Join(folder, socketName)
	if len(path) <= maxSocketPath {
		return path
	}
	sum := sha256.Sum256([]byte(folder))
	name := "posthorn-" + hex.EncodeToString(sum[:8]) + ".sock"
	if runtime := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(runtime) && len(runtime)+1+len(name) <= maxSocketPath {
		return filepath.Join(runtime, name)
	}
	return filepath.Join(sharedFolder(), name)
}

// sharedFolder is where a socket goes that fits nowhere else: in a place that others can write to.
func sharedFolder() string { return filepath.Join("/tmp", "posthorn-"+strconv.Itoa(os.Geteuid())) }

// listenSocket binds the unix socket of a data folder, for its owner alone. The caller holds the folder's lock, so that a socket that is there
// already was left by a process that ended without good-bye.
func listenSocket(dataDir string) (net.Listener, error) {
	path := SocketPath(dataDir)
	if folder := filepath.Dir(path); folder == sharedFolder() {
		if err := ownFolder(folder); err != nil {
			return nil, fmt.Errorf("bind unix socket: %w", err)
		}
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("bind unix socket: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("bind unix socket: %s is there and is no socket; move it away", path)
	default:
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("remove stale unix socket: %w", err)
		}
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("bind unix socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("bind unix socket: %w", err)
	}
	return listener, nil
}

// ownFolder makes a folder for its owner alone. One that is there already must be a folder that nobody else can put a socket into.
func ownFolder(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() || !ownedByUs(info) || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s must be a folder of this user that no other can write to", path)
	}
	return nil
}
