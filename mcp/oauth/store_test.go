package oauth

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestStores(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) Store{
		"memory": func(*testing.T) Store { return MemoryStore() },
		"file": func(t *testing.T) Store {
			s, err := NewFileStore(t.TempDir(), []byte("0123456789abcdef"))
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, ctx := open(t), t.Context()
			if v, err := s.Load(ctx, "k"); v != nil || err != nil {
				t.Errorf("absent: %q, %v", v, err)
			}
			for _, want := range []string{"one", "two"} {
				if err := s.Save(ctx, "k", []byte(want)); err != nil {
					t.Fatal(err)
				}
				if v, err := s.Load(ctx, "k"); string(v) != want || err != nil {
					t.Errorf("%q, %v", v, err)
				}
			}
			if v, err := s.Load(ctx, "other"); v != nil || err != nil {
				t.Errorf("other key: %q, %v", v, err)
			}
			for range 2 {
				if err := s.Save(ctx, "k", nil); err != nil {
					t.Fatal(err)
				}
			}
			if v, err := s.Load(ctx, "k"); v != nil || err != nil {
				t.Errorf("deleted: %q, %v", v, err)
			}

			// The race detector does not see the locks of the operating system.
			var inside, most atomic.Int32
			var group sync.WaitGroup
			for range 8 {
				group.Go(func() {
					unlock, err := s.Lock(ctx, "k")
					if err != nil {
						t.Error(err)
						return
					}
					if inside.Add(1) > 1 {
						most.Store(2)
					}
					runtime.Gosched()
					inside.Add(-1)
					unlock()
				})
			}
			group.Wait()
			if most.Load() > 1 {
				t.Error("two goroutines held the lock")
			}
			unlock, err := s.Lock(ctx, "k")
			if err != nil {
				t.Fatal(err)
			}
			defer unlock()
			ended, cancel := context.WithCancel(ctx)
			cancel()
			if _, err := s.Lock(ended, "k"); err == nil {
				t.Error("Lock waits beyond its context")
			}
			if other, err := s.Lock(ctx, "another"); err != nil {
				t.Error(err)
			} else {
				other()
			}
		})
	}
}

func TestFileStoreHasNoPlainText(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	s, err := NewFileStore(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.o.Store = s
	a := w.authorizer()
	w.mustCall(a)
	token, _ := a.Token(t.Context())
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(files) < 4 {
		t.Fatalf("files: %q", files)
	}
	for _, f := range files {
		data, _ := os.ReadFile(f)
		info, _ := os.Stat(f)
		for _, secret := range []string{token, "refresh-", w.rs.url, "dyn-1"} {
			if bytes.Contains(data, []byte(secret)) || strings.Contains(f, secret) {
				t.Errorf("%s contains %q", f, secret)
			}
		}
		if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v", f, info.Mode())
		}
		if strings.Contains(f, "tmp-") {
			t.Errorf("%s was left behind", f)
		}
	}
}

func TestFileStoreRefusesForeignFiles(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	s, err := NewFileStore(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"a", "b"} {
		if err := s.Save(ctx, k, []byte("value of "+k)); err != nil {
			t.Fatal(err)
		}
	}
	again, err := NewFileStore(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := again.Load(ctx, "a"); string(v) != "value of a" || err != nil {
		t.Errorf("the key file does not open its own files: %q, %v", v, err)
	}
	if err := os.Rename(s.file("a", ".sealed"), s.file("b", ".sealed")); err != nil {
		t.Fatal(err)
	}
	if v, err := s.Load(ctx, "b"); err == nil {
		t.Errorf("an exchanged file was read: %q", v)
	}
	other, err := NewFileStore(dir, []byte("another secret of 16 bytes"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Save(ctx, "a", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if v, err := other.Load(ctx, "a"); err == nil || !strings.Contains(err.Error(), "secret") {
		t.Errorf("another secret: %q, %v", v, err)
	}
	if err := os.WriteFile(s.file("a", ".sealed"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(ctx, "a"); err == nil {
		t.Error("an empty file was read")
	}
}

func TestFileStoreChecksKeyFile(t *testing.T) {
	if _, err := NewFileStore(t.TempDir(), []byte("short")); err == nil {
		t.Error("a short secret was accepted")
	}
	dir := t.TempDir()
	if _, err := NewFileStore(dir, nil); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(dir, "key")
	if runtime.GOOS != "windows" {
		if err := os.Chmod(key, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := NewFileStore(dir, nil); err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("error %v", err)
		}
		_ = os.Chmod(key, 0o600)
	}
	if err := os.WriteFile(key, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewFileStore(dir, nil); err == nil {
		t.Error("a damaged key was replaced or used")
	}
}

func TestKeyFileIsMadeOnce(t *testing.T) {
	dir := t.TempDir()
	stores := make([]*FileStore, 8)
	var group sync.WaitGroup
	for i := range stores {
		group.Go(func() {
			var err error
			if stores[i], err = NewFileStore(dir, nil); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if err := stores[0].Save(t.Context(), "k", []byte("v")); err != nil {
		t.Fatal(err)
	}
	for _, s := range stores {
		if v, err := s.Load(t.Context(), "k"); string(v) != "v" || err != nil {
			t.Errorf("%q, %v", v, err)
		}
	}
}

func TestDamagedStoreEntry(t *testing.T) {
	w := newWorld(t)
	w.mustCall(w.authorizer())
	m := w.o.Store.(*memoryStore)
	for key := range m.values {
		if strings.HasPrefix(key, "token/") {
			m.values[key] = []byte("{")
		}
	}
	w.mustCall(w.authorizer()) // logs in again
	if n := w.as.count(&w.as.logins); n != 2 {
		t.Errorf("%d logins", n)
	}
}
