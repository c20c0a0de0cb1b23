// Session-resume continues a run that another process did not finish. The session stores each
// step before the next one begins, so a call that ran does not run again.
//
//	$ go run ./examples/session-resume -stop
//	sending mail to ada@example.com
//	stopped after a turn
//	$ go run ./examples/session-resume
//	resuming
//	send_mail says: sent
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/sqlite"
	"github.com/dragoman-go/dragoman/tool"
)

type Mail struct {
	To string `json:"to" jsonschema:"format=email"`
}

func run(ctx context.Context, file string, opts ...agent.Option) error {
	store, err := sqlite.Open(ctx, file, sqlite.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	s, err := session.OpenOrCreate(ctx, store, "mail")
	if err != nil {
		return err
	}
	state, err := agent.LoadState(ctx, s)
	if err != nil {
		return err
	}
	mailer := tool.New("send_mail", "Sends a mail.", func(_ context.Context, m Mail) (string, error) {
		fmt.Println("sending mail to", m.To)
		return "sent", nil
	})
	a := agent.Agent{Model: provider.MustOpen("sim/planner"), Tools: []tool.Tool{mailer}}
	opts = append(opts, agent.In(s))
	var res *agent.Result
	if state.Done() { // also if there is no state yet
		res, err = a.Run(ctx, "Send a mail to ada@example.com.", opts...)
	} else {
		fmt.Println("resuming")
		res, err = a.Resume(ctx, state, opts...)
	}
	if err != nil {
		return err
	}
	fmt.Println(res.Output)
	return store.Delete(ctx, s.ID())
}

func main() {
	stop := flag.Bool("stop", false, "stop after the first turn")
	flag.Parse()
	done := make(chan struct{}) // usually closed by a signal
	if *stop {
		close(done)
	}
	err := run(context.Background(), filepath.Join(os.TempDir(), "session-resume.db"), agent.StopAfterTurn(done))
	if errors.Is(err, agent.ErrStopped) {
		fmt.Println("stopped after a turn")
	} else if err != nil {
		log.Fatal(err)
	}
}
