// Checkproxy is a proxy between clients and a running gateway. It checks every response that
// passes through it:
//
//	checkproxy -to http://127.0.0.1:8088 -violations found.txt
//
// It prints its address to standard error, and writes a line to the file for every response
// that breaks a rule of [emitcheck]. Scripts fail if the file has a line.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/dragoman-go/dragoman/internal/oracle/emitcheck"
)

func main() {
	to := flag.String("to", "", "the URL of the gateway")
	file := flag.String("violations", "", "the file to write violations to")
	flag.Parse()
	if err := serve(*to, *file, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "checkproxy:", err)
		os.Exit(1)
	}
}

func serve(to, file string, log io.Writer) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }() // every line was written already
	proxy, err := newProxy(to, out, log)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // runs until it is killed
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(log, "checkproxy listens on http://%s\n", l.Addr())
	server := &http.Server{Handler: proxy, ReadHeaderTimeout: 10 * time.Second}
	return server.Serve(l)
}

// newProxy returns a proxy that checks the server at a URL and writes violations to out.
func newProxy(to string, out, log io.Writer) (http.Handler, error) {
	u, err := url.Parse(to)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("-to %q is not a URL", to)
	}
	document, err := emitcheck.LoadOpenResponses()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		_, _ = fmt.Fprintf(log, "checkproxy: responses are not checked against the Open Responses document: %v\n", err)
	case err != nil:
		return nil, err
	}
	found := &violations{out: out}
	return emitcheck.Proxy(u, emitcheck.Options{Report: found.report, Document: document}), nil
}

// violations writes violations, one at a time.
type violations struct {
	mu  sync.Mutex
	out io.Writer
}

func (f *violations) report(v *emitcheck.Violation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, _ = fmt.Fprintln(f.out, v.Line()) // nothing else to do about an error
}
