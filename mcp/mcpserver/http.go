package mcpserver

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

// httpSide holds the two handlers of the SDK behind one URL: one has the sessions of older
// revisions, the other serves the modern revision, which has no sessions.
type httpSide struct {
	sessions, modern http.Handler
}

func (s *Server) setUpHTTP() {
	server := func(*http.Request) *mcp.Server { return s.sdk }
	timeout := s.o.SessionTimeout
	if timeout == 0 {
		timeout = 30 * time.Minute
	}
	options := mcp.StreamableHTTPOptions{
		Logger:                       slog.New(quiet{s.log.Handler()}),
		MaxRequestBodyBytes:          -1,   // serveHTTP limits it
		DisableLocalhostProtection:   true, // serveHTTP checks the Host
		PropagateRequestCancellation: true,
	}
	legacy, modern := options, options
	legacy.SessionTimeout, legacy.EventStore = timeout, mcp.NewMemoryEventStore(nil)
	modern.Stateless = true
	// The SDK passes on what it finds in the TokenInfo of a request, and nothing else.
	carry := auth.RequireBearerToken(func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		in, ok := ctx.Value(inboundContext{}).(*inbound)
		if !ok {
			return nil, errors.New("mcpserver: a request without its origin")
		}
		return in.token(), nil
	}, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})
	s.http.sessions = carry(mcp.NewStreamableHTTPHandler(server, &legacy))
	s.http.modern = carry(mcp.NewStreamableHTTPHandler(server, &modern))
}

type inboundContext struct{}

// Handler returns the handler of the endpoint, for clients of all revisions. It refuses pages of
// foreign origins and, on a loopback address, foreign names of the host.
func (s *Server) Handler() http.Handler {
	metadata := s.Metadata()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, wellKnown) {
			metadata.ServeHTTP(w, r)
			return
		}
		s.serveHTTP(w, r)
	})
}

const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "MCP-Protocol-Version"
	headerName    = "Mcp-Name"
	headerMethod  = "Mcp-Method"
)

func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.hostAllowed(r) {
		http.Error(w, "this server does not serve the host "+fmt.Sprintf("%q", r.Host), http.StatusForbidden)
		return
	}
	if !s.originAllowed(r) {
		http.Error(w, "pages of this origin may not use this server", http.StatusForbidden)
		return
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		allowOrigin(w.Header(), origin)
		if r.Method == http.MethodOptions {
			preflight(w, r)
			return
		}
	}
	p, ok := s.authorize(w, r)
	if !ok {
		return
	}
	switch r.Method {
	case http.MethodPost:
		s.post(w, r, p)
	case http.MethodGet, http.MethodDelete:
		if r.Header.Get(headerSession) == "" || rpc.Modern(r.Header.Get(headerVersion)) {
			notAllowed(w)
			return
		}
		if r.Method == http.MethodGet {
			if !s.streams.take(p.ID) {
				busy(w)
				return
			}
			defer s.streams.free(p.ID)
		}
		s.pass(w, r, s.http.sessions, &inbound{principal: p})
	default:
		notAllowed(w)
	}
}

func notAllowed(w http.ResponseWriter) {
	w.Header().Set("Allow", "POST")
	http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
}

func busy(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, "the server is busy", http.StatusServiceUnavailable)
}

// pass passes a request to the SDK, with what this package knows about it and without the
// credentials of the client.
func (s *Server) pass(w http.ResponseWriter, r *http.Request, to http.Handler, in *inbound) {
	r = r.Clone(context.WithValue(r.Context(), inboundContext{}, in))
	r.Header.Set("Authorization", "Bearer checked")
	r.Header.Del("Cookie")
	stream := newStreamWriter(w)
	defer stream.stop()
	to.ServeHTTP(stream, r)
}

// message is one JSON-RPC message.
type message struct {
	id, params json.RawMessage
	method     string
	isRequest  bool // or notification; otherwise a response
	name       string
	version    string // of _meta
}

