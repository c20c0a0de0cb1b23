//go:build !unix

package codectest

import "time"

// Spent returns a time that advances with the clock.
func Spent() time.Duration { return time.Duration(time.Now().UnixNano()) }
