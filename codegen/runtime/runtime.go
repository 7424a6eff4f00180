// Package runtime embeds the code that runs inside a sandbox: the bootstrap of each
// language and the module `sallyport` that programs and wrappers import; docs/reference/bridge.md describes its protocol.
package runtime

import (
	"embed"
	"io/fs"

	"sallyport/internal/packed"
)

//go:embed guest/*.py guest/*.mjs guest/*.cjs guest/*.cnf guest/*.so guest/sallyport/*.py
var guest embed.FS

// TypeScript is the source of the module "sallyport" that a TypeScript program
// is bundled with. At run time it uses the client of the bootstrap.
//
//go:embed sallyport.ts
var TypeScript []byte

// PythonTypes is the stub of the Python module "sallyport", for type checkers and
// editors: sallyport/__init__.pyi. Sandboxes do not contain it.
//
//go:embed guest/sallyport/__init__.pyi
var PythonTypes []byte

//go:embed client/python client/typescript
var client embed.FS

// Client returns the files that replace the bootstraps in programs outside of a
// sandbox: python/ and typescript/, see codegen/client.
func Client() fs.FS { return folder(client, "client") }

// Guest returns the files that a sandbox mounts at /opt/sallyport.
func Guest() fs.FS { return folder(guest, "guest") }

func folder(files embed.FS, name string) fs.FS {
	sub, err := fs.Sub(files, name)
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return packed.FS(sub)
}
