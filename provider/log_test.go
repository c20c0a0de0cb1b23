package provider_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/provider"
)

// logBuffer collects log lines.
type logBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

func debugLog() (*slog.Logger, *logBuffer) {
	var l logBuffer
	return slog.New(slog.NewJSONHandler(&l, &slog.HandlerOptions{Level: slog.LevelDebug})), &l
}

// lines returns the log lines with a message.
func (l *logBuffer) lines(t *testing.T, message string) (out []map[string]any) {
	t.Helper()
	for line := range strings.Lines(l.String()) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		if v["msg"] == message {
			out = append(out, v)
		}
	}
	return out
}

func TestO2_DebugLogShowsBothWiresAndLosses(t *testing.T) {
	each(t, func(t *testing.T, codec dialect.Codec) {
		forGenerateAndStream(t, func(t *testing.T, ask func(dragoman.Model, *dragoman.Request) (*dragoman.Response, error)) {
			log, seen := debugLog()
			s := serve(t, codec, respond(textResponse("Yes, wear one.")))
			req := newRequest()
			req.ServiceTier = "cheapest" // most know none
			resp, err := ask(s.client(&provider.Client{Log: log, Name: "here"}), req)
			if err != nil {
				t.Fatal(err)
			}
			sent, got := seen.lines(t, "model request"), seen.lines(t, "model response")
			if len(sent) != 1 || len(got) != 1 {
				t.Fatalf("%d requests and %d answers in\n%s", len(sent), len(got), seen)
			}
			if sent[0]["model"] != "here/model-1" || !strings.Contains(sent[0]["before"].(string), `"parts":[{`) {
				t.Errorf("request %v", sent[0])
			}
			if sent[0]["after"] != string(s.requests()[0].body) {
				t.Errorf("the wire is %v, and the server got %s", sent[0]["after"], s.requests()[0].body)
			}
			if n := len(got[0]["losses"].([]any)); n != len(resp.Losses.Losses) {
				t.Errorf("%d losses logged, %d returned", n, len(resp.Losses.Losses))
			}
			if body := got[0]["body"].(string); codec.Dialect() != dialectname.Bedrock && !strings.Contains(body, "wear one") && !strings.Contains(body, "Yes") {
				t.Errorf("body %v", body)
			}
		})
	})
}

