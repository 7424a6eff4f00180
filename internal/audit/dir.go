package audit

import "path/filepath"

// Dir returns the directory of the audit log in a data directory.
func Dir(dataDir string) string { return filepath.Join(dataDir, Folder) }

// Folder is the folder of the audit log in the data directory.
const Folder = "audit"