// parse reads the parts of a message that decide where it goes. Names are compared exactly.
func parse(raw json.RawMessage) (*message, error) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return nil, errors.New("the message is not an object")
	}
	m := &message{id: fields["id"], params: fields["params"]}
	if v, ok := fields["method"]; ok {
		if json.Unmarshal(v, &m.method) != nil {
			return nil, errors.New("the method is not a text")
		}
		m.isRequest = true
	} else if fields["result"] == nil && fields["error"] == nil {
		return nil, errors.New("the message is neither a request nor a response")
	}
	if m.id != nil && (m.id[0] == '{' || m.id[0] == '[' || m.id[0] == 't' || m.id[0] == 'f' || m.id[0] == 'n' && m.isRequest) {
		return nil, errors.New("the id is neither a text nor a number")
	}
	if m.params == nil {
		return m, nil
	}
	var params map[string]json.RawMessage
	if m.params[0] != '{' || json.Unmarshal(m.params, &params) != nil {
		return nil, errors.New("the parameters are not an object")
	}
	switch m.method {
	case "tools/call", "prompts/get":
		_ = json.Unmarshal(params["name"], &m.name)
	case "resources/read":
		_ = json.Unmarshal(params["uri"], &m.name)
	case methodTaskGet, methodTaskUpdate, methodTaskCancel:
		_ = json.Unmarshal(params["taskId"], &m.name)
	}
	var meta map[string]json.RawMessage
	if json.Unmarshal(params["_meta"], &meta) == nil {
		_ = json.Unmarshal(meta[mcp.MetaKeyProtocolVersion], &m.version)
	}
	return m, nil
}

// rpcFailure answers with an error of the protocol.
func rpcFailure(w http.ResponseWriter, status int, id json.RawMessage, code int64, text string) {
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(encode(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": text}}))
}

// bodyTimeout limits how long the body of a request may take to arrive.
const bodyTimeout = 30 * time.Second

// maxBatch limits the messages of a batch, which only revision 2025-03-26 has.
const maxBatch = 50

func (s *Server) post(w http.ResponseWriter, r *http.Request, p Principal) {
	if t, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); !strings.EqualFold(strings.TrimSpace(t), "application/json") {
		http.Error(w, "Content-Type must be application/json", http.StatusUnsupportedMediaType)
		return
	}
	if !s.requests.take(p.ID) {
		busy(w)
		return
	}
	held := &s.requests
	defer func() { held.free(p.ID) }()
	connection := http.NewResponseController(w) // a body that comes slowly must not hold its place
	_ = connection.SetReadDeadline(time.Now().Add(bodyTimeout))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.o.MaxBody))
	_ = connection.SetReadDeadline(time.Time{})
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			http.Error(w, fmt.Sprintf("the body is larger than %d bytes", large.Limit), http.StatusRequestEntityTooLarge)
			return
		}
		http.Error(w, "the body could not be read", http.StatusBadRequest)
		return
	}
	body = bytes.TrimSpace(body)
	if !json.Valid(body) {
		rpcFailure(w, http.StatusBadRequest, nil, jsonrpc.CodeParseError, "the body is not JSON")
		return
	}
	if !jsonwire.Unambiguous(body) { // readers disagree which of two equal names counts (pitfall K38)
		rpcFailure(w, http.StatusBadRequest, nil, jsonrpc.CodeInvalidRequest, "the body repeats the name of a field")
		return
	}
	version, session := r.Header.Get(headerVersion), r.Header.Get(headerSession)
	if body[0] == '[' {
		s.postBatch(w, r, p, body, version, session)
		return
	}
	m, err := parse(body)
	if err != nil {
		rpcFailure(w, http.StatusBadRequest, nil, jsonrpc.CodeInvalidRequest, err.Error())
		return
	}
	if !s.scopedFor(w, p, m) {
		return
	}
	in := &inbound{principal: p, counted: true}
	to := s.http.sessions
	switch {
	case rpc.Modern(version) || rpc.Modern(m.version):
		to = s.http.modern
		if !s.modernHeaders(w, r, m) {
			return
		}
		if m.method == "subscriptions/listen" {
			if !s.streams.take(p.ID) {
				busy(w)
				return
			}
			s.requests.free(p.ID)
			held = &s.streams
		}
	case m.method == "initialize" && session == "":
		if !s.sessions.take(p.ID) {
			busy(w)
			return
		}
		var started atomic.Bool
		in.started = func(ss *mcp.ServerSession) {
			started.Store(true)
			go func() {
				_ = ss.Wait()
				s.sessions.free(p.ID)
			}()
		}
		defer func() {
			if !started.Load() {
				s.sessions.free(p.ID)
			}
		}()
		body = knownRevision(body)
	case session == "":
		rpcFailure(w, http.StatusBadRequest, m.id, jsonrpc.CodeInvalidRequest,
			"the request has neither the header "+headerVersion+" with "+rpc.Revision20260728+" nor the header "+headerSession+": begin with initialize, or send the header")
		return
	}
	body, in.responses = withoutResponses(body, m)
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	s.pass(w, r, to, in)
}

