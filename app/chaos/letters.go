//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

func cutSpace(text string) (string, string, bool) { return strings.Cut(text, " ") }

// lookAtLetters remembers the dead letters that the API shows, to be compared at the end.
func (b *bed) lookAtLetters() error {
	status, text := b.call(mainTenant, http.MethodGet, "/v1/messages?state=dead-letter&limit=100", "")
	if status == 0 {
		return nil
	}
	var page struct {
		Messages []struct {
			Deliveries []struct {
				ID           int64     `json:"id"`
				State        string    `json:"state"`
				Attempt      int       `json:"attempt"`
				LastError    string    `json:"last_error"`
				FailureClass string    `json:"failure_class"`
				CompletedAt  time.Time `json:"completed_at"`
			}
		}
	}
	if err := json.Unmarshal(text, &page); status != http.StatusOK || err != nil {
		return fmt.Errorf("list dead letters: %d %.200s", status, text)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range page.Messages {
		for _, d := range m.Deliveries {
			if _, known := b.letters[fmt.Sprint(d.ID)]; d.State == "dead-letter" && !known {
				b.letters[fmt.Sprint(d.ID)] = letter{class: d.FailureClass, failure: d.LastError, attempts: d.Attempt, completed: d.CompletedAt.UnixMicro()}
			}
		}
	}
	return nil
}
