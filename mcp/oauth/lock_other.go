//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package oauth

import (
	"errors"
	"os"
)

func tryLock(*os.File) (bool, error) {
	return false, errors.New("this operating system has no file locks: use another store")
}
