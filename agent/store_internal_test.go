package agent

import (
	"context"

	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

// A session implements every optional interface of a [Store]. A run finds them by type
// assertion, so without these lines a renamed method would only lose a feature.
var (
	_ Store          = (*session.Session)(nil)
	_ locker         = (*session.Session)(nil)
	_ historyStore   = (*session.Session)(nil)
	_ decisionStore  = (*session.Session)(nil)
	_ spillProvider  = (*session.Session)(nil)
	_ recordStore    = (*session.Session)(nil)
	_ ticketProvider = (*session.Session)(nil)
	_ expander       = (*session.Session)(nil)
	_ mediaDetacher  = (*session.Session)(nil)
	_ savePreparer   = (*session.Session)(nil)
	_ interface {
		Recall(ctx context.Context, call tool.CallRef) (tool.Prior, error)
	} = (*session.Session)(nil)
)
