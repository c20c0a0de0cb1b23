package agent_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/sqlite"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
)

// The process ends after a token was redeemed and before its run was resumed. In the next one
// the call is still pending, and the token is not accepted again; another token is.
func TestA4_UsedTokenIsRefusedAfterARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	newSigner := func(store *sqlite.Store) *policy.Signer {
		signer := must[*policy.Signer](t)(policy.NewSigner(policy.SigningKey{ID: "k", Secret: bytes.Repeat([]byte("s"), 32)}))
		signer.Nonces = session.Nonces{Notes: store.Notes()}
		return signer
	}
	var did counted
	tools := []tool.Tool{did.tool("pay", tool.NeedsApproval())}

	store, s := openFile(t, path)
	res, err := agent.Agent{Model: model(calls(`a pay {"word":"x"}`)), Tools: tools}.Run(t.Context(), "go", agent.In(s))
	if !errors.Is(err, agent.ErrInterrupted) || len(res.Pending) != 1 {
		t.Fatalf("%v, %d pending", err, len(res.Pending))
	}
	pending := res.Pending[0]
	sign := func(verdict tool.Verdict) string {
		return must[string](t)(newSigner(store).Sign(policy.Grant{Binding: pending.Binding, Answer: tool.Answer{Verdict: verdict}}))
	}
	used, other := sign(tool.Rejected), sign(tool.Approved)
	if err := newSigner(store).RedeemInto(t.Context(), &policy.Ledger{}, used, pending, nil); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}

	store, s = openFile(t, path)
	defer func() { _ = store.Close() }()
	state := must[*agent.State](t)(agent.LoadState(t.Context(), s))
	again := state.Pending()
	if len(again) != 1 || again[0].Binding != pending.Binding {
		t.Fatalf("pending after the restart: %+v", again)
	}
	ledger := &policy.Ledger{}
	if err := newSigner(store).RedeemInto(t.Context(), ledger, used, again[0], nil); !errors.Is(err, policy.ErrTokenReplayed) {
		t.Errorf("the used token: %v", err)
	}
	if err := newSigner(store).RedeemInto(t.Context(), ledger, other, again[0], nil); err != nil {
		t.Fatal(err)
	}
	last := agent.Agent{Model: model(), Tools: tools, Runner: &tool.Runner{Approver: ledger}}
	res = must[*agent.Result](t)(last.Resume(t.Context(), state, agent.In(s)))
	if did.String() != "pay:x" || res.Output != "done" {
		t.Errorf("ran %q: %+v", did.String(), res)
	}
}
