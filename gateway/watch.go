package gateway

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/dragoman-go/dragoman/provider/extension"
)

// defaultWatch is how often a [Watcher] looks, unless told otherwise.
const defaultWatch = 2 * time.Second

// Watcher hands out the config of a file whenever that changes.
//
//	w := &gateway.Watcher{File: file, Change: server.Reload, Failed: log}
//	config, err := w.Load()
//	…
//	go w.Run(ctx)
//
// It reads the whole file, and the policies that it names, each time, so that no change is missed, whatever the file's
// times say. A change counts when two looks in a row find it: a file that is being
// written is not taken for one that was made shorter. What cannot be used is told once,
// and the config that was there stays.
//
// Its fields must not be changed once it is in use.
type Watcher struct {
	// File is read as [Load] does, with Extensions.
	File       string
	Extensions []extension.Extension
	// Every is how often to look; zero means 2 seconds.
	Every time.Duration
	// Change takes over a config that was read. An error refuses it, as
	// [Config.Check] does for where the gateway listens, and is told as if the file
	// were wrong. Calls do not overlap.
	Change func(*Config) error
	// Failed is told why a file was not taken over, once for each content.
	Failed func(error)

	mu sync.Mutex
	// taken is what was read last for good or ill, seen what was there at the last
	// look.
	taken, seen content
	// failed says that taken could not be used.
	failed bool
}

// content is what was found in a file: the hash of its text, or why it could not be
// read.
type content struct {
	hash [sha256.Size]byte
	err  string
}

// Load reads the file for the first time. What Run finds there is not told again
// unless it changes.
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
	w.taken, w.seen = found, found
	return config, nil
}

// Look reads the file now, and takes over what changed without looking twice, as
// programs do when they get a SIGHUP. What failed before is tried, and told, again.
func (w *Watcher) Look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.look(true)
}

// Run looks at the file until ctx is done, and returns why it is.
func (w *Watcher) Run(ctx context.Context) error {
	every := w.Every
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
		w.look(false)
		w.mu.Unlock()
	}
}

// look takes over what changed; at once, or when it was there the last time too.
func (w *Watcher) look(atOnce bool) {
	data, found, err := w.read()
	settled := found == w.seen || atOnce
	w.seen = found
	if !settled || found == w.taken && !(atOnce && w.failed) {
		return
	}
	w.taken = found
	if err == nil {
		err = w.take(data)
	}
	if w.failed = err != nil; w.failed && w.Failed != nil {
		w.Failed(err)
	}
}

// take parses a file and hands it over.
func (w *Watcher) take(data []byte) error {
	config, err := Parse(w.File, data, w.Extensions...)
	if err == nil && w.Change != nil {
		err = w.Change(config)
	}
	return err
}

// read reads the file, and says what it found.
func (w *Watcher) read() ([]byte, content, error) {
	data, err := readFile(w.File)
	if err != nil {
		return nil, content{err: err.Error()}, err
	}
	return data, content{hash: hashWithPolicies(data)}, nil
}
