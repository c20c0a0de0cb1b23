package dragoman

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// storedVersion is the version this package writes, and the highest it reads.
// The package comment states the rules of the stored form.
const storedVersion = 1

// storer writes stored JSON. The first error sticks.
type storer struct {
	w   jsonwire.Writer
	err error
}

func store(what string, write func(*storer)) ([]byte, error) { return storeSized(what, 0, write) }

// storeSized is store for what takes about so many bytes.
func storeSized(what string, size int, write func(*storer)) ([]byte, error) {
	var s storer
	s.w.Buf = make([]byte, 0, size)
	write(&s)
	if s.err != nil {
		return nil, fmt.Errorf("dragoman: storing %s: %w", what, s.err)
	}
	return s.w.Buf, nil
}

// top opens the object of a value that is stored by itself.
func (s *storer) top() {
	s.w.BeginObject()
	s.w.IntField("v", storedVersion)
}

func (s *storer) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// str, flag and num write a member unless it is zero; the opt forms write it
// unless it is nil.
func (s *storer) str(name, v string) { s.w.StringFieldIf(name, v) }

func (s *storer) flag(name string, v bool) {
	if v {
		s.w.BoolField(name, v)
	}
}

func (s *storer) num(name string, v int64) {
	if v != 0 {
		s.w.IntField(name, v)
	}
}

func (s *storer) optBool(name string, v *bool) {
	if v != nil {
		s.w.BoolField(name, *v)
	}
}

func (s *storer) optNum(name string, v *int64) {
	if v != nil {
		s.w.IntField(name, *v)
	}
}

func (s *storer) optNumber(name string, v *Number) {
	if v != nil {
		s.w.StringField(name, string(*v))
	}
}

// bytes writes native bytes unless they are nil.
func (s *storer) bytes(name string, v []byte) {
	if v != nil {
		s.w.Key(name)
		s.native(v)
	}
}

func (s *storer) native(v []byte) {
	switch {
	case v == nil:
		s.w.Null()
	case utf8.Valid(v):
		s.w.String(string(v))
	default:
		s.w.BeginObject()
		s.w.StringField("base64", base64.StdEncoding.EncodeToString(v))
		s.w.EndObject()
	}
}

func (s *storer) mirror(f Fingerprint) {
	if f != (Fingerprint{}) {
		s.w.StringField("mirror", f.String())
	}
}

func storeOpt[T any](s *storer, name string, v *T, write func(*T, *storer)) {
	if v != nil {
		s.w.Key(name)
		write(v, s)
	}
}

func storeList[T any](s *storer, name string, list []T, write func(*T, *storer)) {
	if list == nil {
		return
	}
	s.w.Key(name)
	s.w.BeginArray()
	for i := range list {
		write(&list[i], s)
	}
	s.w.EndArray()
}

func storeString(v *string, s *storer) { s.w.String(*v) }

func storeNative[T ~[]byte](v *T, s *storer) { s.native(*v) }

// load reads one stored value into dst. As is the custom, null changes
// nothing. A value that others hold says no version, but should it say a newer
// one all the same, that is believed.
func load[T any](data []byte, what string, dst *T, read func(*jsonwire.Reader) T) error {
	if string(bytes.TrimSpace(data)) == "null" {
		return nil
	}
	if err := checkVersion(data, false); errors.Is(err, ErrVersion) {
		return fmt.Errorf("dragoman: stored %s: %w", what, err)
	}
	r := jsonwire.NewReader(data)
	v := read(r)
	if err := r.End(); err != nil {
		return fmt.Errorf("dragoman: stored %s: %w", what, err)
	}
	*dst = v
	return nil
}

// loadTop is load for a value that is stored by itself. The version is looked
// at before anything else, since another version may mean anything else.
func loadTop[T any](data []byte, what string, dst *T, read func(*jsonwire.Reader) T) error {
	if string(bytes.TrimSpace(data)) == "null" {
		return nil
	}
	if err := checkVersion(data, true); err != nil {
		return fmt.Errorf("dragoman: stored %s: %w", what, err)
	}
	return load(data, what, dst, read)
}

func checkVersion(data []byte, demanded bool) error {
	r := jsonwire.NewReader(data)
	if !demanded && (r.Kind() != '{' || !bytes.Contains(data, []byte(`"v"`))) {
		return nil
	}
	for key := range r.Object() {
		if string(key) != "v" {
			r.Skip()
			continue
		}
		raw := r.Raw()
		if r.Err() != nil {
			break
		}
		v, err := strconv.ParseInt(string(raw), 10, 64)
		switch {
		case err != nil || v < 1:
			return fmt.Errorf(`"v" is %.40s, not a version`, raw)
		case v > storedVersion:
			return fmt.Errorf("%w: it is version %d, this build reads up to version %d", ErrVersion, v, storedVersion)
		default:
			return nil
		}
	}
	if err := r.Err(); err != nil {
		return err
	}
	return errors.New(`no "v": the value does not say which version it was stored in`)
}

func loadOpt[T any](r *jsonwire.Reader, read func(*jsonwire.Reader) T) *T {
	if r.Null() {
		return nil
	}
	v := read(r)
	return &v
}

func loadList[T any](r *jsonwire.Reader, read func(*jsonwire.Reader) T) []T {
	if r.Null() {
		return nil
	}
	list := []T{}
	for range r.Array() {
		list = append(list, read(r))
	}
	return list
}

func loadWord[T ~string](r *jsonwire.Reader) T { return T(r.String()) }

// loadNative reads native bytes: a string, or {"base64": "…"}.
func loadNative[T ~[]byte](r *jsonwire.Reader) T {
	switch r.Kind() {
	case 'n':
		r.Skip()
		return nil
	case '{':
		var out T
		for key := range r.Object() {
			if string(key) != "base64" {
				r.Skip()
				continue
			}
			b, err := base64.StdEncoding.DecodeString(r.String())
			if err != nil {
				r.Fail(err)
			}
			out = b
		}
		if out == nil {
			r.Fail(errors.New(`bytes that are no string need a "base64" member`))
		}
		return out
	default:
		return T(r.String())
	}
}

func loadMirror(r *jsonwire.Reader) Fingerprint {
	var f Fingerprint
	if text := r.String(); text != "" {
		if err := f.UnmarshalText([]byte(text)); err != nil {
			r.Fail(err)
		}
	}
	return f
}

// String is the fingerprint in hexadecimal.
func (f Fingerprint) String() string { return hex.EncodeToString(f[:]) }

// MarshalText writes the fingerprint in hexadecimal.
func (f Fingerprint) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads 32 hexadecimal digits.
func (f *Fingerprint) UnmarshalText(b []byte) error {
	var g Fingerprint
	if n, err := hex.Decode(g[:], b[:min(len(b), 2*len(g))]); err != nil || n != len(g) || len(b) != 2*len(g) {
		return fmt.Errorf("dragoman: %.40q is no fingerprint (want %d hexadecimal digits)", b, 2*len(g))
	}
	*f = g
	return nil
}
