//go:build !unix

package codectest

import "time"

// CPUTime returns a time that advances with the clock, because this system does not report the
// processor time in the same way.
func CPUTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
