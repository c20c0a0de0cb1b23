package sim

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-go/dragoman/internal/dialects"
	"github.com/dragoman-go/dragoman/internal/textkit"
)

// exchangeRecord is one request and its response in a traffic file. The file is a sequence of
// indented JSON documents.
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
	// Cut reports whether the body was cut off.
	Cut bool `json:"cut,omitempty"`
}

// bodyRecord stores the exact bytes of a body in readable form: as lines, or as base64 if it
// is not text.
type bodyRecord struct {
	Lines  []string `json:"body,omitempty"`
	Base64 string   `json:"base64,omitempty"`
}

// trafficVersion is the version of traffic files.
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

// redacted replaces credentials.
const redacted = "REDACTED"

// publicHeaders lists request headers that may be recorded, in addition to those of the
// dialects. Any other header may hold a credential, because servers choose their own.
var publicHeaders = []string{"Accept", "Accept-Encoding", "Connection", "Content-Length", "Content-Type", "User-Agent", faultHeader}

// secretWords occur in the names of headers and parameters that hold credentials, also in
// responses.
var secretWords = []string{
	"apikey", "auth", "authorization", "cookie", "credential", "key", "organization", "password", "project", "secret", "sig",
	"signature", "token",
}

// isSecret reports whether the name of a header or parameter means that its value is a
// credential.
func isSecret(name string) bool {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(secretWords, w) })
}

// signed matches URL parameters that give access to anyone who has the URL.
var signed = regexp.MustCompile(`(?i)((?:[?&]|\\u0026|&amp;)(?:x-(?:amz|goog)-(?:signature|credential|security-token)|sig|signature|awsaccesskeyid|googleaccessid)=)[^&"'\s\\<>]{8,}`)

// secrets holds the credentials of a request, so that they can be redacted everywhere.
type secrets []string

// leastSecret is the minimum length of a credential; shorter ones would match ordinary words.
// leastByItself is the minimum length of a value that counts as a credential by its length
// alone.
const (
	leastSecret   = 8
	leastByItself = 16
)

func secretsOf(r *http.Request) secrets {
	var out secrets
	add := func(s string) {
		for _, word := range append(strings.Fields(s), s) { // without the scheme, such as Bearer
			if len(word) < leastSecret {
				continue
			}
			for _, spelt := range textkit.SecretSpellings(word) {
				if !slices.Contains(out, spelt) {
					out = append(out, spelt)
				}
			}
		}
	}
	for name, values := range r.Header {
		for _, v := range values {
			switch {
			case isSecret(name):
				add(v)
			case isPrivate(name) && len(v) >= leastByItself && !strings.Contains(v, " "):
				add(v)
			}
		}
	}
	for name, values := range r.URL.Query() {
		if isSecret(name) {
			for _, v := range values {
				add(v)
			}
		}
	}
	if r.URL.User != nil {
		password, _ := r.URL.User.Password()
		add(password)
		if password == "" {
			add(r.URL.User.Username())
		}
	}
	if user, password, ok := r.BasicAuth(); ok {
		add(cmp.Or(password, user))
	}
	// The longest first: one may contain another.
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return out
}

func (s secrets) text(text string) string {
	for _, hidden := range s {
		text = strings.ReplaceAll(text, hidden, redacted)
	}
	return signed.ReplaceAllString(text, "${1}"+redacted)
}

func (s secrets) bytes(b []byte) []byte {
	for _, hidden := range s {
		b = bytes.ReplaceAll(b, []byte(hidden), []byte(redacted))
	}
	return signed.ReplaceAll(b, []byte("${1}"+redacted))
}

// header returns a header without credentials, with canonical names. hides reports which
// headers to leave out.
func (s secrets) header(h http.Header, hides func(name string) bool) map[string][]string {
	out := make(map[string][]string, len(h))
	for name, values := range h {
		clean := make([]string, len(values))
		for i, v := range values {
			if clean[i] = s.text(v); hides(name) {
				clean[i] = redacted
			}
		}
		out[name] = clean
	}
	return out
}

// isPrivate reports whether a request header is not known to be public.
func isPrivate(name string) bool {
	name = http.CanonicalHeaderKey(name)
	return !slices.Contains(publicHeaders, name) && !slices.Contains(dialects.PublicHeaders(), name)
}

// url returns a URL without credentials.
func (s secrets) url(u *url.URL) string {
	clean := *u
	clean.User = nil
	query := clean.Query()
	for name := range query {
		if isSecret(name) {
			query[name] = []string{redacted}
		}
	}
	clean.RawQuery = query.Encode()
	return s.text(clean.String())
}

// request returns the record of a request.
func (s secrets) request(r *http.Request, body []byte) requestRecord {
	return requestRecord{Method: r.Method, URL: s.url(r.URL), Header: s.header(r.Header, isPrivate), bodyRecord: recordBody(s.bytes(body))}
}

// takeBody reads the body of a request and returns a request with the body restored.
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
	again := r.Clone(r.Context()) // a transport must not modify the request
	again.Body = io.NopCloser(bytes.NewReader(body))
	again.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return body, again, nil
}

// readTraffic reads a traffic file.
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
			return nil, fmt.Errorf("sim: %s: exchange %d has version %d: this program reads version %d", name, n, x.V, trafficVersion)
		}
		out = append(out, x)
	}
}
