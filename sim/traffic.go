package sim

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// exchangeRecord is one request and its answer in a file of traffic: a JSON
// document, indented, one behind the other.
type exchangeRecord struct {
	V        int            `json:"v"`
	Request  requestRecord  `json:"request"`
	Response responseRecord `json:"response"`
}

type requestRecord struct {
	Method string              `json:"method"`
	URL    string              `json:"url"`
	Header map[string][]string `json:"header,omitempty"`
	bodyRecord
}

type responseRecord struct {
	Status int                 `json:"status"`
	Header map[string][]string `json:"header,omitempty"`
	bodyRecord
	// Cut says that the body did not come to its end.
	Cut bool `json:"cut,omitempty"`
}

// bodyRecord is a body that keeps its bytes and can be read: its lines, or base64
// of what is no text.
type bodyRecord struct {
	Lines  []string `json:"body,omitempty"`
	Base64 string   `json:"base64,omitempty"`
}

// trafficVersion is the version of the files that are written.
const trafficVersion = 1

func recordBody(b []byte) bodyRecord {
	switch {
	case len(b) == 0:
		return bodyRecord{}
	case utf8.Valid(b):
		return bodyRecord{Lines: strings.Split(string(b), "\n")}
	default:
		return bodyRecord{Base64: base64.StdEncoding.EncodeToString(b)}
	}
}

func (r bodyRecord) bytes() ([]byte, error) {
	if r.Base64 != "" {
		return base64.StdEncoding.DecodeString(r.Base64)
	}
	return []byte(strings.Join(r.Lines, "\n")), nil
}

// redacted stands for what nobody may read.
const redacted = "REDACTED"

// secretHeaders hold credentials, of requests and of answers.
var secretHeaders = []string{
	"Authorization", "Proxy-Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "X-Amz-Security-Token",
	"Cookie", "Set-Cookie", "X-Auth-Token", "Openai-Organization", "Openai-Project",
}

func isSecretHeader(name string) bool {
	return slices.Contains(secretHeaders, http.CanonicalHeaderKey(name))
}

// secretParameters are those of a URL that hold credentials, in small letters.
var secretParameters = []string{
	"key", "api_key", "apikey", "api-key", "access_token", "token", "sig", "signature",
	"x-amz-signature", "x-amz-credential", "x-amz-security-token",
}

// secrets are the credentials of a request, wherever else they stand.
type secrets []string

// leastSecret is how long a credential is at least; a shorter one would be found in
// words that mean something else.
const leastSecret = 8

func secretsOf(r *http.Request) secrets {
	var out secrets
	add := func(s string) {
		for _, word := range append(strings.Fields(s), s) { // the scheme before it is none
			if len(word) >= leastSecret && !slices.Contains(out, word) {
				out = append(out, word)
			}
		}
	}
	for name, values := range r.Header {
		if isSecretHeader(name) {
			for _, v := range values {
				add(v)
			}
		}
	}
	for name, values := range r.URL.Query() {
		if slices.Contains(secretParameters, strings.ToLower(name)) {
			for _, v := range values {
				add(v)
			}
		}
	}
	if r.URL.User != nil {
		if password, ok := r.URL.User.Password(); ok {
			add(password)
		}
	}
	// The longest first: one may hold another.
	slices.SortFunc(out, func(a, b string) int { return len(b) - len(a) })
	return out
}

func (s secrets) text(text string) string {
	for _, secret := range s {
		text = strings.ReplaceAll(text, secret, redacted)
	}
	return text
}

func (s secrets) bytes(b []byte) []byte {
	for _, secret := range s {
		b = bytes.ReplaceAll(b, []byte(secret), []byte(redacted))
	}
	return b
}

// header is a header without credentials, names in their usual spelling.
func (s secrets) header(h http.Header) map[string][]string {
	out := make(map[string][]string, len(h))
	for name, values := range h {
		clean := make([]string, len(values))
		for i, v := range values {
			if clean[i] = s.text(v); isSecretHeader(name) {
				clean[i] = redacted
			}
		}
		out[name] = clean
	}
	return out
}

// url is a URL without credentials.
func (s secrets) url(u *url.URL) string {
	clean := *u
	clean.User = nil
	query := clean.Query()
	for name := range query {
		if slices.Contains(secretParameters, strings.ToLower(name)) {
			query[name] = []string{redacted}
		}
	}
	clean.RawQuery = query.Encode()
	return s.text(clean.String())
}

// request is a request as it is written down.
func (s secrets) request(r *http.Request, body []byte) requestRecord {
	return requestRecord{Method: r.Method, URL: s.url(r.URL), Header: s.header(r.Header), bodyRecord: recordBody(s.bytes(body))}
}

// takeBody reads the body of a request and puts it back.
func takeBody(r *http.Request) ([]byte, *http.Request, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, r, nil
	}
	body, err := io.ReadAll(r.Body)
	if closed := r.Body.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, r, err
	}
	again := r.Clone(r.Context()) // a transport does not change what it is given
	again.Body = io.NopCloser(bytes.NewReader(body))
	again.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return body, again, nil
}

// readTraffic reads a file of traffic.
func readTraffic(name string, r io.Reader) ([]exchangeRecord, error) {
	var out []exchangeRecord
	d := json.NewDecoder(r)
	for n := 1; ; n++ {
		var x exchangeRecord
		err := d.Decode(&x)
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("sim: %s: exchange %d: %w", name, n, err)
		case x.V != trafficVersion:
			return nil, fmt.Errorf("sim: %s: exchange %d has the version %d, and this reads %d", name, n, x.V, trafficVersion)
		}
		out = append(out, x)
	}
}
