package dragoman

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// The versions that this package writes, and the highest that it reads. The package comment
// states the rules of the stored form. Version 2 of a report spells a kind "synthesized";
// version 1 spells it "synthesised", which can still be read.
const (
	storedVersion = 1
	reportVersion = 2
)

// versionOf returns the version of the stored form of a kind of value: "message", "report".
func versionOf(what string) int64 {
	if what == "report" {
		return reportVersion
	}
	return storedVersion
}

//go:generate go run ./internal/repo/storedgen

// storer writes stored JSON and keeps the first error. The code that calls it
// for each field is generated from the structs and their tags; the comment of
// internal/repo/storedgen explains how to add a field.
type storer struct {
	w   jsonwire.Writer
	err error
}

func newStorer(size int) storer { return storer{w: jsonwire.Writer{Buf: make([]byte, 0, size)}} }

// done returns the JSON, or the first error.
func (s *storer) done(what string) ([]byte, error) {
	if s.err != nil {
		return nil, fmt.Errorf("dragoman: storing %s: %w", what, s.err)
	}
	return s.w.Buf, nil
}

// top begins a value that is stored by itself: an object with its version. what is the kind of
// the value, as in errors.
func (s *storer) top(what string) {
	s.w.BeginObject()
	s.w.IntField("v", versionOf(what))
}

func (s *storer) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// str, flag and num write a field unless it is zero.
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

// bytes writes native bytes unless they are nil.
func (s *storer) bytes(name string, v []byte) {
	if v != nil {
		s.w.Key(name)
		s.native(v)
	}
}

// dropEmpty removes the last field if it is an empty object.
func (s *storer) dropEmpty(name string) {
	if before, ok := bytes.CutSuffix(s.w.Buf, []byte("{}")); ok {
		before = before[:len(before)-len(name)-len(`"":`)]
		s.w.Buf = bytes.TrimSuffix(before, []byte(","))
	}
}

// native writes native bytes as a string, or as an object if they are not UTF-8.
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

// load reads one stored value into dst. Like encoding/json, it ignores null. A value that is
// stored by itself must have a version. load checks it first, because a field may have another
// meaning in another version. A value inside another needs no version, but a newer version is
// an error.
func load[T any](data []byte, what string, top bool, dst *T, read func(*jsonwire.Reader) T) error {
	if string(bytes.TrimSpace(data)) == "null" {
		return nil
	}
	if err := checkVersion(data, versionOf(what), top); err != nil && (top || errors.Is(err, ErrVersion)) {
		return fmt.Errorf("dragoman: stored %s: %w", what, err)
	}
	r := jsonwire.Borrow(data)
	defer r.Return()
	v := read(r)
	if err := r.End(); err != nil {
		return fmt.Errorf("dragoman: stored %s: %w", what, err)
	}
	*dst = v
	return nil
}

func checkVersion(data []byte, highest int64, demanded bool) error {
	r := jsonwire.Borrow(data)
	defer r.Return()
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
		case v > highest:
			return fmt.Errorf("%w: version %d, but this build reads only up to version %d", ErrVersion, v, highest)
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

// loadBytes reads native bytes: a string, or {"base64": "…"}.
func loadBytes[T ~[]byte](r *jsonwire.Reader) T {
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
			r.Fail(errors.New(`bytes must be a string, or an object with the field "base64"`))
		}
		return out
	default:
		return T(r.String())
	}
}
