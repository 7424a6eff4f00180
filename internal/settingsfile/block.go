package settingsfile

import (
	"errors"
	"fmt"

	"sallyport/internal/config"
	"sallyport/internal/yamledit"
)

// Block returns the text of the key at a path of keys, such as policy, or upstreams and a name. A missing key is [yamledit.ErrMissing].
func (f *File) Block(keys ...string) (yamledit.Block, error) {
	b, err := yamledit.BlockAt(f.Data, keys...)
	if err != nil {
		return b, fmt.Errorf("edit %s: %w", f.Path, err)
	}
	return b, nil
}

// SetBlock replaces the text of the key at a path. The rest of the file is not changed. A missing key of the top level is added.
// If the result would not load, it returns the errors of loading it, and does not change the file.
func (f *File) SetBlock(text string, keys ...string) error {
	data, err := yamledit.SetBlock(f.Data, text, f.check, keys...)
	if _, wrong := errors.AsType[*config.Error](err); wrong {
		return err
	}
	if err != nil {
		return fmt.Errorf("edit %s: %w", f.Path, err)
	}
	f.Data = data
	return nil
}
