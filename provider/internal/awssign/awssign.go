// Package awssign signs requests to Amazon Web Services with the signer of the AWS SDK, without
// exposing the types of the SDK.
package awssign

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// Request holds the request to sign and the credential.
type Request struct {
	HTTP *http.Request
	Body []byte
	// The credential; Session is empty for a permanent one.
	ID, Secret, Session string
	Service, Region     string
	Time                time.Time
}

// Sign adds the signature to the headers of the request. It signs all present headers, except
// those that proxies may change.
func Sign(ctx context.Context, r Request) error {
	sum := sha256.Sum256(r.Body)
	keys := aws.Credentials{AccessKeyID: r.ID, SecretAccessKey: r.Secret, SessionToken: r.Session}
	return v4.NewSigner().SignHTTP(ctx, keys, r.HTTP, hex.EncodeToString(sum[:]), r.Service, r.Region, r.Time)
}
