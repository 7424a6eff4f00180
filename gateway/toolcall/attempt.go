package toolcall

import (
	"context"

	"sallyport/internal/journal"
	"sallyport/internal/tool"
)

// Attempt is one call of a program in the handler chain.
type Attempt struct {
	Tool tool.ID
	// Definition and Arguments are digests, Arguments of the canonical form, see [Canonical].
	Definition, Arguments string
	// Args are the arguments in compact JSON, if the journal stores them.
	Args []byte
	// Journaled says that the journal has it, Replayed that it was answered from the journal.
	Journaled, Replayed bool
	// Doubt says why it may already have been done; nil if it cannot have been.
	Doubt Doubt
	// Replaces returns the numbers of the journal's calls that it replaces; nil for none.
	Replaces func() []int
	// Decide adds the verdict to the execution's record.
	Decide func(Verdict)
}

// Doubt is why a call may already have been done. Only a person's answer about this call resolves it. The answer is recorded
// before it takes effect.
type Doubt interface {
	// Reason is one sentence for people, Origins the calls that it may repeat.
	Reason() string
	Origins() []string
	// Decide records an answer that does not make the call: its result, or failed for one that is left.
	Decide(ctx context.Context, decision journal.Decision, result tool.Result, failed *tool.Error) error
}

// AttemptOf returns the program's call in ctx, nil for none.
func AttemptOf(ctx context.Context) *Attempt { return ScopeOf(ctx).Attempt }
