package trigger

// Verify is how the signature of a request is checked.
var Verify = verify
