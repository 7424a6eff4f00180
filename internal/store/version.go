package store

import "fmt"

// Version returns the version of the records in a directory, 0 for none, and the version that this program writes.
// Opening the directory migrates the records. The error for a higher version is [ErrNewer].
func Version(dir string) (found, current int, err error) {
	current = newest(migrations())
	if err := checkVersion(dir, current); err != nil {
		return 0, current, fmt.Errorf("check records: %w", err)
	}
	found, err = schemaOf(dir)
	return found, current, err
}
