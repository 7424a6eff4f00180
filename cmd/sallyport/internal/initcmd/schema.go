package initcmd

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sallyport/internal/atomicfile"
	"sallyport/internal/config"
)

// schemaFile is the name of the schema that new settings have next to them. So editors check and complete them without a network.
const schemaFile = "upstreams.schema.json"

// schemaLine names the schema to editors.
const schemaLine = "# yaml-language-server: $schema=" + schemaFile + "\n"

// writeSchema writes the schema of this version next to settings that name it.
func (s *setup) writeSchema() error {
	if !bytes.HasPrefix(s.file.Data, []byte(schemaLine)) {
		return nil
	}
	path := filepath.Join(filepath.Dir(s.file.Path), schemaFile)
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read schema: %w", err)
	}
	if bytes.Equal(old, config.Schema()) {
		return nil
	}
	if _, err := atomicfile.Write(path, old, config.Schema(), nil); err != nil {
		return fmt.Errorf("write schema: %w", err)
	}
	return nil
}
