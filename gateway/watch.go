package gateway

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/dragoman-go/dragoman/provider/extension"
)

// defaultWatch is the default interval of a [Watcher].
const defaultWatch = 2 * time.Second

// Watcher reloads a config file when it changes.
//
//	w := &gateway.Watcher{File: file, OnChange: server.Reload, OnError: log}
//	config, err := w.Load()
//	…
//	go w.Run(ctx)
//
// It reads the whole file, and the policies that it names, each time, so that it misses no change,
// whatever the modification times are. A change counts if two consecutive reads find it, so that a
// partly written file is not used. An invalid config is reported once, and the current config
// stays in use.
//
// Do not change its fields while it is in use.
type Watcher struct {
	// File is the file to read, as [Load] does, with Extensions.
	File       string
	Extensions []extension.Extension
	// Interval is the interval between reads; zero means 2 seconds.
	Interval time.Duration
	// OnChange applies a new config. An error refuses it, as [Config.Check] does for the address,
	// and is reported like an error in the file. Calls do not overlap.
	OnChange func(*Config) error
	// OnError is called with the reason if a file was not applied, once for each content.
	OnError func(error)

	mu sync.Mutex
	// applied is the content that was last applied or refused, seen the content at the last read.
	applied, seen content
	// failed reports that applied was refused.
	failed bool
}

// content identifies the content of a file: the hash of its text, or why it could not be read.
type content struct {
	hash [sha256.Size]byte
	err  string
}

// Load reads the file for the first time. Run does not report this content again unless it
// changes.
func (w *Watcher) Load() (*Config, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	data, found, err := w.read()
	if err != nil {
		return nil, err
	}
	config, err := Parse(w.File, data, w.Extensions...)
	if err != nil {
		return nil, err
	}
	w.applied, w.seen = found, found
	return config, nil
}

// Poll reads the file now and applies a change at once, such as after a SIGHUP. A content that
// failed before is tried, and reported, again.
func (w *Watcher) Poll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.check(true)
}

// Run polls the file until ctx is done, and returns the cause.
func (w *Watcher) Run(ctx context.Context) error {
	every := w.Interval
	if every <= 0 {
		every = defaultWatch
	}
	for {
		timer := time.NewTimer(every)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
		w.mu.Lock()
		w.check(false)
		w.mu.Unlock()
	}
}

// check applies a changed file: if the last two reads agree or, if atOnce is set, immediately.
func (w *Watcher) check(atOnce bool) {
	data, found, err := w.read()
	settled := found == w.seen || atOnce
	w.seen = found
	if !settled || found == w.applied && !(atOnce && w.failed) {
		return
	}
	w.applied = found
	if err == nil {
		err = w.apply(data)
	}
	if w.failed = err != nil; w.failed && w.OnError != nil {
		w.OnError(err)
	}
}

// apply parses a file and calls OnChange.
func (w *Watcher) apply(data []byte) error {
	config, err := Parse(w.File, data, w.Extensions...)
	if err == nil && w.OnChange != nil {
		err = w.OnChange(config)
	}
	return err
}

// read reads the file and returns the identity of its content.
func (w *Watcher) read() ([]byte, content, error) {
	data, err := readFile(w.File)
	if err != nil {
		return nil, content{err: err.Error()}, err
	}
	return data, content{hash: hashWithPolicies(data)}, nil
}
