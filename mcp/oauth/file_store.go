package oauth

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

const (
	storeVersion = 1 // first byte of a file
	keyBytes     = 32
	minSecret    = 16
	maxStored    = 1 << 20
	lockInterval = 20 * time.Millisecond
)

// FileStore keeps values in a folder, one encrypted file per key (AES-256-GCM, bound to its
// key, so that two files cannot be exchanged). Several processes may use one folder.
//
// What the encryption protects against depends on the secret. Without one, FileStore makes a
// random key in the file "key" of the folder, readable by its owner only. That keeps tokens
// out of logs, searches, and backups or synchronized folders that leave out the key file. It
// does not protect against a program that runs as the same user, or against a copy of the
// whole folder. With a secret from elsewhere, such as a variable that a key chain or a secret
// manager sets, a copy of the folder is useless without the secret; a program that can read
// the memory or the environment of this one still has the tokens. Neither form detects that
// an older version of a file was restored.
type FileStore struct {
	dir  string
	seal cipher.AEAD
}

var _ Store = (*FileStore)(nil)

// DefaultDir returns the folder for tokens of the user.
func DefaultDir() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("oauth: %w", err)
	}
	return filepath.Join(dir, "dragoman", "oauth"), nil
}

// NewFileStore opens or creates a store in a folder. The secret encrypts the files; it must
// be random and at least 16 bytes long. An empty secret means the key file of the folder,
// which is made if it does not exist.
func NewFileStore(dir string, secret []byte) (*FileStore, error) {
	if len(secret) > 0 && len(secret) < minSecret {
		return nil, fmt.Errorf("oauth: the secret of the token store is shorter than %d bytes", minSecret)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("oauth: token store: %w", err)
	}
	if len(secret) == 0 {
		var err error
		if secret, err = keyFile(filepath.Join(dir, "key")); err != nil {
			return nil, fmt.Errorf("oauth: token store: %w", err)
		}
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "dragoman mcp token store", keyBytes)
	if err != nil {
		return nil, fmt.Errorf("oauth: token store: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("oauth: token store: %w", err)
	}
	seal, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("oauth: token store: %w", err)
	}
	return &FileStore{dir: dir, seal: seal}, nil
}

// keyFile reads the key of a folder, or makes it. Of several processes that make it at the
// same time, one wins and the others read its key.
func keyFile(name string) ([]byte, error) {
	for range 2 {
		data, err := readPrivate(name)
		if err == nil {
			key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(data)))
			if err != nil || len(key) != keyBytes {
				return nil, fmt.Errorf("%s is not a key: restore it, or delete the folder and log in again", name)
			}
			return key, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		key := make([]byte, keyBytes)
		_, _ = rand.Read(key) // never fails
		tmp, err := writeTemp(filepath.Dir(name), []byte(base64.StdEncoding.EncodeToString(key)+"\n"))
		if err != nil {
			return nil, err
		}
		err = os.Link(tmp, name) // fails if the file exists, unlike Rename
		if err != nil && !errors.Is(err, fs.ErrExist) {
			err = createExclusive(name, tmp) // file systems without links
		}
		_ = os.Remove(tmp)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s: cannot be created", name)
}

func createExclusive(name, from string) error {
	data, err := os.ReadFile(from) //nolint:gosec // our own temporary file
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the folder is the user's choice
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// readPrivate reads a file that only its owner may read.
func readPrivate(name string) ([]byte, error) {
	f, err := os.Open(name) //nolint:gosec // the folder is the user's choice
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s can be read by other users: run chmod 600 on it", name)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxStored+1))
	if err == nil && len(data) > maxStored {
		err = fmt.Errorf("%s is larger than 1 MiB", name)
	}
	return data, err
}

// writeTemp writes a temporary file that only its owner may read.
func writeTemp(dir string, data []byte) (string, error) {
	f, err := os.CreateTemp(dir, "tmp-*") // mode 0600
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

func (s *FileStore) file(key, suffix string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:16])+suffix)
}

// Load returns the value of a key. A file that cannot be decrypted is an error that names it.
func (s *FileStore) Load(_ context.Context, key string) ([]byte, error) {
	name := s.file(key, ".sealed")
	data, err := readPrivate(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("oauth: token store: %w", err)
	}
	n := s.seal.NonceSize()
	if len(data) < 1+n || data[0] != storeVersion {
		return nil, fmt.Errorf("oauth: token store: %s is not a sealed file of this version: delete it and log in again", name)
	}
	value, err := s.seal.Open(nil, data[1:1+n], data[1+n:], []byte(key))
	if err != nil {
		return nil, fmt.Errorf("oauth: token store: %s cannot be decrypted with this secret: set the secret that it was written with, or delete it and log in again", name)
	}
	return value, nil
}

// Save replaces the file of a key.
func (s *FileStore) Save(_ context.Context, key string, value []byte) error {
	name := s.file(key, ".sealed")
	if len(value) == 0 {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("oauth: token store: %w", err)
		}
		return nil
	}
	nonce := make([]byte, s.seal.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	data := append([]byte{storeVersion}, nonce...)
	tmp, err := writeTemp(s.dir, s.seal.Seal(data, nonce, value, []byte(key)))
	if err == nil {
		if err = os.Rename(tmp, name); err != nil {
			_ = os.Remove(tmp)
		}
	}
	if err != nil {
		return fmt.Errorf("oauth: token store: %w", err)
	}
	return nil
}

// Lock takes the lock of a key. The operating system releases it if the process ends.
func (s *FileStore) Lock(ctx context.Context, key string) (func(), error) {
	name := s.file(key, ".lock")
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the folder is the user's choice
	if err != nil {
		return nil, fmt.Errorf("oauth: token store: %w", err)
	}
	for {
		ok, err := tryLock(f)
		if err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("oauth: token store: lock %s: %w", name, err)
		}
		if ok {
			return func() { _ = f.Close() }, nil // closing releases the lock
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("oauth: token store: wait for another login or refresh: %w", context.Cause(ctx))
		case <-time.After(lockInterval):
		}
	}
}
