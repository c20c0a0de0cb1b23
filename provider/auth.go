package provider

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
)

// Auth adds a credential to a request. It is safe for concurrent use. What it adds to the
// headers or the query is redacted in logs and errors.
type Auth interface {
	// Authorize changes the headers or the URL of a request with this body. It is called for
	// every attempt, so that it can renew credentials.
	Authorize(ctx context.Context, req *http.Request, body []byte) error
}

// accountAuth is an Auth that can distinguish accounts. account returns a secret: only a hash
// keyed with it leaves the package.
type accountAuth interface{ account(context.Context) string }

// Key returns a credential. It is called for each attempt and must be safe for concurrent use.
// It may read the credential from a store or renew it:
//
//	provider.Bearer(func(ctx context.Context) (string, error) {
//		t, err := tokens.Token() // of golang.org/x/oauth2
//		if err != nil {
//			return "", err
//		}
//		return t.AccessToken, nil
//	})
type Key func(context.Context) (string, error)

// FixedKey returns a Key with a constant value.
func FixedKey(key string) Key {
	return func(context.Context) (string, error) { return key, nil }
}

// EnvKey returns a Key that reads the first of the environment variables that is set. It reads
// the environment for every request. If none is set, the request fails with a
// [*MissingKeyError].
func EnvKey(variables ...string) Key { return envKey(os.Getenv, variables...) }

func envKey(getenv func(string) string, variables ...string) Key {
	return func(context.Context) (string, error) {
		if key := firstOf(getenv, variables...); key != "" {
			return key, nil
		}
		return "", missingKeyError(variables...)
	}
}

// MissingKeyError reports that none of the environment variables for a credential is set. It is
// the cause of a [*dragoman.APIError] of class [dragoman.ErrorAuth].
type MissingKeyError struct {
	// Variables lists the variables; setting one of them is enough.
	Variables []string
}

func (e *MissingKeyError) Error() string {
	return "the API key is missing: set " + strings.Join(e.Variables, " or ")
}

func missingKeyError(variables ...string) error {
	cause := &MissingKeyError{Variables: variables}
	return &dragoman.APIError{Class: dragoman.ErrorAuth, Message: "provider: " + cause.Error(), Err: cause}
}

// unusableKeyError returns the error for a credential that cannot be obtained or cannot be sent.
func unusableKeyError(err error) error {
	return &dragoman.APIError{Class: dragoman.ErrorAuth, Message: fmt.Sprintf("provider: cannot get the credential: %v", err), Err: err}
}

// headerAuth sends a key in a header.
type headerAuth struct {
	header, prefix string
	key            Key
	// renewed keys are renewed, so they do not identify an account.
	renewed bool
}

// Bearer sends a key as "Authorization: Bearer …".
func Bearer(k Key) Auth { return headerAuth{header: "Authorization", prefix: "Bearer ", key: k} }

// Token is like Bearer, for keys that are renewed from time to time, such as those of Google
// Cloud. A renewed key still counts as the same account.
func Token(k Key) Auth {
	return headerAuth{header: "Authorization", prefix: "Bearer ", key: k, renewed: true}
}

// HeaderKey sends a key in the given header, such as "x-api-key".
func HeaderKey(header string, k Key) Auth { return headerAuth{header: header, key: k} }

// Authorize implements [Auth].
func (a headerAuth) Authorize(ctx context.Context, req *http.Request, _ []byte) error {
	key, err := a.get(ctx)
	if err != nil {
		return err
	}
	req.Header.Set(a.header, a.prefix+key)
	return nil
}

func (a headerAuth) get(ctx context.Context) (string, error) {
	if a.key == nil {
		return "", unusableKeyError(errNoKey)
	}
	key, err := a.key(ctx)
	if err != nil {
		if isAPIError(err) || ctx.Err() != nil {
			return "", err
		}
		return "", unusableKeyError(err)
	}
	switch {
	case key == "":
		return "", unusableKeyError(errNoKey)
	case strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "", unusableKeyError(errBadKey)
	}
	return key, nil
}

func (a headerAuth) account(ctx context.Context) string {
	if a.renewed || a.key == nil {
		return ""
	}
	key, err := a.key(ctx)
	if err != nil {
		return ""
	}
	return key
}
