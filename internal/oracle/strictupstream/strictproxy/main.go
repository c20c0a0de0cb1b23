// Strictproxy is a model server that refuses what the vendors refuse and passes all other
// requests to another server:
//
//	strictproxy -to http://127.0.0.1:8080 -model sim/planner -models gpt-4.1,gpt-5 -refusals refused.txt
//
// It prints its address on standard error and writes a line to the file for each refusal.
// GET /strict/seen?text=… returns the bodies of the accepted requests that contain a text,
// as a JSON list of strings, so that a test can check what the model saw.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-go/dragoman/internal/oracle/strictupstream"
)

func main() {
	to := flag.String("to", "", "URL of the server that gets the accepted requests")
	model := flag.String("model", "", "name of its model; empty keeps the requested name")
	models := flag.String("models", "", "names that are replaced by -model, separated by commas; empty means all")
	file := flag.String("refusals", "", "file to write refusals to")
	flag.Parse()
	o := strictupstream.Options{Model: *model, Record: true}
	if *models != "" {
		o.Models = strings.Split(*models, ",")
	}
	if err := serve(*to, o, *file, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "strictproxy:", err)
		os.Exit(1)
	}
}

func serve(to string, o strictupstream.Options, file string, log io.Writer) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }() // each line is written at once
	handler, err := newHandler(to, o, out)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it listens until the process ends
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(log, "strictproxy listens on http://%s\n", l.Addr())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	return server.Serve(l)
}

// newHandler returns a strict server in front of a URL. It writes refusals to out.
func newHandler(to string, o strictupstream.Options, out io.Writer) (http.Handler, error) {
	u, err := url.Parse(to)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("-to %q is not a URL", to)
	}
	transport, ok := http.DefaultTransport.(*http.Transport)
	if ok {
		transport = transport.Clone()
		transport.Proxy, transport.DisableCompression = nil, true
	}
	next := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) },
	}
	var mu sync.Mutex
	o.Refused = func(r *strictupstream.Refusal) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = fmt.Fprintln(out, strings.ReplaceAll(r.Error(), "\n", " "))
	}
	server := strictupstream.New(next, o)
	mux := http.NewServeMux()
	mux.Handle("/", server)
	mux.HandleFunc("GET /strict/seen", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(append([]string{}, server.Seen(r.URL.Query().Get("text"))...))
	})
	return mux, nil
}
