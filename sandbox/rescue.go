//go:build linux

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"sallyport/sandbox/bridge"
	"sallyport/sandbox/runsc"
)

// rescueLimit bounds the time for saving the files of a stopped program.
const rescueLimit = 600 * time.Millisecond

// rescue saves the /workspace changes of a program that the host stopped, and returns notes for the model.
func (e *execution) rescue(account bridge.Account, cause error) []string {
	if _, ours := errors.AsType[stopError](cause); !ours || account.Workspace == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), rescueLimit)
	defer cancel()
	h := e.instance.host
	notes, err := rescue(ctx, h.runsc, e.instance.id, h.reader(e.instance.kind), e.instance.bridge, account)
	if err != nil {
		h.log.Warn("save the files of a stopped program", "execution", e.job.ID, "error", err)
	}
	return notes
}

// reader returns the command that reads /workspace in a sandbox.
func (h *Host) reader(k kind) []string {
	program := ""
	if root, err := h.rootOf(k.environment); err == nil {
		program = root.programs[k.interpreter].inside
	}
	if k.interpreter == Node {
		return []string{program, "--no-warnings", guestDir + "/files.mjs", "rescue"}
	}
	return []string{program, "-I", "-S", "-B", guestDir + "/sallyport_files.py"}
}

// rescue stops all processes of the sandbox with that ID, starts a reader in it, and
// updates the account's workspace with the changes since the program began. The
// bridge's Run must have returned. rescue returns shortly after ctx ends at the latest;
// files received until then are kept. Notes are for the model, even with an error.
func rescue(ctx context.Context, r *runsc.Runsc, id string, reader []string, b *bridge.Bridge, account bridge.Account) (notes []string, err error) {
	defer func() {
		if err != nil {
			notes = append(notes, "the program was stopped, and what it changed in /workspace could not all be saved")
		}
	}()
	request, err := b.RescueRequest(account.Limits.Quota)
	if err != nil {
		return nil, err
	}
	if err := r.Stop(ctx, id); err != nil {
		return nil, fmt.Errorf("stop sandbox: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := r.Pipe(ctx, id, bytes.NewReader(request), in, reader...)
		_ = in.CloseWithError(io.ErrUnexpectedEOF)
		ended <- err
	}()
	notes, err = b.Rescue(out, account.Workspace, account.Limits.Quota)
	if err != nil {
		cancel()
	}
	_ = out.Close()
	return notes, errors.Join(err, <-ended)
}
