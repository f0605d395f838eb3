package app

import (
	"log/slog"
	"time"
)

// The names in a data folder.
const (
	DatabaseName = "posthorn.db"
	KeyName      = "posthorn.key"
	FilesName    = "files"
	ReserveName  = "posthorn.reserve"
)

// Options say what appliance to open.
type Options struct {
	Build Build
	// DataDir is the data folder; it is made when there is none. Required, unless DB is given.
	DataDir string
	// DB, unless empty, is a database that belongs to another program: messages are in it, everything else is in the data folder. Without
	// it the data folder says whether it lies beside one.
	DB string
	// AcceptLostTail: the database may be behind its mark, as after a restore.
	AcceptLostTail bool
	// Config is what the operator decided.
	Config Config
	// NoDispatch leaves deliveries to another start: for a single command.
	NoDispatch bool
	// LockWait is how long to wait for another process that holds the folder.
	LockWait time.Duration
	// Logger defaults to silence.
	Logger *slog.Logger
}
