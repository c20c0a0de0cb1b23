package oauth

import (
	"net/http"
	"strings"
)

const maxChallenges = 64

// challenge holds the contents of WWW-Authenticate headers.
type challenge struct {
	scheme   string // "bearer", "dpop" or "" if the server asks for neither
	metadata string // resource_metadata
	scope    []string
	code     string // error
	dpop     bool   // whether the server offers DPoP
	schemes  []string
}

// readChallenge collects the Bearer and DPoP challenges of a response. The parser of
// oauthex rejects all challenges of a response if one of them is malformed or has the form
// of Negotiate, so it is not used here.
func readChallenge(h http.Header) challenge {
	var c challenge
	for _, p := range parseChallenges(h.Values("WWW-Authenticate")) {
		c.schemes = append(c.schemes, p.scheme)
		if p.scheme == "dpop" {
			c.dpop = true
		}
		if p.scheme != "bearer" && p.scheme != "dpop" {
			continue
		}
		if c.scheme == "" {
			c.scheme = p.scheme
		}
		if c.metadata == "" {
			c.metadata = p.params["resource_metadata"]
		}
		if c.code == "" {
			c.code = p.params["error"]
		}
		if len(c.scope) == 0 {
			c.scope = splitScope(p.params["scope"])
		}
	}
	return c
}

type parsedChallenge struct {
	scheme string // lower case
	params map[string]string
}

// parseChallenges reads challenges (RFC 9110, section 11.6.1). A malformed part is skipped up
// to the next comma.
func parseChallenges(headers []string) []parsedChallenge {
	var all []parsedChallenge
	for _, h := range headers {
		p := headerReader{s: h}
		for len(all) < maxChallenges {
			p.skip(" \t,")
			if p.s == "" {
				break
			}
			word := p.token()
			if word == "" {
				p.skipPart()
				continue
			}
			rest := strings.TrimLeft(p.s, " \t")
			if strings.HasPrefix(rest, "=") && len(all) > 0 {
				p.s = strings.TrimLeft(rest[1:], " \t")
				if value, ok := p.value(); ok {
					last := all[len(all)-1]
					name := strings.ToLower(word)
					if _, twice := last.params[name]; !twice {
						last.params[name] = value
					}
					continue
				}
				p.skipPart()
				continue
			}
			all = append(all, parsedChallenge{scheme: strings.ToLower(word), params: map[string]string{}})
		}
	}
	return all
}

type headerReader struct{ s string }

func (p *headerReader) skip(chars string) { p.s = strings.TrimLeft(p.s, chars) }

func (p *headerReader) skipPart() {
	quoted := false
	for i := 0; i < len(p.s); i++ {
		switch c := p.s[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			p.s = p.s[i:]
			return
		}
	}
	p.s = ""
}

func (p *headerReader) token() string {
	i := 0
	for i < len(p.s) && tokenChar(p.s[i]) {
		i++
	}
	t := p.s[:i]
	p.s = p.s[i:]
	return t
}

func tokenChar(c byte) bool {
	return c > ' ' && c < 0x7f && !strings.ContainsRune(`()<>@,;:\"/[]?={}`, rune(c))
}

// value reads a quoted string, or text up to white space or a comma: many servers forget the
// quotation marks around URLs.
func (p *headerReader) value() (string, bool) {
	if !strings.HasPrefix(p.s, `"`) {
		i := strings.IndexAny(p.s, " \t,")
		if i < 0 {
			i = len(p.s)
		}
		v := p.s[:i]
		p.s = p.s[i:]
		return v, v != "" && !strings.ContainsAny(v, `"`)
	}
	var b strings.Builder
	for i := 1; i < len(p.s); i++ {
		switch c := p.s[i]; c {
		case '\\':
			if i++; i < len(p.s) {
				b.WriteByte(p.s[i])
			}
		case '"':
			p.s = p.s[i+1:]
			return b.String(), true
		default:
			b.WriteByte(c)
		}
	}
	p.s = ""
	return "", false
}
