package secret

import (
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/zalando/go-keyring"
)

// Errors of Get, Set and Delete.
var (
	// ErrNotFound: the keyring has no such name.
	ErrNotFound = errors.New("not in the keyring")
	// ErrNoKeyring: no keyring is usable: there is none, it refused, or it timed out. Other names will fail as well,
	// perhaps after the same wait.
	ErrNoKeyring = errors.New("no keyring can be used here")
)

const (
	service = "sallyport"
	// timeout is the timeout of the keyring. One that asks its owner to unlock it takes longer; the next try then
	// finds it open.
	timeout = 3 * time.Second
	// partSize is the item size that every keyring supports: Windows 2,560 bytes, macOS some 4,000 of a command line,
	// in base64 and with the names.
	partSize = 1800
	// partsPrefix begins an item that lists the parts of a longer value.
	partsPrefix = "sallyport-parts:"
)

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$`)

// Get returns the value that the keyring has for a name. Errors contain the name and are [ErrNotFound],
// [ErrNoKeyring] or about the name itself. It waits at most a few seconds, as do Set and Delete.
func Get(name string) (string, error) {
	return withTimeout("read", name, func() (string, error) {
		value, _, err := load(name)
		return value, err
	})
}

// Set stores a value in the keyring under a name: letters, digits, ".", "_", "/", "-", at most 128. Values of up to
// [MaxSize] bytes are split into several items if necessary. Calls for one name must not overlap.
func Set(name, value string) error {
	if value == "" || len(value) > MaxSize {
		return fmt.Errorf("write %q to the keyring: a value has from 1 to %d KiB, this has %d bytes", name, MaxSize>>10, len(value))
	}
	_, err := withTimeout("write", name, func() (string, error) { return "", save(name, value) })
	return err
}

// Check returns nil if the keyring stores values: it stores one, and deletes it again. Other errors are those of [Set].
func Check() error {
	name := "check-" + rand.Text()
	if err := Set(name, "check"); err != nil {
		return err
	}
	return Delete(name)
}

// Delete removes a name from the keyring; [ErrNotFound] if it is not there.
func Delete(name string) error {
	_, err := withTimeout("delete", name, func() (string, error) {
		_, parts, err := load(name)
		if err != nil && !errors.Is(err, errIncomplete) {
			return "", err
		}
		if err := keyring.Delete(service, name); err != nil {
			return "", err
		}
		drop(parts)
		return "", nil
	})
	return err
}

// errIncomplete: a value with missing parts counts as missing.
var errIncomplete = fmt.Errorf("parts of it are missing: %w", keyring.ErrNotFound)

func load(name string) (value string, parts []string, err error) {
	head, err := keyring.Get(service, name)
	if err != nil {
		return "", nil, err
	}
	rest, ok := strings.CutPrefix(head, partsPrefix)
	if !ok {
		return head, nil, nil
	}
	id, count, _ := strings.Cut(rest, ":")
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 || n > MaxSize/partSize+1 {
		return "", nil, errIncomplete
	}
	parts = partNames(name, id, n)
	var b strings.Builder
	for _, part := range parts {
		piece, err := keyring.Get(service, part)
		if errors.Is(err, keyring.ErrNotFound) {
			return "", parts, errIncomplete
		}
		if err != nil {
			return "", parts, err
		}
		b.WriteString(piece)
	}
	return b.String(), parts, nil
}

// save writes new parts before the item that refers to them, and drops the old ones last: if it is interrupted, the
// old value or the new one is there.
func save(name, value string) error {
	_, old, err := load(name)
	if err != nil && !errors.Is(err, keyring.ErrNotFound) {
		return err
	}
	head := value
	if len(value) > partSize || strings.HasPrefix(value, partsPrefix) {
		if head, err = saveParts(name, value); err != nil {
			return err
		}
	}
	if err := keyring.Set(service, name, head); err != nil {
		return err
	}
	drop(old)
	return nil
}

func saveParts(name, value string) (head string, err error) {
	id := rand.Text()
	parts := partNames(name, id, (len(value)+partSize-1)/partSize)
	for i, part := range parts {
		piece := value[i*partSize : min((i+1)*partSize, len(value))]
		if err := keyring.Set(service, part, piece); err != nil {
			drop(parts[:i])
			return "", err
		}
	}
	return fmt.Sprintf("%s%s:%d", partsPrefix, id, len(parts)), nil
}

// partNames uses "#", which names cannot contain.
func partNames(name, id string, n int) []string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = fmt.Sprintf("%s#%s.%d", name, id, i)
	}
	return parts
}

// drop deletes parts that are no longer referenced; errors are ignored.
func drop(parts []string) {
	for _, part := range parts {
		_ = keyring.Delete(service, part)
	}
}

// withTimeout runs do with a timeout. A keyring that hangs cannot be cancelled, so do may outlive the call; its result is
// then dropped.
func withTimeout(verb, name string, do func() (string, error)) (string, error) {
	if !nameForm.MatchString(name) {
		return "", fmt.Errorf(`%s keyring: %.40q cannot be a name: letters, digits, ".", "_", "/" and "-", at most 128`, verb, name)
	}
	if err := checkReachable(); err != nil {
		return "", fmt.Errorf("%s %q in the keyring: %w: %s", verb, name, ErrNoKeyring, err.Error())
	}
	type answer struct {
		value string
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		value, err := do()
		done <- answer{value, err}
	}()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case a := <-done:
		return a.value, explain(verb, name, a.err)
	case <-timer.C:
		return "", fmt.Errorf("%s %q in the keyring: %w: no answer within %v; if it asks to be unlocked, do that and try again", verb, name, ErrNoKeyring, timeout)
	}
}

func explain(verb, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errIncomplete):
		return fmt.Errorf("%s %q: %w: parts of it are missing", verb, name, ErrNotFound)
	case errors.Is(err, keyring.ErrNotFound):
		return fmt.Errorf("%s %q: %w", verb, name, ErrNotFound)
	}
	return fmt.Errorf("%s %q in the keyring: %w: %s", verb, name, ErrNoKeyring, err.Error())
}
