package sink

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// journal appends entries to a file, one JSON object a line.
type journal struct {
	mu   sync.Mutex
	file *os.File
}

// openJournal opens path for appending and calls seen for each entry that it holds already. A line torn by a crash is left alone: the next entry
// starts on a line of its own.
func openJournal(path string, seen func(Entry)) (*journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if err := replay(file, seen); err != nil {
		file.Close()
		return nil, err
	}
	return &journal{file: file}, nil
}

func replay(file *os.File, seen func(Entry)) error {
	lines := bufio.NewReaderSize(file, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		var entry Entry
		if json.Unmarshal(line, &entry) == nil {
			seen(entry)
		}
		if errors.Is(err, io.EOF) {
			if len(line) > 0 {
				if _, err := file.WriteString("\n"); err != nil {
					return fmt.Errorf("end torn journal line: %w", err)
				}
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("read journal: %w", err)
		}
	}
}

// append writes one entry in one write, so that a kill tears at most the last line.
func (j *journal) append(entry Entry) error {
	line, err := json.Marshal(entry)
	if err != nil {
		return fmt.Errorf("write journal entry: %w", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write journal entry: %w", err)
	}
	return nil
}

func (j *journal) close() error {
	if j == nil {
		return nil
	}
	return j.file.Close()
}
