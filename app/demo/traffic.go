package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/posthorn/posthorn/app/cli/client"
)

// depot is the business of the sample traffic: parcels are registered, sent and delivered, each step one transaction.
type depot struct {
	config Config
	screen *screen
	last   int64 // the number of the youngest parcel
	open   []parcel

	mu  sync.Mutex
	api *client.Client // nil while no process answers
}

type parcel struct {
	number string
	sent   bool
}

var (
	recipients = []string{"Ada Byron", "Emil Berliner", "Grace Murray", "Hedy Kiesler", "Konrad Horn", "Mary Somerville", "Otto Post", "Rosa Linde"}
	carriers   = []string{"Yellow Coach", "Night Mail", "Valley Cyclists", "River Barge"}
)

// transaction is the body of POST /v1/transactions.
type transaction struct {
	Changes []change `json:"changes"`
	Emits   []emit   `json:"emits"`
}

type change struct {
	Op         string         `json:"op"`
	Collection string         `json:"collection"`
	ID         string         `json:"id"`
	Body       map[string]any `json:"body"`
}

type emit struct {
	Type        string         `json:"type"`
	Payload     map[string]any `json:"payload"`
	OrderingKey string         `json:"ordering_key"`
}

func (d *depot) use(api *client.Client) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.api != nil {
		d.api.Close()
	}
	d.api = api
}

func (d *depot) client() *client.Client {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.api
}

// work makes one transaction after the other until the context ends.
func (d *depot) work(ctx context.Context) {
	// Numbers of an earlier run are not used again: no run makes more than one parcel a second for long.
	d.last = d.config.Now().Unix()
	tick := time.NewTicker(d.config.Every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			d.post(ctx, d.next())
		case <-ctx.Done():
			return
		}
	}
}

// next moves a parcel on, or registers one.
func (d *depot) next() transaction {
	now := d.config.Now().UTC().Format(time.RFC3339)
	if len(d.open) == 0 || len(d.open) < 6 && mathrand.IntN(3) == 0 {
		d.last++
		number := fmt.Sprintf("P-%d", d.last)
		recipient := recipients[mathrand.IntN(len(recipients))]
		d.open = append(d.open, parcel{number: number})
		return step(number, "registered", map[string]any{
			"parcel": number, "recipient": recipient, "registered_at": now, "weight_grams": 100 + mathrand.IntN(4900),
		})
	}
	i := mathrand.IntN(len(d.open))
	p := d.open[i]
	if !p.sent {
		d.open[i].sent = true
		return step(p.number, "sent", map[string]any{"parcel": p.number, "carrier": carriers[mathrand.IntN(len(carriers))], "sent_at": now})
	}
	d.open = slices.Delete(d.open, i, i+1)
	return step(p.number, "delivered", map[string]any{"parcel": p.number, "delivered_at": now})
}

func step(number, state string, payload map[string]any) transaction {
	return transaction{
		Changes: []change{{Op: "put", Collection: "parcels", ID: number, Body: map[string]any{"state": state}}},
		Emits:   []emit{{Type: "parcel-" + state, Payload: payload, OrderingKey: "parcels/" + number}},
	}
}

// post sends a transaction until it is answered. A crash may have eaten the answer to a commit, so every repetition has the same key.
func (d *depot) post(ctx context.Context, t transaction) {
	key := "demo-" + strings.ToLower(rand.Text())
	for ctx.Err() == nil {
		var answer struct {
			Messages []struct {
				ID   string `json:"id"`
				Type string `json:"type"`
			} `json:"messages"`
		}
		err := errNoProcess
		if api := d.client(); api != nil {
			err = api.Once(key).Do(ctx, http.MethodPost, "/v1/transactions", t, &answer)
		}
		problem := new(client.Problem)
		switch {
		case err == nil:
			for _, message := range answer.Messages {
				d.screen.staged(message.ID, message.Type)
			}
			return
		case errors.As(err, &problem) && problem.Status != http.StatusServiceUnavailable:
			d.screen.refused(t.Emits[0].Type, problem)
			return
		}
		sleep(ctx, 200*time.Millisecond)
	}
}

var errNoProcess = errors.New("no process answers")
