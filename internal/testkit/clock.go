package testkit

import (
	"sync"
	"time"
)

// Clock is a clock that stands still until a test moves it.
type Clock struct {
	mu sync.Mutex
	at time.Time
}

// NewClock returns a stopped clock with a fixed time.
func NewClock() *Clock { return &Clock{at: time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)} }

// Now is the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// Move lets time pass.
func (c *Clock) Move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}
