package provider

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/dialects"
	"github.com/dragoman-go/dragoman/internal/text/secret"
)

// redacted stands where a secret stood.
const redacted = "[redacted]"

// minSecret is the length from which on a text is taken for a secret: a shorter
// one would be found in every other word. Of a header that is set by hand, which
// may be no secret at all, minSetting is.
const (
	minSecret  = 4
	minSetting = 8
)

// publicHeaders may be seen by anybody, and those of the dialects.
var publicHeaders = []string{"Accept", "Accept-Encoding", "Content-Type", "User-Agent"}

// isPublic reports whether a header, by its canonical name, holds no secret.
func isPublic(name string) bool {
	return slices.Contains(publicHeaders, name) || slices.Contains(dialects.PublicHeaders(), name)
}

// secrets are the texts that no log and no error may tell. In how many ways they
// are written is found out when there is something to tell: most requests succeed
// in silence.
type secrets struct {
	texts []string
	// spelt are all ways to write those that are known, the first of texts.
	spelt []string
	known int
}

func (s *secrets) add(text string, least int) {
	text = strings.TrimSpace(text)
	if len(text) >= least && !slices.Contains(s.texts, text) {
		s.texts = append(s.texts, text)
	}
}

// all are the secrets in every way that they are written.
func (s *secrets) all() []string {
	if s.known == len(s.texts) {
		return s.spelt
	}
	for _, text := range s.texts[s.known:] {
		for _, spelt := range secret.Spellings(text) {
			if !slices.Contains(s.spelt, spelt) {
				s.spelt = append(s.spelt, spelt)
			}
		}
	}
	s.known = len(s.texts)
	// The longest first: one may begin with another.
	slices.SortStableFunc(s.spelt, func(a, b string) int { return len(b) - len(a) })
	return s.spelt
}

// headers takes the values that are not in before and at least so long.
func (s *secrets) headers(h, before http.Header, least int) {
	for name, values := range h {
		if isPublic(http.CanonicalHeaderKey(name)) || slices.Equal(before[name], values) {
			continue
		}
		for _, v := range values {
			s.add(v, least)
			if _, token, ok := strings.Cut(v, " "); ok { // "Bearer …"
				s.add(token, least)
			}
			if _, id, ok := strings.Cut(v, "Credential="); ok && strings.HasPrefix(v, "AWS4-") {
				id, _, _ = strings.Cut(id, "/")
				s.add(id, least)
			}
		}
	}
}

// url takes the password, or the user where there is none, with the header that
// net/http makes of them, and the values of the query, but for those that the API
// itself wants and those that who asks has, which are named in asked.
func (s *secrets) url(u *url.URL, asked []string) {
	if u.User != nil {
		password, _ := u.User.Password()
		s.add(cmp.Or(password, u.User.Username()), minSecret)
		s.add(base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)), minSecret)
	}
	for name, values := range u.Query() {
		if name == "alt" || name == "api-version" || name == "beta" || slices.Contains(asked, name) {
			continue
		}
		for _, v := range values {
			s.add(v, minSecret)
		}
	}
}

// in reports whether a header has a secret in it, as it is.
func (s *secrets) in(t string) bool {
	return slices.ContainsFunc(s.texts, func(hidden string) bool { return strings.Contains(t, hidden) })
}

// text is a text without the secrets.
func (s *secrets) text(t string) string {
	for _, hidden := range s.all() {
		t = strings.ReplaceAll(t, hidden, redacted)
	}
	return t
}

// cut is a text that a bound cut off, without what it ends with of a secret that
// the bound cut in two.
func (s *secrets) cut(t string) string {
	for _, hidden := range s.all() {
		for n := min(len(hidden)-1, len(t)); n >= minSecret; n-- {
			if strings.HasSuffix(t, hidden[:n]) {
				t = t[:len(t)-n] + redacted
				break
			}
		}
	}
	return t
}

// bytes is text for bytes, which are returned themselves where they hold none.
func (s *secrets) bytes(b []byte) []byte {
	for _, hidden := range s.all() {
		if bytes.Contains(b, []byte(hidden)) {
			b = bytes.ReplaceAll(b, []byte(hidden), []byte(redacted))
		}
	}
	return b
}

// apiError is an error of a server without the secrets, as some servers repeat the
// key that they refuse, and no longer than anybody reads.
func (s *secrets) apiError(e *dragoman.APIError) *dragoman.APIError {
	out := *e
	for _, f := range []*string{&out.Message, &out.Type, &out.Code, &out.Param, &out.RequestID} {
		*f = s.text(*f)
	}
	if message, ok := strings.CutSuffix(out.Message, "…"); ok {
		out.Message = s.cut(message) + "…"
	}
	if e.Native != nil {
		out.Native = &dragoman.Native{Format: e.Native.Format, JSON: s.bytes(e.Native.JSON)}
		if !json.Valid(out.Native.JSON) { // a key like "null" stands everywhere
			out.Native = nil
		}
	}
	if e.Err != nil {
		out.Err = s.error(e.Err)
	}
	out.Message = clip(out.Message, maxErrorText)
	for _, f := range []*string{&out.Type, &out.Code, &out.Param, &out.RequestID} {
		*f = clip(*f, maxErrorWord)
	}
	return &out
}

// clip is a text of at most so many bytes, and a sign that there was more.
func clip(t string, most int) string {
	if len(t) <= most {
		return t
	}
	return strings.ToValidUTF8(t[:most], "") + "…"
}

// users are those of URLs, which a transport quotes that cannot use its proxy.
var users = regexp.MustCompile(`://[^\s"'<>]*@`)

// error is any error without the secrets.
func (s *secrets) error(err error) error {
	if err == nil {
		return nil
	}
	if api, ok := err.(*dragoman.APIError); ok && api != nil { //nolint:errorlint // this one itself, not its cause
		return s.apiError(api)
	}
	text := err.Error()
	if clean := users.ReplaceAllString(s.text(text), "://"+redacted+"@"); clean != text {
		return &redactedError{text: clean, err: err}
	}
	return err
}

// redactedError tells an error without its secrets. What it was is known, but
// not handed out.
type redactedError struct {
	text string
	err  error
}

func (e *redactedError) Error() string        { return e.text }
func (e *redactedError) Is(target error) bool { return errors.Is(e.err, target) }
