package gateway

import (
	"context"
	"fmt"
	"net/http"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/modelcall"
	"github.com/dragoman-go/dragoman/internal/serving"
	"github.com/dragoman-go/dragoman/provider"
)

// countHeader marks a token count that the gateway estimated: "estimate".
const countHeader = "X-Dragoman-Count"

// count responds with the number of tokens of a request (quirk J5). An upstream with the client's
// dialect that would get the request unchanged counts them. Otherwise, or if it fails to, the
// number is an estimate and marked as one.
func (x *exchange) count(ctx context.Context) error {
	if err := x.loadHistory(ctx); err != nil {
		return err
	}
	link, err := x.firstAllowedLink(ctx)
	if err != nil {
		return err
	}
	up := x.route.upstreams[link.Name]
	x.body = x.bodyFor(up)
	if err := x.checkResolved(up); err != nil {
		return err
	}
	if up.client != nil && up.dialect == x.codec.Dialect() && x.transparent(ctx, up) {
		if err := x.lease.Admit(x.head.model, 0); err != nil {
			return refusal(err)
		}
		x.entry.upstream, x.entry.series = link.Name, x.route.metricName(link.Name)
		body, err := x.upstreamCount(ctx, up)
		if err == nil {
			x.entry.transparent = true
			return x.writeCount(body, "")
		}
		if ctx.Err() != nil {
			return err
		}
		x.warn(ctx, "the upstream does not count tokens; the gateway estimates them", err)
	}
	req, _, err := x.call.Decode(x.body, dialect.DecodeOptions{MaxBytes: x.setup.maxBody})
	if err != nil {
		return err
	}
	x.prependHistory(req)
	return x.writeCount(serving.CountBody(x.codec, serving.CountTokens(req)), "estimate")
}

// firstAllowedLink returns the first model of the chain that the policies allow.
func (x *exchange) firstAllowedLink(ctx context.Context) (link provider.Link, err error) {
	for _, link = range x.chain.Links {
		if err = modelcall.CheckModel(ctx, link.Name); err == nil || denialOf(err) == nil {
			break
		}
	}
	return link, err
}

// countTime limits how long an upstream may take to count: clients wait for it before their
// request.
const countTime = 10 * time.Second

// upstreamCount returns the count of the upstream.
func (x *exchange) upstreamCount(ctx context.Context, up *upstream) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, countTime)
	defer cancel()
	body, err := x.withUpstreamModel(up)
	if err != nil {
		return nil, err
	}
	passed, err := up.client.Pass(ctx, modelcall.PassRequest{Count: true, Model: x.head.model, Body: body, Header: x.forwardedHeader(), Query: x.r.URL.RawQuery})
	if err != nil {
		return nil, err
	}
	defer func() { _ = passed.Body.Close() }() // only read: a close error loses nothing
	if passed.Err != nil {
		return nil, passed.Err
	}
	all, err := readWhole(up, passed.Body)
	if err == nil && !hasCount(wire.Of(x.codec).Endpoint.CountField, all) {
		err = fmt.Errorf("the upstream responded %.80q: %w", all, dragoman.ErrInvalid)
	}
	return all, err
}

// hasCount reports whether a response has a count in the field name.
func hasCount(name string, body []byte) (counts bool) {
	r := jsonwire.NewReader(body)
	if r.Kind() != '{' {
		return false
	}
	for key := range r.Object() {
		counts = counts || string(key) == name && r.Kind() == '0'
		r.Skip()
	}
	return counts && r.End() == nil
}

// writeCount responds with a count. method is the value of the count header; empty if the upstream
// counted.
func (x *exchange) writeCount(body []byte, how string) error {
	x.entry.status = http.StatusOK
	x.out.begin(http.StatusOK, func(h http.Header) {
		h.Set("Content-Type", "application/json")
		if how != "" {
			h.Set(countHeader, how)
		} else {
			x.setUpstreamHeader(h, "")
		}
	})
	return markStarted(x.out.write(body))
}
