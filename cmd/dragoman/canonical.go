package main

import (
	"bytes"
	"encoding/json"
	"net/http"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/serving/sniff"
	"github.com/dragoman-go/dragoman/targets"
)

// canonical is a codec for the canonical form, the JSON that the root package stores. It
// has no stream coders: callers check for sniff.Canonical before they use them.
type canonical struct{}

var _ dialect.Codec = canonical{}

// canonicalDialect returns the canonical form as a dialect of the command line.
func canonicalDialect() namedDialect {
	return namedDialect{canonical{}, []string{"canonical", "dragoman"}, "messages", "", ""}
}

func (canonical) Dialect() dragoman.Dialect { return sniff.Canonical }

func (canonical) Limits() targets.Limits { return targets.Limits{Dialect: sniff.Canonical} }

func (canonical) DecodeRequest(body []byte, _ dialect.DecodeOptions) (*dragoman.Request, dragoman.Report, error) {
	req := new(dragoman.Request)
	err := json.Unmarshal(body, req)
	return req, dragoman.Report{}, err
}

func (canonical) EncodeRequest(req *dragoman.Request, _ dialect.EncodeOptions) (dialect.Encoded, error) {
	body, err := stored(req)
	return dialect.Encoded{Body: body}, err
}

func (canonical) DecodeResponse(body []byte, _ dialect.DecodeOptions) (*dragoman.Response, dragoman.Report, error) {
	resp := new(dragoman.Response)
	err := json.Unmarshal(body, resp)
	return resp, dragoman.Report{}, err
}

func (canonical) EncodeResponse(resp *dragoman.Response, o dialect.EncodeOptions) (dialect.Encoded, error) {
	named := *resp
	if o.Model != "" {
		named.Model = o.Model
	}
	body, err := stored(named)
	return dialect.Encoded{Body: body}, err
}

func (canonical) NewStreamDecoder(dialect.DecodeOptions) dialect.StreamDecoder { return nil }

func (canonical) NewStreamEncoder(dialect.EncodeOptions) dialect.StreamEncoder { return nil }

func (canonical) EncodeError(e *dragoman.APIError) (int, []byte, dragoman.Report) {
	body, _ := stored(e)
	return e.Status, body, dragoman.Report{}
}

func (canonical) DecodeError(status int, _ http.Header, body []byte) *dragoman.APIError {
	return &dragoman.APIError{Status: status, Message: string(body)}
}

// stored returns the JSON of a canonical value, without escaping HTML characters.
func stored(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// storedList reads a list of stored values, or a single value.
func storedList[T any](data []byte) (list []T, single bool, err error) {
	if single = bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")); single {
		list = make([]T, 1)
		return list, true, json.Unmarshal(data, &list[0])
	}
	err = json.Unmarshal(data, &list)
	return list, false, err
}
