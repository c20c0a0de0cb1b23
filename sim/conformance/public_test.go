package conformance_test

import (
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/session/sessiontest"
	"github.com/dragoman-go/dragoman/sim/conformance"
	"github.com/dragoman-go/dragoman/tool/tooltest"
)

// The suites for providers, dialects, session stores and tools are for other modules, too.
func TestZ4_SuitesCanBeImportedByOtherModules(t *testing.T) {
	for _, run := range []any{conformance.Model.Run, conformance.Dialect.Run, sessiontest.Run, tooltest.Run} {
		if name := runtime.FuncForPC(reflect.ValueOf(run).Pointer()).Name(); strings.Contains(name, "/internal/") {
			t.Errorf("%s is in an internal package", name)
		}
	}
}
