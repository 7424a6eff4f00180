package grpc

// Limits of descriptors. The largest public set, that of Google's APIs, has 30 MB with its comments, and 3,000 services.
const (
	maxSet         = 64 << 20  // bytes of a descriptor set, or of all files that a server describes
	maxReply       = 16 << 20  // bytes of one response of reflection
	maxSetValues   = 3_000_000 // values in all descriptors
	maxFiles       = 5000
	maxServices    = 2000
	maxElements    = 300_000 // messages, fields, enumerations and the like
	maxFullName    = 800     // bytes of the full name of an element
	maxNestedTypes = 32      // levels of messages that are declared in messages
	maxMethods     = 5000
	maxSchema      = 48 << 10  // bytes of the schema of arguments or results; what is nested deeper is then of any type
	maxSchemaSteps = 2000      // fields and enumeration values of one schema: more do not fit
	maxSteps       = 3_000_000 // fields and enumeration values of all schemas
	maxOffered     = 56 << 20  // bytes of all definitions
)

// Limits of the messages of a call.
const (
	maxNesting      = 100     // levels of messages
	maxValues       = 300_000 // values of the responses of one call
	maxStreamed     = 10_000  // messages of a stream that a call may ask for
	defaultStreamed = 100     // messages of a stream without such an argument
	maxDetails      = 5       // details of an error that are shown
)