// postBatch serves the batches of revision 2025-03-26, which has no header for the revision.
func (s *Server) postBatch(w http.ResponseWriter, r *http.Request, p Principal, body []byte, version, session string) {
	var list []json.RawMessage
	err := json.Unmarshal(body, &list)
	if err != nil || session == "" || version != "" && version != rpc.Revision20250326 || len(list) == 0 || len(list) > maxBatch {
		rpcFailure(w, http.StatusBadRequest, nil, jsonrpc.CodeInvalidRequest, fmt.Sprintf("a batch needs a session of revision %s and 1 to %d messages", rpc.Revision20250326, maxBatch))
		return
	}
	for _, raw := range list {
		m, err := parse(raw)
		if err != nil || rpc.Modern(m.version) || m.method == "initialize" {
			rpcFailure(w, http.StatusBadRequest, nil, jsonrpc.CodeInvalidRequest, "a message of the batch is not valid there")
			return
		}
		if !s.scopedFor(w, p, m) {
			return
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	s.pass(w, r, s.http.sessions, &inbound{principal: p})
}

// scopedFor checks the scopes that the call of a tool needs.
func (s *Server) scopedFor(w http.ResponseWriter, p Principal, m *message) bool {
	a := s.o.Auth
	if a == nil || m.method != "tools/call" || len(a.ToolScopes[m.name]) == 0 {
		return true
	}
	return s.scoped(w, p, slices.Concat(a.Scopes, a.ToolScopes[m.name]))
}

// withoutResponses takes the answers of a client out of a request, because the SDK would change
// them.
func withoutResponses(body []byte, m *message) (rest []byte, responses json.RawMessage) {
	if !m.isRequest || !bytes.Contains(m.params, []byte(`"inputResponses"`)) {
		return body, nil
	}
	var params map[string]json.RawMessage
	if json.Unmarshal(m.params, &params) != nil || params["inputResponses"] == nil {
		return body, nil
	}
	return jsonwire.With(body, "params", jsonwire.Without(m.params, "inputResponses")), params["inputResponses"]
}

// knownRevision replaces a revision that is unknown, or that has no initialize, by the newest one
// that has it, as the answer to initialize does.
func knownRevision(body []byte) []byte {
	return jsonwire.EditField(body, "params", func(params []byte) []byte {
		return jsonwire.EditField(params, "protocolVersion", func(v []byte) []byte {
			var version string
			if json.Unmarshal(v, &version) == nil && (rpc.Modern(version) || !slices.Contains(mcp.SupportedProtocolVersions(), version)) {
				return encode(rpc.Revision20251125)
			}
			return v
		})
	})
}

// modernHeaders checks the headers that the SDK does not check: the name of a task, and names
// that are written in base64.
func (s *Server) modernHeaders(w http.ResponseWriter, r *http.Request, m *message) bool {
	if !m.isRequest || len(m.id) == 0 {
		return true
	}
	names := r.Header.Values(headerName)
	fail := func(text string) bool {
		rpcFailure(w, http.StatusBadRequest, m.id, codeHeaderMismatch, "header mismatch: "+text)
		return false
	}
	for _, h := range []string{headerName, headerMethod, headerVersion} {
		if len(r.Header.Values(h)) > 1 {
			return fail("the header " + h + " is repeated")
		}
	}
	if len(names) == 1 {
		if decoded, encoded, ok := decodeHeader(names[0]); !ok {
			return fail("the header " + headerName + " has invalid base64")
		} else if encoded {
			r.Header.Set(headerName, decoded)
		}
	}
	switch m.method {
	case methodTaskGet, methodTaskUpdate, methodTaskCancel:
		if r.Header.Get(headerName) == "" {
			return fail("the header " + headerName + " is missing")
		}
		if r.Header.Get(headerName) != m.name {
			return fail("the header " + headerName + " differs from params.taskId")
		}
	}
	return true
}

// decodeHeader decodes a header value of the form =?base64?…?=.
func decodeHeader(v string) (decoded string, encoded, ok bool) {
	rest, a := strings.CutPrefix(v, "=?base64?")
	rest, b := strings.CutSuffix(rest, "?=")
	if !a || !b {
		return v, false, true
	}
	raw, err := base64.StdEncoding.DecodeString(rest)
	return string(raw), true, err == nil
}

// hostAllowed protects a server against pages that reach it by a name of their own (DNS
// rebinding).
func (s *Server) hostAllowed(r *http.Request) bool {
	if s.knownHost(r.Host) || slices.Contains(s.o.Hosts, "*") {
		return true
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local != nil && loopback(local.String()) {
		return loopback(r.Host)
	}
	return len(s.o.Hosts) == 0
}

// knownHost reports whether a host is in the configuration.
func (s *Server) knownHost(host string) bool {
	for _, h := range s.o.Hosts {
		if strings.EqualFold(h, host) || strings.EqualFold(h, hostName(host)) {
			return true
		}
	}
	if a := s.o.Auth; a != nil && a.Resource != "" {
		if u, err := url.Parse(a.Resource); err == nil {
			return strings.EqualFold(u.Host, host)
		}
	}
	return false
}

func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

// loopback reports whether a host, with or without port, is this machine.
func loopback(host string) bool {
	name := hostName(host)
	if strings.EqualFold(name, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Unmap().IsLoopback()
}

// originAllowed checks the origin of a page. Programs send none.
func (s *Server) originAllowed(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return true
	}
	if len(origins) > 1 || origins[0] == "" || origins[0] == "null" {
		return false
	}
	if slices.ContainsFunc(s.o.Origins, func(o string) bool { return strings.EqualFold(strings.TrimSuffix(o, "/"), origins[0]) }) {
		return true
	}
	u, err := url.Parse(origins[0])
	if err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
		return false
	}
	// A page of the server itself. Its name must be one that other servers cannot use.
	return s.knownHost(r.Host) || loopback(r.Host)
}

func allowOrigin(h http.Header, origin string) {
	h.Set("Access-Control-Allow-Origin", origin)
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate")
}

// preflight answers the question of a browser whether a page may send a request.
func preflight(w http.ResponseWriter, r *http.Request) {
	allowed := []string{"Content-Type", "Accept", "Authorization", headerVersion, headerMethod, headerName, headerSession, "Last-Event-ID"}
	for _, list := range r.Header.Values("Access-Control-Request-Headers") {
		for name := range strings.SplitSeq(list, ",") {
			if name = strings.TrimSpace(name); len(name) > len("mcp-param-") && strings.EqualFold(name[:len("mcp-param-")], "mcp-param-") && len(allowed) < 64 && token(name) {
				allowed = append(allowed, name)
			}
		}
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "POST, GET, DELETE")
	h.Set("Access-Control-Allow-Headers", strings.Join(allowed, ", "))
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
}

// token reports whether a name has only letters, digits and hyphens.
func token(name string) bool {
	return strings.IndexFunc(name, func(r rune) bool { return illegal(r) }) < 0
}

// streamWriter keeps a stream of events alive with comments, and frames an error that the SDK
// writes as plain JSON after the first event.
type streamWriter struct {
	http.ResponseWriter

	mu        sync.Mutex
	committed bool // the status was sent
	events    bool // as a stream of events
	plain     bool // what follows must be framed
	last      time.Time
	quit      chan struct{}
	ended     chan struct{}
}

// keepAlive is shorter than the idle timeout of common proxies (pitfall K15).
const keepAlive = 20 * time.Second

func newStreamWriter(w http.ResponseWriter) *streamWriter {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // streams are long
	w.Header().Set("X-Accel-Buffering", "no")
	return &streamWriter{ResponseWriter: w}
}

// Unwrap lets [http.ResponseController] find the methods of the writer.
func (w *streamWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *streamWriter) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.committed {
		w.plain = w.events && status >= 400
		return
	}
	w.commit()
	w.ResponseWriter.WriteHeader(status)
}

// commit notes that the status is sent.
func (w *streamWriter) commit() {
	w.committed = true
	if w.events = strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream"); w.events {
		w.quit, w.ended = make(chan struct{}), make(chan struct{})
		go w.beat()
	}
}

