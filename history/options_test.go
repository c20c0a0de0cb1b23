package history_test

import (
	"errors"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/history"
)

func TestUnknownAbandonIsAnError(t *testing.T) {
	req := &dragoman.Request{Messages: []dragoman.Message{dragoman.UserText("hi")}}
	for word, valid := range map[string]bool{"": true, "passed": true, "all": true, "pased": false} {
		_, _, err := history.Normalize(req, history.Options{Limits: strictest(), Abandon: word})
		if (err == nil) != valid || err != nil && (!errors.Is(err, dragoman.ErrInvalid) || !strings.Contains(err.Error(), "use passed or all")) {
			t.Errorf("%q: %v", word, err)
		}
	}
}
