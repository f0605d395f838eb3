package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"github.com/posthorn/posthorn/app/integrations/egress"
	"github.com/posthorn/posthorn/app/integrations/webhook"
	"github.com/posthorn/posthorn/outbox"
)

func Example() {
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "30")
		http.Error(w, "come back later", http.StatusServiceUnavailable)
	}))
	defer target.Close()

	hook, err := webhook.New(webhook.Config{
		URL:     target.URL + "/hook",
		Secrets: []webhook.Secret{webhook.GenerateSecret()},
		Egress:  egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer hook.Close()
	err = hook.Deliver(context.Background(), outbox.Delivery{
		Attempt: 1, Fence: 7,
		Message: outbox.Message{ID: "order-1001", Type: "order-placed", SchemaVersion: 1, ContentType: "application/json", Payload: []byte(`{"order":1001}`)},
	})
	var failure *outbox.Failure
	if errors.As(err, &failure) {
		fmt.Println(failure.Class, failure.RetryAfter, failure.Excerpt)
	}
	// Output: throttled 30s come back later
}
