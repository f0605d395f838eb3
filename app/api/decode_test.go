package api

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/posthorn/posthorn/app/mediator"
)

// FuzzDecode holds two things: what is refused is refused with a code, and what is taken means the same to the standard library, whose
// reading is laxer but not different.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"changes":[{"op":"put","collection":"a","id":"1","body":{"n":1e999},"if_version":0}],"emits":[{"type":"x","payload":[1, 2],"id":"\u0041"}]}`,
		`{"emits":[{"type":"\ud83d\ude00","payload":null,"deliver_at":null}]}`, `{"changes":null}`, `{"emits":[{"type":"\ud800","payload":1}]}`,
		`{"a":1,"A":2}`, `[`, "\xff", ` {} `, `{"changes":[{"op":"put","op":"put","collection":"a","id":"1"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var strict, lax transactionBody
		err := decode(body, &strict)
		var refusal *mediator.Refusal
		if err != nil {
			if !errors.As(err, &refusal) || refusal.Code == "" || refusal.Sentence == "" || statuses[refusal.Kind] == 0 {
				t.Fatalf("refused with %#v", err)
			}
			return
		}
		if err := json.Unmarshal(body, &lax); err != nil {
			t.Fatalf("taken, and the standard library says %v", err)
		}
		got, _ := json.Marshal(strict)
		want, _ := json.Marshal(lax)
		if string(got) != string(want) {
			t.Fatalf("read as %s, the standard library reads %s", got, want)
		}
	})
}