func TestO2_BodiesInTheLogAreBounded(t *testing.T) {
	log, seen := debugLog()
	s := serve(t, openaichat.Codec{}, respond(textResponse(strings.Repeat("x", 1<<20))))
	req := newRequest()
	req.Messages[0].Parts = []dragoman.Part{&dragoman.Text{Text: strings.Repeat("y", 1<<20)}}
	if _, err := s.client(&provider.Client{Log: log}).Generate(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if seen.Len() > 100<<10 {
		t.Errorf("%d bytes were logged", seen.Len())
	}
	if sent := seen.lines(t, "model request"); sent[0]["bytes"].(float64) < 1<<20 {
		t.Errorf("the length is told as %v", sent[0]["bytes"])
	}
}

func TestWithoutDebugTheLogHoldsNoContent(t *testing.T) {
	var l logBuffer
	log := slog.New(slog.NewJSONHandler(&l, nil))
	s := serve(t, openaichat.Codec{}, respond(textResponse("private")))
	if _, err := s.client(&provider.Client{Log: log}).Generate(t.Context(), newRequest()); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(l.String(), "private") || strings.Contains(l.String(), "coat") || len(l.lines(t, "model response")) != 1 {
		t.Errorf("logged %s", &l)
	}
}

// Credentials, one for each place where a credential can be.
const (
	secretKey      = "sk-SECRET-in-auth"
	secretHeader   = "SECRET-in-header"
	secretQuery    = "SECRET-in-query"
	secretPassword = "SECRET-in-userinfo"
)

// clientWithSecrets returns a client with a credential in every place.
func clientWithSecrets(s *server, log *slog.Logger) *provider.Client {
	c := s.client(&provider.Client{
		Log: log, Auth: provider.Bearer(provider.FixedKey(secretKey)),
		Header: http.Header{"x-team": {secretHeader}}, Retry: provider.Retry{Max: -1},
	})
	c.BaseURL = strings.Replace(c.BaseURL, "http://", "http://user:"+secretPassword+"@", 1) + "/?key=" + secretQuery
	return c
}

func TestX13_NoCredentialIsInAnyLogOrError(t *testing.T) {
	echo := func(_ *server, w http.ResponseWriter, r *http.Request, _ received) {
		text := fmt.Sprintf("bad key %s for %v at %s", r.Header.Get("Authorization"), r.Header, r.URL)
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprintf(w, `{"error":{"message":%q,"code":%q,"type":"t"},"seen":%q}`, text, r.Header.Get("x-team"), text)
	}
	garbage := func(_ *server, w http.ResponseWriter, r *http.Request, _ received) {
		_, _ = fmt.Fprintf(w, "<html>%s %v", r.URL, r.Header)
	}
	inStream := func(s *server, w http.ResponseWriter, r *http.Request, _ received) {
		s.writeEvents(w, []dragoman.Event{&dragoman.StreamError{Err: &dragoman.APIError{Class: dragoman.ErrorServer, Message: "for " + r.Header.Get("Authorization")}}})
	}
	inAnswer := func(s *server, w http.ResponseWriter, r *http.Request, got received) {
		respond(textResponse("you sent "+r.Header.Get("Authorization")))(s, w, r, got)
	}
	cut := func(_ *server, w http.ResponseWriter, _ *http.Request, _ received) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	}
	for name, body := range map[string]step{"an error that repeats them": echo, "no JSON": garbage, "an error in a stream": inStream, "an answer that repeats them": inAnswer, "no answer": cut} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, codec dialect.Codec) {
				forGenerateAndStream(t, func(t *testing.T, ask func(dragoman.Model, *dragoman.Request) (*dragoman.Response, error)) {
					log, seen := debugLog()
					s := serve(t, codec, body)
					c := clientWithSecrets(s, log)
					resp, err := ask(c, newRequest())
					if resp != nil && resp.Error != nil && strings.Contains(resp.Error.Error(), secretKey) {
						t.Errorf("the response tells it: %v", resp.Error)
					}
					log.LogAttrs(context.Background(), slog.LevelInfo, "the client", slog.Any("client", c), slog.Any("error", err))
					stored, _ := json.Marshal(err)
					out := fmt.Sprintf("%v %+v %#v %s", err, err, err, stored) + fmt.Sprintf("%v %+v %#v", c, c, c)
					for _, secret := range []string{secretKey, secretHeader, secretQuery, secretPassword} {
						if strings.Contains(out, secret) {
							t.Errorf("the error tells %s: %s", secret, out)
						}
						if strings.Contains(seen.String(), secret) {
							t.Errorf("the log tells %s: %s", secret, seen)
						}
					}
					if seen.Len() == 0 {
						t.Error("nothing was logged")
					}
				})
			})
		})
	}
}

func TestX13_TruncatedSecretIsRedacted(t *testing.T) {
	for cut := 4; cut < len(secretKey); cut++ {
		log, seen := debugLog()
		s := serve(t, anthropic.Codec{}, func(_ *server, w http.ResponseWriter, _ *http.Request, _ received) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprint(w, strings.Repeat("x", 16<<10-cut)+secretKey)
		})
		if _, err := clientWithSecrets(s, log).Generate(t.Context(), newRequest()); err == nil {
			t.Fatal("no error")
		}
		if body := seen.lines(t, "model request refused")[0]["body"].(string); strings.Contains(body, secretKey[:cut]) {
			t.Fatalf("%d bytes of the key are in the log: %s", cut, body[len(body)-50:])
		}
	}
}
