package agent

import (
	"fmt"
	"runtime/debug"

	"github.com/dragoman-go/dragoman/tool"
)

// callback calls a function that the user set on an agent or a handoff. The error names the
// function. A panic is returned as a [tool.PanicError]; a panic in the loop of a caller that
// ranges over a stream is not caught here.
func callback(name string, call func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = errorf("%s: %w", name, &tool.PanicError{Text: fmt.Sprint(v), Stack: debug.Stack()})
		}
	}()
	if err := call(); err != nil {
		return errorf("%s: %w", name, err)
	}
	return nil
}
