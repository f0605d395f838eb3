package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/posthorn/posthorn/outbox"
	"github.com/posthorn/posthorn/outbox/mutant"
	"golang.org/x/net/http/httpguts"
)

// traceparent is version 00 of the W3C's form, and later ones cut to it.
var traceparent = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// request maps a delivery to HTTP: the only place that knows how a message looks on this wire.
func (w *Webhook) request(ctx context.Context, d outbox.Delivery, now time.Time) (*http.Request, error) {
	message := d.Message
	if mutant.NewIDOnRetry && d.Attempt > 1 {
		message.ID += outbox.MessageID("-" + strconv.Itoa(d.Attempt))
	}
	if mutant.JSONReencoded {
		var value any
		if json.Unmarshal(message.Payload, &value) == nil {
			message.Payload, _ = json.Marshal(value)
		}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.config.URL, bytes.NewReader(message.Payload))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	signature, err := sign(w.signers, string(message.ID), now, message.Payload)
	if err != nil {
		return nil, err
	}
	contentType := message.ContentType
	if contentType == "" {
		contentType = "application/octet-stream"
	}
	header := request.Header
	header.Set("Content-Type", contentType)
	header.Set("User-Agent", "Posthorn/"+w.config.Version)
	header.Set("webhook-id", string(message.ID))
	header.Set("webhook-timestamp", strconv.FormatInt(now.Unix(), 10))
	header.Set("webhook-signature", signature)
	header.Set("posthorn-attempt", strconv.Itoa(d.Attempt))
	header.Set("posthorn-fence", strconv.FormatInt(int64(d.Fence), 10))
	header.Set("posthorn-type", message.Type)
	header.Set("posthorn-schema-version", strconv.Itoa(message.SchemaVersion))
	if parent := message.Headers["traceparent"]; traceparent.MatchString(parent) {
		header.Set("traceparent", parent)
	}
	for name, values := range header {
		// The transport would refuse it too, but as if no connection could be made.
		if !httpguts.ValidHeaderFieldValue(values[0]) {
			return nil, fmt.Errorf("make request: the message's value for the header %s cannot be sent", name)
		}
	}
	return request, nil
}
