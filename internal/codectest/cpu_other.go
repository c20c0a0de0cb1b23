//go:build !unix

package codectest

import "time"

// spent is the time that has passed.
func spent() time.Duration { return time.Duration(time.Now().UnixNano()) }
