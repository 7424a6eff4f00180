package graphql

// Limits of a schema. The largest public one, that of GitHub, has 1.5 MB, 1,700 types and 330 operations.
const (
	maxSchema     = 32 << 20  // bytes of a schema
	maxTokens     = 5_000_000 // of a schema
	maxTypeDepth  = 32        // lists and non-null types around a type
	maxOperations = 5000
	maxArguments  = 48 << 10 // bytes of the schema of arguments; what is nested deeper is then of any type
	maxOffered    = 56 << 20 // bytes of all definitions
	maxSelect     = 20_000   // bytes of the selection of a call
	maxSelectToks = 5000     // its tokens
	maxNesting    = 500      // levels of JSON in a response
)
