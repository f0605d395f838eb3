package app

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/posthorn/posthorn/app/regular"
)

// maxRequests bounds the connections of the network that are no live streams, for which the setting live-connections has places of their own; who comes
// beyond both waits.
const maxRequests = 4096

// errListen is what is wrong with the address to listen on.
var errListen = errors.New("bad address to listen on")

// listenError is an errListen with a hint.
type listenError struct{ text, advice string }

func (e *listenError) Error() string        { return e.text }
func (e *listenError) Hint() string         { return e.advice }
func (e *listenError) Is(target error) bool { return target == errListen }

// listenAddress is where to listen: as given, or on the port of the setting.
func listenAddress(given string, port int) (string, error) {
	if given == "" {
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), nil
	}
	_, text, err := net.SplitHostPort(given)
	if number, portErr := strconv.ParseUint(text, 10, 16); err != nil || portErr != nil || strconv.FormatUint(number, 10) != text {
		return "", &listenError{fmt.Sprintf("%q is no address to listen on", given), "write host:port, such as 127.0.0.1:7678; port 0 takes a free one"}
	}
	return given, nil
}

// judgeExposure refuses to answer the network in plain text unless the operator says so: API tokens would travel readable.
func judgeExposure(address string, secured, insecure bool) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return &listenError{fmt.Sprintf("%q is no address to listen on", address), ""}
	}
	if secured || insecure || isLoopback(host) {
		return nil
	}
	return &listenError{fmt.Sprintf("%s can be reached from the network, and there is no TLS", address),
		"set tls: {certificate, key} in posthorn.yaml, or, behind a proxy that has TLS, give --insecure-listen"}
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// listenTCP binds the address, with TLS where there are files for it, for so many live streams and the requests beside them.
func listenTCP(address string, files *TLSFiles, streams int) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, &listenError{"listen: " + err.Error(), "another program may have this port; --listen 127.0.0.1:0 takes a free one"}
	}
	listener = newCrowd(listener, maxRequests+streams)
	if files == nil {
		return listener, nil
	}
	pair, err := files.pair()
	if err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("read TLS certificate: %w", err)
	}
	return tls.NewListener(listener, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}}), nil
}

// maxPEM bounds a certificate chain or a key.
const maxPEM = 1 << 20

func (f *TLSFiles) pair() (tls.Certificate, error) {
	chain, err := regular.Read(f.Certificate, maxPEM)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := regular.Read(f.Key, maxPEM)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(chain, key)
}

// urlOf is an address under which a listener can be reached from this machine.
func urlOf(listener net.Listener, secured bool) string {
	scheme := "http"
	if secured {
		scheme = "https"
	}
	host, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return scheme + "://" + listener.Addr().String()
	}
	if addr, err := netip.ParseAddr(host); err == nil && addr.IsUnspecified() {
		host = "127.0.0.1"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}
