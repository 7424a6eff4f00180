package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/workspaces"
	"sallyport/internal/access"
	"sallyport/internal/adminsock"
	"sallyport/internal/backup"
	"sallyport/internal/skill"
	"sallyport/internal/store"
	"sallyport/internal/tool"
)

func backupCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "backup [flags] FILE",
		Short: "write the data directory to one file",
		Long: `Backup writes the data directory (workspaces, skills, records) to FILE, or to
stdout for -, as a gzip-compressed tar. With store.url in the settings, the records
come from those servers, and all workspaces and skills that they have are fetched to
the data directory first. It is safe while a gateway is running: each
file is copied at one point in time, and the records are a consistent copy from
after backup began. The backup excludes your own folders that are mapped as
workspaces, settings, secrets and tokens, so that a restore cannot bring back a
revoked token.`,
		Example: "  sallyport backup sallyport-$(date +%F).tar.gz",
		Args:    oneFile,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.backup(cmd.Context(), args[0]) },
	}
}

func restoreCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "restore [flags] FILE",
		Short: "read back what backup wrote",
		Long: `Restore creates the data directory from a FILE that backup wrote, or from stdin
for -. The directory must be empty or absent: nothing is overwritten. An invalid
backup is not restored at all. With store.url in the settings, the records go to
those servers, which must have none under store.prefix: so the records of one
machine move to servers, and back. The gateway that is started next brings the
workspaces and skills to the servers.`,
		Example: "  sallyport restore sallyport-2026-11-22.tar.gz\n  sallyport restore --data /srv/sallyport sallyport-2026-11-22.tar.gz",
		Args:    oneFile,
		RunE:    func(cmd *cobra.Command, args []string) error { return a.restore(cmd.Context(), args[0]) },
	}
}

func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return cli.Misuse(cmd, "%s takes one FILE, or - for a pipe", cmd.Name())
	}
	return nil
}

func (a *app) backup(ctx context.Context, file string) (err error) {
	dir, err := a.existingData()
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "sallyport-backup-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	records := filepath.Join(scratch, cli.RecordsFolder)
	if err := a.copyRecords(ctx, filepath.Join(dir, cli.RecordsFolder), records); err != nil {
		return err
	}
	var summary backup.Summary
	bar := a.Progress("writing the backup", 0)
	stop := sync.OnceFunc(bar.Stop)
	defer stop()
	write := func(w io.Writer) error {
		w = &progressWriter{Writer: w, show: func(written int64) { bar.Step(0, fmt.Sprintf("writing the backup, %d MiB", written>>20)) }}
		summary, err = backup.Write(ctx, w, []backup.Source{{Dir: dir, Without: []string{cli.RecordsFolder, adminsock.Folder, access.Folder}}, {Dir: records, As: cli.RecordsFolder}})
		return err
	}
	if file == "-" {
		err = write(a.Stdout)
	} else {
		err = writeBackupFile(file, dir, write)
	}
	stop()
	if err != nil {
		return err
	}
	for _, path := range summary.Skipped {
		a.Say("skipped, not a regular file: " + path)
	}
	a.Say(fmt.Sprintf("wrote %d files, %d bytes, of %s", summary.Files, summary.Bytes, dir))
	return nil
}

// copyRecords copies the records of the data directory, or those of the servers of the settings, to a new directory. Without records it
// does nothing.
func (a *app) copyRecords(ctx context.Context, from, to string) (err error) {
	servers, err := a.connectServers()
	if err != nil {
		return err
	}
	if servers == nil {
		if err := store.Copy(ctx, from, to); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	defer func() { err = errors.Join(err, servers.Close()) }()
	if err := a.fetchFiles(ctx, servers, filepath.Dir(from)); err != nil {
		return err
	}
	return a.transfer(ctx, to, func(local *store.Store, progress func(int)) error {
		_, err := servers.CopyTo(ctx, local, progress)
		return err
	})
}

// fetchFiles brings a data directory up to date with the workspaces and skills on servers.
func (a *app) fetchFiles(ctx context.Context, servers *store.Store, dir string) error {
	log := a.Logger(slog.LevelError)
	if err := workspaces.Fetch(ctx, servers, dir, log); err != nil {
		return fmt.Errorf("fetch workspaces: %w", err)
	}
	skills, err := skill.Open(filepath.Join(dir, "skills"), servers, log)
	if err == nil {
		err = skills.Fetch(ctx)
	}
	if err != nil {
		return fmt.Errorf("fetch skills: %w", err)
	}
	return nil
}

// connectServers connects to the servers that have the records, nil if the data directory has them.
func (a *app) connectServers() (*store.Store, error) {
	cfg, err := a.Load()
	if err != nil { // neither backup nor restore needs valid settings
		if !errors.Is(err, fs.ErrNotExist) {
			a.Say("the settings cannot be read: store.url is not used")
		}
		return nil, nil
	}
	if !cfg.Store.IsRemote() {
		return nil, nil
	}
	return cli.ConnectStore(cfg, a.Logger(slog.LevelError))
}

// transfer opens a directory with records for the time that do copies from it or to it.
func (a *app) transfer(ctx context.Context, dir string, do func(local *store.Store, progress func(records int)) error) (err error) {
	local, err := store.Open(dir, &store.Options{Logger: a.Logger(slog.LevelError)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, local.Close()) }()
	bar := a.Progress("copying records", 0)
	defer bar.Stop()
	if err := local.Ready(ctx); err != nil {
		return err
	}
	return do(local, func(records int) { bar.Step(0, fmt.Sprintf("copying records, %d", records)) })
}

// existingData returns the data directory. It is an error if the directory does not exist.
func (a *app) existingData() (string, error) {
	dir := a.DataDir()
	if dir == "" {
		return "", &tool.Error{Kind: tool.Invalid, Message: "there is no data directory", Hint: "say which with --data DIR, or set HOME"}
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", &tool.Error{Kind: tool.NotFound, Message: "there is nothing to back up in " + dir, Hint: "say where it is with --data DIR", Err: err}
	}
	return dir, nil
}

// writeBackupFile creates file atomically: it appears only when write has succeeded. A file below the directory not is an error.
func writeBackupFile(file, not string, write func(io.Writer) error) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	if strings.HasPrefix(file, not+string(filepath.Separator)) {
		return &tool.Error{Kind: tool.Invalid, Message: file + " is in the data directory itself", Hint: "write it somewhere else"}
	}
	if _, err := os.Lstat(file); err == nil {
		return &tool.Error{Kind: tool.Failed, Message: file + " already exists", Hint: "remove it, or use another name"}
	}
	temporary, err := os.CreateTemp(filepath.Dir(file), ".sallyport-backup-*")
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(temporary, 1<<20)
	err = errors.Join(write(buffered), buffered.Flush(), temporary.Sync(), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary.Name()))
	}
	return nil
}

