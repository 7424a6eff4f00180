package audit

import "path/filepath"

// Dir is where a data directory has its audit record.
func Dir(dataDir string) string { return filepath.Join(dataDir, Folder) }

// Folder is where in the data directory the record is.
const Folder = "audit"
