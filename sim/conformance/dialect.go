package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/history"
)

// Dialect is a test suite for a codec of a dialect that the simulator serves.
type Dialect struct {
	Codec dialect.Codec
	// Path returns the URL path of requests, beginning with a slash.
	Path func(model string, stream bool) string
	// ReasoningField is the reasoning field of the server; see [Model].
	ReasoningField string
	// Without skips tests; see [Model].
	Without map[string]string
}

// Run runs the suite of a model with a minimal client of the codec.
func (d Dialect) Run(t *testing.T) {
	Model{
		Codec: d.Codec, ReasoningField: d.ReasoningField, Without: d.Without,
		Open: func(_ *testing.T, url string) dragoman.Model { return plain{Codec: d.Codec, URL: url, Path: d.Path} },
	}.Run(t)
}

// plain is a minimal model over HTTP for tests: a codec and a URL, without the features of a
// real client (credentials, retries, limits).
type plain struct {
	Codec dialect.Codec
	// URL is the URL of the server, without a path.
	URL  string
	Path func(model string, stream bool) string
	// Client sends the requests; nil means [http.DefaultClient].
	Client *http.Client
}

var _ dragoman.Model = plain{}

// Generate implements [dragoman.Model].
func (p plain) Generate(ctx context.Context, req *dragoman.Request) (*dragoman.Response, error) {
	body, o, err := p.send(ctx, req, false)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(body)
	if err = errors.Join(err, body.Close()); err != nil {
		return nil, err
	}
	resp, _, err := p.Codec.DecodeResponse(raw, o)
	if err != nil {
		return nil, err
	}
	if resp.Error != nil {
		return resp, resp.Error
	}
	return resp, nil
}

// Stream implements [dragoman.Model].
func (p plain) Stream(ctx context.Context, req *dragoman.Request) iter.Seq2[dragoman.Event, error] {
	return func(yield func(dragoman.Event, error) bool) {
		body, o, err := p.send(ctx, req, true)
		if err != nil {
			yield(nil, err)
			return
		}
		defer func() { _ = body.Close() }()
		for ev, err := range dialect.Events(p.Codec.NewStreamDecoder(o), body) {
			if !yield(ev, err) {
				return
			}
		}
	}
}

// send sends a request. It returns the body of a successful response, and the options to decode
// it.
func (p plain) send(ctx context.Context, req *dragoman.Request, stream bool) (io.ReadCloser, dialect.DecodeOptions, error) {
	var o dialect.DecodeOptions
	streamed := *req
	streamed.Stream = stream
	valid, _, err := history.Normalize(&streamed, history.Options{Limits: p.Codec.Limits()})
	if err != nil {
		return nil, o, err
	}
	enc, err := p.Codec.EncodeRequest(valid, dialect.EncodeOptions{})
	if err != nil {
		return nil, o, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL+p.Path(streamed.Model, stream), bytes.NewReader(enc.Body))
	if err != nil {
		return nil, o, err
	}
	r.Header.Set("content-type", "application/json")
	client := p.Client
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(r)
	if err != nil {
		return nil, o, err
	}
	// Calls without an id get one that is unique in the conversation.
	o = dialect.DecodeOptions{Registry: enc.Registry, Seed: fmt.Sprintf("turn %d", len(req.Messages))}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, o, nil
	}
	raw, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, o, err
	}
	return nil, o, p.Codec.DecodeError(resp.StatusCode, resp.Header, raw)
}
