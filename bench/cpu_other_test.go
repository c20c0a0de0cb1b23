//go:build !linux

package bench

import "time"

var began = time.Now()

// threadTime is the wall clock, where there is no better one.
func threadTime() time.Duration { return time.Since(began) }

const clock = "wall time"
