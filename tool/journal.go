package tool

import (
	"context"
	"errors"
	"fmt"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
)

// Intent is the record of a call that a journal stores before the tool runs.
type Intent struct {
	CallRef
	// Arguments is the hash of the final input.
	Arguments Hash
	// Idempotent reports that the tool may run again if it is unknown whether it ran.
	Idempotent bool
	// Continues is the suspended attempt that this one continues; zero means none. If the
	// journal has a later attempt, it is unknown how far that one came.
	Continues int
	// ErrorKind is the kind of the failure that [Journal.End] records; empty for a
	// success, and at Begin.
	ErrorKind ErrorKind
}

// Prior is the journal's knowledge about earlier attempts at a call.
type Prior struct {
	// Attempts is the number of earlier attempts.
	Attempts int
	// Result is the result of an earlier attempt; nil if none has ended.
	Result *dragoman.ToolResult
	// ErrorKind is the kind that was recorded with Result. If it is empty, a failed result
	// counts as [ErrorFailed].
	ErrorKind ErrorKind
	// Arguments is the hash of the input of the earlier attempt.
	Arguments Hash
}

// storeTimeout is the timeout of a journal and of a store of outputs.
const storeTimeout = 30 * time.Second

// Journal makes effects happen once. Begin must be durable before it returns, because the tool
// runs after it. Both methods must respect their context, which ends after 30 s: nothing else
// limits them.
//
// A Run also uses the following optional method of a Journal, for turns that may have been
// passed before ([Turn.MayHaveRun]). It returns the earlier attempts of a call without beginning it:
//
//	Recall(ctx context.Context, call CallRef) (Prior, error)
type Journal interface {
	// Begin records that a call is about to run and returns the earlier attempts.
	Begin(ctx context.Context, in Intent) (Prior, error)
	// End records the result of the call.
	End(ctx context.Context, in Intent, result *dragoman.ToolResult) error
}

// recaller is an optional interface of a [Journal]. Recall returns the earlier attempts of a
// call without beginning it. A [Run] uses it for turns that may have been passed before
// ([Turn.MayHaveRun]):
//   - for calls that must not run: a call that a human rejects now may have run in a
//     process that died before it stored the result;
//   - for calls that are about to run: if one of them was begun with other arguments, none
//     of them runs.
type recaller interface {
	Recall(ctx context.Context, call CallRef) (Prior, error)
}

// compareJournal returns an error if a call that is about to run was begun with other
// arguments, in a turn that was passed before. A human may change the arguments of a call, so
// approved calls are not compared.
func (b *batch) compareJournal(ctx context.Context) error {
	j, ok := b.runner.Journal.(recaller)
	if !ok || !b.turn.MayHaveRun {
		return nil
	}
	var wrong []error
	for _, x := range b.calls {
		if x.settled() || x.verdict == Approved {
			continue
		}
		prior, err := withoutPanic(func() (Prior, error) {
			ctx, cancel := context.WithTimeout(ctx, storeTimeout)
			defer cancel()
			return j.Recall(ctx, x.ref())
		})
		if err == nil && prior.Attempts > 0 && prior.Arguments != x.input.Hash() { // Begin reports errors of the journal
			wrong = append(wrong, x.otherArguments())
		}
	}
	return errors.Join(wrong...)
}

// otherArguments returns the error for a call that was begun before with other arguments.
func (x *execution) otherArguments() error {
	return fmt.Errorf("%w: the journal has call %q of turn %d with other arguments", ErrConflict, x.call.ID, x.turn.Number)
}

// settleFromJournal answers a call that must not run with its result in the journal. It reports whether
// the call was begun before, or begun again after the attempt that it continues.
func (x *execution) settleFromJournal(ctx context.Context) bool {
	j, ok := x.runner.Journal.(recaller)
	if !ok || !x.turn.MayHaveRun || x.begun || x.inJournal {
		return false
	}
	prior, err := withoutPanic(func() (Prior, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
		defer cancel()
		return j.Recall(ctx, x.ref())
	})
	x.inJournal = true
	switch {
	case err != nil:
		x.logFailure("the journal failed", err)
		x.fail(ctx, failf(ErrorUncertain, "%s did not run now. It is unknown whether it ran before, because its record could not be read.", x.key.QualifiedName()))
	case prior.Attempts <= x.continues():
		return false
	case prior.Result != nil:
		x.useJournaled(prior)
	default:
		x.fail(ctx, failf(ErrorUncertain, "%s was started before, and it is unknown whether it had its effect. It was not run again. Check before you repeat it.", x.key.QualifiedName()))
	}
	return true
}
