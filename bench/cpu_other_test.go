//go:build !linux

package bench

import "time"

var began = time.Now()

// threadTime returns the wall-clock time, because there is no better clock.
func threadTime() time.Duration { return time.Since(began) }

const clock = "wall time"
