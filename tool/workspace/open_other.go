//go:build !unix

package workspace

// openWithoutWaiting is zero on systems whose directories hold no pipes.
const openWithoutWaiting = 0