func (a *app) restore(ctx context.Context, file string) (err error) {
	dir := a.DataDir()
	if dir == "" {
		return &tool.Error{Kind: tool.Invalid, Message: "there is no data directory", Hint: "say where it is to be with --data DIR, or set HOME"}
	}
	from := a.Stdin
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return err
		}
		defer func() { _ = opened.Close() }()
		from = opened
	}
	servers, err := a.connectServers()
	if err != nil {
		return err
	}
	if servers != nil {
		defer func() { err = errors.Join(err, servers.Close()) }()
		if err := servers.Vacant(ctx); err != nil {
			return notEmptyError(err)
		}
	}
	summary, err := a.restoreFrom(ctx, from, dir)
	if errors.Is(err, backup.ErrNotEmpty) {
		return &tool.Error{Kind: tool.Failed, Message: dir + " is not empty", Hint: "move it away first, or restore to another directory with --data DIR", Err: err}
	}
	if err == nil {
		err = errors.Join(workspaces.ForgetCopies(dir), skill.ForgetCopies(filepath.Join(dir, "skills")))
	}
	if err == nil && servers != nil {
		err = a.moveRecords(ctx, dir, servers)
	}
	if err != nil {
		return err
	}
	a.Say(fmt.Sprintf("restored %d files, %d bytes, to %s", summary.Files, summary.Bytes, dir))
	return nil
}

// notEmptyError explains why records cannot be restored to servers.
func notEmptyError(err error) error {
	if !errors.Is(err, store.ErrNotEmpty) {
		return err
	}
	return &tool.Error{Kind: tool.Failed, Message: "the servers of store.url have records already: " + err.Error(), Hint: "use another store.prefix, or restore without store", Err: err}
}

// moveRecords moves the records of a restored directory to servers. After an error the directory is empty again.
func (a *app) moveRecords(ctx context.Context, dir string, servers *store.Store) error {
	from := filepath.Join(dir, cli.RecordsFolder)
	if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	err := a.transfer(ctx, from, func(local *store.Store, progress func(int)) error {
		moved, err := local.CopyTo(ctx, servers, progress)
		if err == nil {
			a.Say("moved " + cli.Count(moved, "record") + " to the servers of store.url")
		}
		return err
	})
	if err != nil {
		return errors.Join(notEmptyError(err), emptyFolder(dir))
	}
	return os.RemoveAll(from)
}

// emptyFolder removes all that is in a folder.
func emptyFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// restoreFrom restores a backup, and shows how much of it was read.
func (a *app) restoreFrom(ctx context.Context, from io.Reader, dir string) (backup.Summary, error) {
	bar := a.Progress("restoring", 0)
	defer bar.Stop()
	from = &progressReader{Reader: from, show: func(read int64) { bar.Step(0, fmt.Sprintf("restoring, %d MiB", read>>20)) }}
	return backup.Restore(ctx, bufio.NewReaderSize(from, 1<<20), dir, nil)
}

// progressWriter and progressReader show the number of bytes so far.
type progressWriter struct {
	io.Writer
	show    func(int64)
	written int64
}

// Write implements [io.Writer].
func (w *progressWriter) Write(data []byte) (int, error) {
	n, err := w.Writer.Write(data)
	w.written += int64(n)
	w.show(w.written)
	return n, err
}

type progressReader struct {
	io.Reader
	show func(int64)
	read int64
}

// Read implements [io.Reader].
func (r *progressReader) Read(data []byte) (int, error) {
	n, err := r.Reader.Read(data)
	r.read += int64(n)
	r.show(r.read)
	return n, err
}
