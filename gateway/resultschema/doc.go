// Package resultschema learns what the results of tools look like, since nine in ten
// upstreams do not say. A [Store] is handed every good result, looks at it in the
// background, and keeps the shape of all results of one definition of a tool
// (see package shape): no value, no size. What it knows outlives the process by
// way of a [Keeper], of which [Files] is one.
package resultschema
