package oauth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/go-json-experiment/json"
)

const minRSABits = 2048

// ParseKey reads a private key in PEM: PKCS #8, or the older forms for RSA and EC keys.
func ParseKey(data []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, errors.New("oauth: the key is not in PEM format")
	}
	var key any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		return nil, fmt.Errorf("oauth: the PEM block is a %q, not a private key", block.Type)
	}
	if err != nil {
		return nil, fmt.Errorf("oauth: read the private key: %w", err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("oauth: a key of type %T cannot sign", key)
	}
	if _, err := signingAlgorithm(signer); err != nil {
		return nil, err
	}
	return signer, nil
}

func signingAlgorithm(key crypto.Signer) (string, error) {
	switch k := key.Public().(type) {
	case *rsa.PublicKey:
		if k.N.BitLen() < minRSABits {
			return "", fmt.Errorf("oauth: the RSA key has fewer than %d bits", minRSABits)
		}
		return "RS256", nil
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P256() {
			return "ES256", nil
		}
	}
	return "", errors.New("oauth: the key must be an RSA key, or an ECDSA key on the curve P-256")
}

// signJWT returns a signed token. The header gets the algorithm of the key.
func signJWT(key crypto.Signer, header, claims map[string]any) (string, error) {
	alg, err := signingAlgorithm(key)
	if err != nil {
		return "", err
	}
	header["alg"] = alg
	h, err := json.Marshal(header, json.Deterministic(true))
	if err != nil {
		return "", err
	}
	c, err := json.Marshal(claims, json.Deterministic(true))
	if err != nil {
		return "", err
	}
	text := encode64(h) + "." + encode64(c)
	sum := sha256.Sum256([]byte(text))
	sig, err := key.Sign(rand.Reader, sum[:], crypto.SHA256)
	if err != nil {
		return "", fmt.Errorf("oauth: sign: %w", err)
	}
	if alg == "ES256" {
		var rs struct{ R, S *big.Int }
		if rest, err := asn1.Unmarshal(sig, &rs); err != nil || len(rest) > 0 || rs.R.BitLen() > 256 || rs.S.BitLen() > 256 {
			return "", errors.New("oauth: sign: the key returned a malformed signature")
		}
		sig = make([]byte, 64)
		rs.R.FillBytes(sig[:32])
		rs.S.FillBytes(sig[32:])
	}
	return text + "." + encode64(sig), nil
}

func encode64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// randomText returns 256 random bits.
func randomText() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return encode64(b)
}

const assertionLifetime = 2 * time.Minute

// clientAssertion authenticates a client by its key (RFC 7523). The audience is the issuer,
// so that the assertion is worthless at another server.
func clientAssertion(key crypto.Signer, keyID, client, issuer string, now time.Time) (string, error) {
	header := map[string]any{"typ": "JWT"}
	if keyID != "" {
		header["kid"] = keyID
	}
	return signJWT(key, header, map[string]any{
		"iss": client, "sub": client, "aud": issuer, "jti": randomText(),
		"iat": now.Unix(), "exp": now.Add(assertionLifetime).Unix(),
	})
}

// proofKey makes a key for DPoP proofs.
func newProofKey() (*ecdsa.PrivateKey, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

// proof returns a DPoP proof for one request (RFC 9449). It contains the hash of the token,
// if there is one.
func proof(key *ecdsa.PrivateKey, method, address, nonce, token string, now time.Time) (string, error) {
	point, err := key.PublicKey.Bytes()
	if err != nil || len(point) != 65 {
		return "", errors.New("oauth: the proof key is not a P-256 key")
	}
	header := map[string]any{
		"typ": "dpop+jwt",
		"jwk": map[string]string{"kty": "EC", "crv": "P-256", "x": encode64(point[1:33]), "y": encode64(point[33:])},
	}
	claims := map[string]any{"jti": randomText(), "htm": method, "htu": address, "iat": now.Unix()}
	if nonce != "" {
		claims["nonce"] = nonce
	}
	if token != "" {
		sum := sha256.Sum256([]byte(token))
		claims["ath"] = encode64(sum[:])
	}
	return signJWT(key, header, claims)
}
