package gateway_test

import "runtime"

// runtimeGosched lets others run, which a test waits for.
func runtimeGosched() { runtime.Gosched() }
