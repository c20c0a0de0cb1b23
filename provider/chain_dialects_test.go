package provider_test

import (
	"net/http"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/provider"
)

func TestX14_FailoverInEveryDialect(t *testing.T) {
	each(t, func(t *testing.T, codec dialect.Codec) {
		for name, bad := range map[string]step{
			"cut after start": func(s *server, w http.ResponseWriter, _ *http.Request, _ received) {
				s.part(w, s.codec.NewStreamEncoder(dialect.EncodeOptions{Seed: "s"}), eventsOf(textResponse("x"))[:1], false)
				panic(http.ErrAbortHandler)
			},
			"end after start": func(s *server, w http.ResponseWriter, _ *http.Request, _ received) {
				s.part(w, s.codec.NewStreamEncoder(dialect.EncodeOptions{Seed: "s"}), eventsOf(textResponse("x"))[:1], false)
			},
			"error event": func(s *server, w http.ResponseWriter, _ *http.Request, _ received) {
				s.part(w, s.codec.NewStreamEncoder(dialect.EncodeOptions{Seed: "s"}), []dragoman.Event{eventsOf(textResponse("x"))[0], &dragoman.StreamError{Err: overloaded}}, true)
			},
			"empty":   respond(textResponse("")),
			"nothing": func(*server, http.ResponseWriter, *http.Request, received) {},
			"503":     respondError(overloaded),
			"404":     respondError(&dragoman.APIError{Status: 404, Class: dragoman.ErrorNotFound, Message: "no such model"}),
		} {
			for _, stream := range []bool{true, false} {
				if !stream && (name == "cut after start" || name == "end after start" || name == "error event") {
					continue
				}
				a, b := serve(t, codec, bad), serve(t, codec, respond(textResponse("fine")))
				chain := &provider.Chain{Links: []provider.Link{{Name: "a", Model: a.client(&provider.Client{Retry: provider.Retry{Max: -1}})}, {Name: "b", Model: b.client(&provider.Client{})}}}
				if !stream {
					resp, err := chain.Generate(t.Context(), newRequest())
					if err != nil || resp.Text() != "fine" {
						t.Errorf("%s: %v", name, err)
					}
					continue
				}
				starts := 0
				var c dragoman.Collector
				for ev, err := range chain.Stream(t.Context(), newRequest()) {
					if err != nil {
						t.Errorf("%s: %v", name, err)
						break
					}
					if _, ok := ev.(*dragoman.ResponseStart); ok {
						starts++
					}
					c.Add(ev)
				}
				resp, err := c.Response()
				if err != nil || resp.Text() != "fine" || starts > 1 || resp.Failover == nil || resp.Failover.Model != "b" {
					t.Errorf("%s: %v %v starts %d", name, resp, err, starts)
				}
			}
		}
	})
}
