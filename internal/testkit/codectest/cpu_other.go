//go:build !unix

package codectest

import "time"

// Spent is the time that has passed.
func Spent() time.Duration { return time.Duration(time.Now().UnixNano()) }
