package provider

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
)

// Auth puts a credential on a request. It is safe for concurrent use. What it
// adds to the headers or the query is kept out of logs and errors.
type Auth interface {
	// Authorize changes the headers or the URL of a request whose body is known.
	// It is called for every attempt, so that credentials may be renewed.
	Authorize(ctx context.Context, req *http.Request, body []byte) error
}

// accountant is an Auth that can tell accounts apart. What it returns is a
// secret: only a hash that it keys leaves the package.
type accountant interface{ account(context.Context) string }

// Key gives a credential when it is needed. It is safe for concurrent use. It
// may read it from wherever it is kept, or renew it:
//
//	provider.Bearer(func(ctx context.Context) (string, error) {
//		t, err := tokens.Token() // of golang.org/x/oauth2
//		if err != nil {
//			return "", err
//		}
//		return t.AccessToken, nil
//	})
type Key func(context.Context) (string, error)

// FixedKey is a key that is known.
func FixedKey(key string) Key {
	return func(context.Context) (string, error) { return key, nil }
}

// EnvKey is a key in the environment, in the first of some variables that is
// set. It is looked up with every request: without one, the request fails with a
// [*MissingKeyError].
func EnvKey(variables ...string) Key { return envKey(os.Getenv, variables...) }

func envKey(getenv func(string) string, variables ...string) Key {
	return func(context.Context) (string, error) {
		if key := firstOf(getenv, variables...); key != "" {
			return key, nil
		}
		return "", missing(variables...)
	}
}

// MissingKeyError says which variables of the environment a credential was
// looked for in. It is the cause of a [*dragoman.APIError] of the class
// authentication.
type MissingKeyError struct {
	// Variables are the ones that can be set.
	Variables []string
}

func (e *MissingKeyError) Error() string {
	return "no credential; set " + strings.Join(e.Variables, " or ")
}

func missing(variables ...string) error {
	cause := &MissingKeyError{Variables: variables}
	return &dragoman.APIError{Class: dragoman.ErrorAuth, Message: "provider: " + cause.Error(), Err: cause}
}

// unusable says that a credential cannot be had, or cannot be sent.
func unusable(err error) error {
	return &dragoman.APIError{Class: dragoman.ErrorAuth, Message: fmt.Sprintf("provider: no credential: %v", err), Err: err}
}

// headerAuth is a key in a header.
type headerAuth struct {
	header, prefix string
	key            Key
	// fleeting keys are renewed: they tell nothing of whose they are.
	fleeting bool
}

// Bearer sends a key as "Authorization: Bearer …".
func Bearer(k Key) Auth { return headerAuth{header: "Authorization", prefix: "Bearer ", key: k} }

// Token is Bearer for keys that are renewed from time to time, as those of
// Google Cloud are: that one is new does not make the account another.
func Token(k Key) Auth {
	return headerAuth{header: "Authorization", prefix: "Bearer ", key: k, fleeting: true}
}

// HeaderKey sends a key in a header of its own, such as "x-api-key".
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
		return "", unusable(errNoKey)
	}
	key, err := a.key(ctx)
	if err != nil {
		if isAPIError(err) || ctx.Err() != nil {
			return "", err
		}
		return "", unusable(err)
	}
	switch {
	case key == "":
		return "", unusable(errNoKey)
	case strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "", unusable(errBadKey)
	}
	return key, nil
}

func (a headerAuth) account(ctx context.Context) string {
	if a.fleeting || a.key == nil {
		return ""
	}
	key, err := a.key(ctx)
	if err != nil {
		return ""
	}
	return key
}
