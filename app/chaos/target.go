//go:build linux

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"time"
)

// hostile is every misdeed that a later attempt outlives; the cheap ones come more often.
func hostile() []misdeed {
	cheap := []misdeed{answer500, answer503Asked, answer429Asked, answer408, resetBefore, resetAfter200, resetAfter500, handled500, garbage, drip}
	var list []misdeed
	for range 6 {
		list = append(list, cheap...)
	}
	return append(list, headerBomb, informational, tooLate, hugeBody)
}

func targetFaults() []fault {
	beds := []destination{
		{name: "plain", tenant: mainTenant, types: "order-*"},
		{name: "hostile", tenant: mainTenant, types: "order-*", share: 0.5, misdeeds: hostile()},
		{name: "rude", tenant: mainTenant, types: "order-*", share: 0.3, misdeeds: hostile()},
		{name: "elsewhere", tenant: otherTenant, types: "order-*", share: 0.3, misdeeds: hostile()},
		{name: "doom", tenant: mainTenant, types: "doom-*", share: 1, misdeeds: []misdeed{answer422, redirect}},
		{name: "nowhere", tenant: mainTenant, types: "order-*", url: "https://no-such-host.invalid/", endless: true},
	}
	return []fault{
		{name: "hostile-targets", about: "resets, drips, floods, bombs, junk, time-outs, NXDOMAIN", cycles: [3]int{4, 8, 600}, seconds: 32, bed: options{destinations: beds, workers: 12}, cycle: enduring},
		{name: "hopeless-target", about: "a target that fails for good: given up at the bound, and not before", cycles: [3]int{2, 4, 40}, seconds: 8,
			bed: options{destinations: append(standard(), destination{name: "hopeless", tenant: mainTenant, types: "doom-*", share: 1, misdeeds: []misdeed{answer500, answer408}}),
				bound: hopelessBound}, cycle: giveUp},
		{name: "bad-tls", about: "a target whose certificate nobody vouches for", cycles: [3]int{0, 2, 10}, seconds: 4, bed: options{destinations: standard()}, cycle: badTLS},
		{name: "gone", about: "410: the destination is disabled and its backlog held", cycles: [3]int{0, 2, 10}, seconds: 7, cycle: goneAndBack},
	}
}

// hopelessBound is small enough for a run to reach it, and large enough for what a target does that behaves in the end.
const hopelessBound = 8

// giveUp lets the load run, with a message among it that the hopeless target gets for certain.
func giveUp(ctx context.Context, b *bed, random *mathrand.Rand) (bool, error) {
	id := fmt.Sprintf("hopeless-%d", random.Uint32())
	if v := b.stage(mainTenant, id, 2); v != acknowledged {
		return false, fmt.Errorf("stage %s: %s", id, v)
	}
	return enduring(ctx, b, random)
}

// enduring lets the load run; the targets are the fault.
func enduring(ctx context.Context, b *bed, _ *mathrand.Rand) (bool, error) {
	_, before := b.receiver.counted()
	b.run(ctx, 150*time.Millisecond)
	b.load.stop()
	// The queue must not outgrow what the targets let through.
	for range 100 {
		n, err := b.waiting()
		if err != nil {
			return false, err
		}
		if n < 1500 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	_, after := b.receiver.counted()
	return after > before, b.resolve(ctx)
}

// badTLS sends to a target with a certificate of its own making.
func badTLS(ctx context.Context, b *bed, random *mathrand.Rand) (bool, error) {
	certificate, err := selfSigned()
	if err != nil {
		return false, err
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
	if err != nil {
		return false, fmt.Errorf("listen with TLS: %w", err)
	}
	got := make(chan struct{}, 1)
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		b.violate("tls", "a webhook was sent to a target whose certificate nobody vouches for")
		w.WriteHeader(http.StatusOK)
	}), ConnState: func(net.Conn, http.ConnState) {
		select {
		case got <- struct{}{}:
		default:
		}
	}}
	go func() { _ = server.Serve(listener) }() // ends with Close
	defer server.Close()
	d := destination{name: fmt.Sprintf("forged-%d", random.Uint32()), tenant: mainTenant, types: "order-*", url: "https://" + listener.Addr().String() + "/", endless: true}
	if err := b.create(d); err != nil {
		return false, err
	}
	defer func() { _, _ = b.call(mainTenant, http.MethodDelete, "/v1/destinations/"+d.name, "") }()
	b.run(ctx, 300*time.Millisecond)
	b.load.stop()
	select {
	case <-got:
		time.Sleep(200 * time.Millisecond)
		return true, nil
	case <-time.After(3 * time.Second):
		return false, nil
	}
}

func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make key: %w", err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "forged"}, NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// goneAndBack has a target say that it is gone, and come back when the operator resumes it. Its ordered messages would wait behind the dead letter, so
// it gets those without a key.
func goneAndBack(ctx context.Context, b *bed, _ *mathrand.Rand) (bool, error) {
	b.receiver.change("doom", 1, gone)
	disabled := false
	b.load.start(ctx)
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline) && !disabled; time.Sleep(20 * time.Millisecond) {
		status, text := b.call(mainTenant, http.MethodGet, "/v1/destinations/doom", "")
		var said struct{ State string }
		if err := json.Unmarshal(text, &said); status != http.StatusOK || err != nil {
			return false, fmt.Errorf("read destination: %d %.200s", status, text)
		}
		disabled = said.State == "disabled"
	}
	b.load.stop()
	if !disabled {
		b.violate("gone", "a destination that answered 410 was not disabled within 10 s")
		return false, nil
	}
	time.Sleep(100 * time.Millisecond) // what was under way ends
	before := b.arrivalsAt("doom")
	b.run(ctx, 300*time.Millisecond)
	b.load.stop()
	if after := b.arrivalsAt("doom"); after != before {
		b.violate("gone", "a disabled destination was sent %d more messages", after-before)
	}
	b.receiver.change("doom", 1, answer422)
	if status, text := b.call(mainTenant, http.MethodPost, "/v1/destinations/doom/resume", ""); status != http.StatusOK {
		return true, fmt.Errorf("resume destination: %d %s", status, text)
	}
	return true, nil
}

func (b *bed) arrivalsAt(destination string) (n int) {
	b.receiver.mu.Lock()
	defer b.receiver.mu.Unlock()
	for _, a := range b.receiver.arrivals {
		if a.Destination == destination {
			n++
		}
	}
	return n
}