func (w *streamWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.committed {
		w.commit()
	}
	w.last = time.Now()
	if w.plain {
		_, err := w.ResponseWriter.Write(slices.Concat([]byte("event: message\ndata: "), b, []byte("\n\n")))
		return len(b), err
	}
	return w.ResponseWriter.Write(b)
}

// FlushError flushes what was written.
func (w *streamWriter) FlushError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.committed { // flushing sends the status
		w.commit()
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

func (w *streamWriter) beat() {
	defer close(w.ended)
	tick := time.NewTicker(keepAlive / 2)
	defer tick.Stop()
	for {
		select {
		case <-w.quit:
			return
		case <-tick.C:
		}
		w.mu.Lock()
		if time.Since(w.last) >= keepAlive/2 {
			_, err := w.ResponseWriter.Write([]byte(": keep-alive\n\n"))
			if err == nil {
				err = http.NewResponseController(w.ResponseWriter).Flush()
			}
			if err != nil {
				w.mu.Unlock()
				return
			}
		}
		w.mu.Unlock()
	}
}

// stop ends the comments. The handler has returned.
func (w *streamWriter) stop() {
	w.mu.Lock()
	quit, ended := w.quit, w.ended
	w.mu.Unlock()
	if quit != nil {
		close(quit)
		<-ended
	}
}
