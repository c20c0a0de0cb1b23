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
	"github.com/dragoman-go/dragoman/internal/textkit"
)

// redacted replaces a secret.
const redacted = "[redacted]"

// minSecret is the minimum length of a secret: a shorter text would occur in ordinary words.
// minSetting is the minimum for a header from the settings, which may not be a secret at all.
const (
	minSecret  = 4
	minSetting = 8
)

// publicHeaders are not secret; neither are those that the dialects declare public.
var publicHeaders = []string{"Accept", "Accept-Encoding", "Content-Type", "User-Agent"}

// isPublic reports whether a header, by its canonical name, holds no secret.
func isPublic(name string) bool {
	return slices.Contains(publicHeaders, name) || slices.Contains(dialects.PublicHeaders(), name)
}

// secrets are the texts that must not appear in logs and errors. The ways in which they may be
// written are computed only when there is something to redact, because most requests succeed
// without that.
type secrets struct {
	texts []string
	// spelled holds all spellings of the first spelledTexts of texts.
	spelled      []string
	spelledTexts int
}

func (s *secrets) add(text string, least int) {
	text = strings.TrimSpace(text)
	if len(text) >= least && !slices.Contains(s.texts, text) {
		s.texts = append(s.texts, text)
	}
}

// spellings returns all spellings of the secrets.
func (s *secrets) spellings() []string {
	if s.spelledTexts == len(s.texts) {
		return s.spelled
	}
	for _, text := range s.texts[s.spelledTexts:] {
		for _, spelt := range textkit.SecretSpellings(text) {
			if !slices.Contains(s.spelled, spelt) {
				s.spelled = append(s.spelled, spelt)
			}
		}
	}
	s.spelledTexts = len(s.texts)
	// The longest first: one may begin with another.
	slices.SortStableFunc(s.spelled, func(a, b string) int { return len(b) - len(a) })
	return s.spelled
}

// headers adds the values that are not in before and have at least this length.
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

// url adds the password, or the user if there is no password, the header that net/http builds
// from them, and the values of the query. It skips parameters that the API itself defines and
// those of the client, whose names are in asked.
func (s *secrets) url(u *url.URL, called []string) {
	if u.User != nil {
		password, _ := u.User.Password()
		s.add(cmp.Or(password, u.User.Username()), minSecret)
		s.add(base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)), minSecret)
	}
	for name, values := range u.Query() {
		if name == "alt" || name == "api-version" || name == "beta" || slices.Contains(called, name) {
			continue
		}
		for _, v := range values {
			s.add(v, minSecret)
		}
	}
}

// contains reports whether a header contains a secret verbatim.
func (s *secrets) contains(t string) bool {
	return slices.ContainsFunc(s.texts, func(hidden string) bool { return strings.Contains(t, hidden) })
}

// text returns a text without the secrets.
func (s *secrets) text(t string) string {
	for _, hidden := range s.spellings() {
		t = strings.ReplaceAll(t, hidden, redacted)
	}
	return t
}

// cutTail removes the beginning of a secret from the end of a text that a limit cut off.
func (s *secrets) cutTail(t string) string {
	for _, hidden := range s.spellings() {
		for n := min(len(hidden)-1, len(t)); n >= minSecret; n-- {
			if strings.HasSuffix(t, hidden[:n]) {
				t = t[:len(t)-n] + redacted
				break
			}
		}
	}
	return t
}

// bytes is text for bytes. It returns b itself if it contains no secrets.
func (s *secrets) bytes(b []byte) []byte {
	for _, hidden := range s.spellings() {
		if bytes.Contains(b, []byte(hidden)) {
			b = bytes.ReplaceAll(b, []byte(hidden), []byte(redacted))
		}
	}
	return b
}

// apiError returns a server error without the secrets, because some servers repeat the key that
// they refuse, and shortened to a readable length.
func (s *secrets) apiError(e *dragoman.APIError) *dragoman.APIError {
	out := *e
	for _, f := range []*string{&out.Message, &out.Type, &out.Code, &out.Param, &out.RequestID} {
		*f = s.text(*f)
	}
	if message, ok := strings.CutSuffix(out.Message, "…"); ok {
		out.Message = s.cutTail(message) + "…"
	}
	if e.Native != nil {
		out.Native = &dragoman.Native{Format: e.Native.Format, JSON: s.bytes(e.Native.JSON)}
		if !json.Valid(out.Native.JSON) { // a key like "null" occurs everywhere
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

// clip shortens a text to at most this many bytes and marks the cut.
func clip(t string, most int) string {
	if len(t) <= most {
		return t
	}
	return strings.ToValidUTF8(t[:most], "") + "…"
}

// urlUser matches the user part of URLs. A transport quotes it if it cannot use its proxy.
var urlUser = regexp.MustCompile(`://[^\s"'<>]*@`)

// error returns an error without the secrets.
func (s *secrets) error(err error) error {
	if err == nil {
		return nil
	}
	if api, ok := err.(*dragoman.APIError); ok && api != nil { //nolint:errorlint // the error itself, not its cause
		return s.apiError(api)
	}
	text := err.Error()
	if clean := urlUser.ReplaceAllString(s.text(text), "://"+redacted+"@"); clean != text {
		return &redactedError{text: clean, err: err}
	}
	return err
}

// redactedError is an error whose text has no secrets. errors.Is matches the original, but
// neither Unwrap nor errors.As returns it.
type redactedError struct {
	text string
	err  error
}

func (e *redactedError) Error() string        { return e.text }
func (e *redactedError) Is(target error) bool { return errors.Is(e.err, target) }
