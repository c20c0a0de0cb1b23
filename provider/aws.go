package provider

import (
	"context"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-go/dragoman/provider/internal/awssign"
)

// AWSKeys is a credential for Amazon Web Services.
type AWSKeys struct {
	AccessKeyID     string
	SecretAccessKey string
	// SessionToken is set for temporary keys; empty means that they do not expire.
	SessionToken string
}

// String returns a placeholder, to keep the keys out of logs.
func (AWSKeys) String() string { return redacted }

// GoString returns a placeholder, to keep the keys out of logs.
func (AWSKeys) GoString() string { return redacted }

// SigV4 signs requests to Amazon Bedrock with Amazon's own signer. The zero value reads all
// settings from the environment.
type SigV4 struct {
	// Region is the region of the model, such as "us-east-1"; empty means AWS_REGION or
	// AWS_DEFAULT_REGION.
	Region string
	// Keys returns the credential; nil means AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
	// AWS_SESSION_TOKEN. To use a profile or a role, return what the config package of the AWS
	// SDK resolved.
	Keys func(context.Context) (AWSKeys, error)
	// Now returns the current time; nil means the system clock.
	Now func() time.Time

	getenv func(string) string
}

// The environment variables that hold AWS credentials.
const (
	envAWSID     = "AWS_ACCESS_KEY_ID"
	envAWSSecret = "AWS_SECRET_ACCESS_KEY"
	envAWSToken  = "AWS_SESSION_TOKEN"
)

// signedProvider returns the provider whose requests are signed.
var signedProvider = sync.OnceValue(func() builtin {
	all := builtins()
	return all[slices.IndexFunc(all, func(b builtin) bool { return b.Signature != "" })]
})

// Authorize implements [Auth].
func (s SigV4) Authorize(ctx context.Context, req *http.Request, body []byte) error {
	keys, err := s.keys(ctx)
	if err != nil {
		return err
	}
	region := s.Region
	if region == "" {
		region = firstOf(s.env, signedProvider().locationVariables("region")...)
	}
	if region == "" {
		return missingLocationError(signedProvider(), "region")
	}
	now := time.Now
	if s.Now != nil {
		now = s.Now
	}
	err = awssign.Sign(ctx, awssign.Request{
		HTTP: req, Body: body, ID: keys.AccessKeyID, Secret: keys.SecretAccessKey, Session: keys.SessionToken,
		Service: signedProvider().Signature, Region: region, Time: now(),
	})
	if err != nil {
		return unusableKeyError(err)
	}
	return nil
}

func (s SigV4) env(name string) string {
	if s.getenv != nil {
		return s.getenv(name)
	}
	return os.Getenv(name)
}

func (s SigV4) keys(ctx context.Context) (AWSKeys, error) {
	if s.Keys == nil {
		k := AWSKeys{AccessKeyID: firstOf(s.env, envAWSID), SecretAccessKey: firstOf(s.env, envAWSSecret), SessionToken: firstOf(s.env, envAWSToken)}
		if k.AccessKeyID == "" || k.SecretAccessKey == "" {
			return k, missingKeyError(signedProvider().TokenEnv, envAWSID+" and "+envAWSSecret)
		}
		return k, nil
	}
	k, err := s.Keys(ctx)
	switch {
	case err != nil && ctx.Err() == nil && !isAPIError(err):
		return k, unusableKeyError(err)
	case err == nil && (k.AccessKeyID == "" || k.SecretAccessKey == ""):
		return k, unusableKeyError(errNoKey)
	default:
		return k, err
	}
}

// Bedrock returns the credential for Amazon Bedrock that the environment provides: the Bedrock
// API key in AWS_BEARER_TOKEN_BEDROCK, or a signature by sign.
func Bedrock(sign SigV4) Auth { return tokenOrSignature{sign} }

type tokenOrSignature struct{ sign SigV4 }

// Authorize implements [Auth].
func (a tokenOrSignature) Authorize(ctx context.Context, req *http.Request, body []byte) error {
	if key := firstOf(a.sign.env, signedProvider().TokenEnv); key != "" {
		return Bearer(FixedKey(key)).Authorize(ctx, req, body)
	}
	return a.sign.Authorize(ctx, req, body)
}

// firstOf returns the value of the first variable that is set.
func firstOf(getenv func(string) string, names ...string) string {
	for _, name := range names {
		if v := strings.TrimSpace(getenv(name)); v != "" {
			return v
		}
	}
	return ""
}
