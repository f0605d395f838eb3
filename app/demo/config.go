package demo

import (
	"errors"
	"io"
	"time"
)

// Config says how a demo runs.
type Config struct {
	// DataDir is the data folder. Required.
	DataDir string
	// Listen is where the API answers, host:port.
	Listen string
	// Receiver is where the built-in receiver listens the first time; later starts use the same address again. Defaults to any port.
	Receiver string
	// Every is the time between two transactions of the sample traffic; negative sends none. Defaults to 1 second.
	Every time.Duration
	// Calm has the receiver behave.
	Calm bool
	// AcceptLostTail has the first start go on although commits are lost.
	AcceptLostTail bool
	// Executable is the program that is run as `serve`. Required.
	Executable string
	// Out gets a line for each event.
	Out io.Writer
	// JSON makes them JSON.
	JSON bool
	// Color paints them.
	Color bool
	// Now defaults to time.Now.
	Now func() time.Time
}

func (c Config) validate() (Config, error) {
	if c.DataDir == "" || c.Executable == "" || c.Out == nil {
		return c, errors.New("run demo: a data folder, a program and an output are needed")
	}
	if c.Receiver == "" {
		c.Receiver = "127.0.0.1:0"
	}
	if c.Every == 0 {
		c.Every = time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c, nil
}

// Failure ends a demo, with the exit code of the process that could not run, and what to do.
type Failure struct {
	Code     int
	Sentence string
	Advice   string
}

// Error is the sentence.
func (f *Failure) Error() string { return f.Sentence }

// ExitCode is the code that the program exits with.
func (f *Failure) ExitCode() int { return f.Code }

// Hint says what to do.
func (f *Failure) Hint() string { return f.Advice }
