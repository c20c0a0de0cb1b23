package emitcheck_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/oracle/emitcheck"
)

// tripped is a transport that is a function.
type tripped func(*http.Request) (*http.Response, error)

func (t tripped) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// sentTo returns a transport that calls a handler.
func sentTo(h http.Handler) tripped {
	return func(r *http.Request) (*http.Response, error) {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		return rec.Result(), nil
	}
}

// seenByClient returns the violations that a client transport reports for a response that is read
// to its end.
func seenByClient(server http.Handler, r *http.Request, d *emitcheck.Document) (found []*emitcheck.Violation) {
	judge := emitcheck.Transport(sentTo(server), emitcheck.Options{Document: d, Report: func(v *emitcheck.Violation) { found = append(found, v) }})
	resp, err := judge.RoundTrip(r)
	if err != nil {
		return nil
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return found
}

func TestTransportChecksWhatClientReads(t *testing.T) {
	cut := errors.New("the connection broke")
	for name, tc := range map[string]struct {
		body  string
		fails error
		leave int  // the client stops after so many bytes; 0 means it reads all
		gone  bool // the context of the client has ended
		rule  string
	}{
		"the whole response":        {body: msgStart + textStart + textDelta + stop0 + msgDelta + msgStop},
		"a response without an end": {body: msgStart + textStart, rule: "no end"},
		"a valid part":              {body: msgStart + textStart + textDelta, leave: 10},
		"an invalid part":           {body: msgStart + textDelta, leave: len(msgStart + textDelta), rule: "is not open"},
		"a broken connection":       {body: msgStart + textStart, fails: cut, rule: "aborted without an error"},
		"an unexpected end":         {body: msgStart + textStart, fails: io.ErrUnexpectedEOF, rule: "aborted without an error"},
		"a disconnected client":     {body: msgStart + textStart, fails: cut, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			var found []*emitcheck.Violation
			judge := emitcheck.Transport(tripped(func(r *http.Request) (*http.Response, error) {
				_, _ = io.Copy(io.Discard, r.Body)
				body := io.Reader(strings.NewReader(tc.body))
				if tc.fails != nil {
					body = io.MultiReader(body, breaking{tc.fails})
				}
				return &http.Response{StatusCode: http.StatusOK, Header: of(http.Header{}, ofEvents), Body: io.NopCloser(body)}, nil
			}), emitcheck.Options{Report: func(v *emitcheck.Violation) { found = append(found, v) }})
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/messages", strings.NewReader(`{"model":"m","stream":true}`))
			resp, err := judge.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			if tc.gone {
				leave()
			}
			got, err := "", error(nil)
			if tc.leave > 0 {
				b := make([]byte, tc.leave)
				_, err = io.ReadFull(resp.Body, b)
				got = string(b)
			} else {
				var b []byte
				b, err = io.ReadAll(resp.Body)
				got = string(b)
			}
			_ = resp.Body.Close()
			_ = resp.Body.Close() // reports nothing new
			if !strings.HasPrefix(tc.body, got) || !errors.Is(err, tc.fails) {
				t.Errorf("%q %v", got, err)
			}
			switch {
			case tc.rule == "" && len(found) > 0, tc.rule != "" && (len(found) != 1 || !strings.Contains(found[0].Error(), tc.rule)):
				t.Errorf("%v, want %q", found, tc.rule)
			}
		})
	}
}

func TestTransportForwardsErrorsAndIdleConnections(t *testing.T) {
	fails := errors.New("connection refused")
	judge := emitcheck.Transport(&idling{err: fails}, emitcheck.Options{Report: func(v *emitcheck.Violation) { t.Error(v) }})
	if _, err := judge.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/models", nil)); !errors.Is(err, fails) { //nolint:bodyclose // no response
		t.Error(err)
	}
	next := &idling{}
	(&http.Client{Transport: emitcheck.Transport(next, emitcheck.Options{})}).CloseIdleConnections()
	if next.closed != 1 {
		t.Error("idle connections stay open")
	}
}

// idling is a transport with idle connections.
type idling struct {
	err    error
	closed int
}

func (i *idling) RoundTrip(*http.Request) (*http.Response, error) { return nil, i.err }
func (i *idling) CloseIdleConnections()                           { i.closed++ }

// breaking is a reader that fails.
type breaking struct{ err error }

func (b breaking) Read([]byte) (int, error) { return 0, b.err }
