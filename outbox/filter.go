package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Filter says which messages a list holds. Tenant is required; the zero value of every other field lets everything through.
type Filter struct {
	Tenant TenantID
	// State is the message's, or, beside Handler, that of its delivery to that handler.
	State StateName
	// Type is a GLOB pattern: "order-placed", "order-*".
	Type    string
	Handler HandlerName
	// From and To bound the time of occurrence: from ≤ t < to.
	From, To time.Time
	// Text is looked for in the id and in the last errors, whatever its case.
	Text string
}

// Place is where a page of messages begins: after the message or delivery of this number. Zero is the newest.
type Place int64

// MessagePage is a part of a list of messages, the newest first, without payloads and attempts.
type MessagePage struct {
	Messages []MessageRecord
	// Next is where the next page begins; zero: there is none. A page may be short, even empty, and still have a next: it looks at a
	// bounded number of rows.
	Next Place
}

// listWindow is how many rows one page looks at.
const listWindow = 5000

// byDelivery reports whether a list walks the deliveries of one state, which a small index has together, rather than all messages. Its
// order is then that of deliveries, which differs only for what was sent again or routed later.
func (f Filter) byDelivery() bool {
	return f.State == StateDeadLetter || f.State == StateProcessing || f.State == StatePending
}

// ListMessages reads up to limit messages, the newest first, without ever looking at more than a bounded number of rows.
func ListMessages(ctx context.Context, db *sql.DB, f Filter, after Place, limit int) (MessagePage, error) {
	return listMessages(ctx, db, f, after, limit, listWindow)
}

func listMessages(ctx context.Context, db *sql.DB, f Filter, after Place, limit, window int) (MessagePage, error) {
	if after == 0 {
		after = 1<<63 - 1
	}
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return MessagePage{}, fmt.Errorf("list messages: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	walk := walkMessages
	if f.byDelivery() {
		walk = walkDeliveries
	}
	page, err := walk(ctx, tx, f, after, limit, window)
	if err == nil {
		err = page.fill(ctx, tx)
	}
	if err != nil {
		return MessagePage{}, fmt.Errorf("list messages: %w", err)
	}
	return page, nil
}

// The conditions that all lists share; each is off when its parameter is empty. The plus keeps the index by tenant out: it has no end.
const filterMessages = ` AND +m.tenant = :tenant
  AND (:type = '' OR m.type GLOB :type) AND (:from IS NULL OR m.occurred_at >= :from) AND (:to IS NULL OR m.occurred_at < :to)
  AND (:text = '' OR instr(lower(m.id), lower(:text)) > 0 OR EXISTS (SELECT 1 FROM outbox_deliveries t
    WHERE t.seq = m.seq AND instr(lower(t.last_error), lower(:text)) > 0))`

func (f Filter) args(more ...any) []any {
	return append([]any{
		sql.Named("tenant", string(f.Tenant)), sql.Named("type", f.Type), sql.Named("from", optionalTime(f.From)), sql.Named("to", optionalTime(f.To)),
		sql.Named("text", f.Text), sql.Named("handler", string(f.Handler)), sql.Named("state", string(f.State)),
	}, more...)
}

// fill reads the deliveries of the page's messages.
func (p *MessagePage) fill(ctx context.Context, tx *sql.Tx) error {
	at := map[int64]int{}
	seqs := make([]int64, len(p.Messages))
	for i, m := range p.Messages {
		at[m.Seq], seqs[i] = i, m.Seq
	}
	return eachDelivery(ctx, tx, seqs, func(seq int64, d DeliveryRecord) {
		m := &p.Messages[at[seq]]
		m.Deliveries = append(m.Deliveries, d)
	})
}

// take reads rows of messages, each with its place, up to limit; the row after that says that there are more.
func (p *MessagePage) take(rows *sql.Rows, limit int) (full bool, err error) {
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if len(p.Messages) == limit {
			return true, nil
		}
		var row messageRow
		if err := row.scan(rows, &p.Next); err != nil {
			return false, err
		}
		p.Messages = append(p.Messages, MessageRecord{Message: row.Message})
	}
	return false, rows.Err()
}

func intList(values []int64) string {
	b := []byte{'['}
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, v, 10)
	}
	return string(append(b, ']'))
}

// newest returns the n highest places, the highest first.
func newest(places []int64, n int) []int64 {
	slices.Sort(places)
	slices.Reverse(places)
	return places[:min(n, len(places))]
}
