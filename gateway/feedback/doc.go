// Package feedback learns from use which tools answer which words. A [Store] records
// what was searched for and what was called afterwards; a tool that was called
// after a search is remembered for the search's words, and [Store.Favour] says how
// much a new query should lift it. Only what the model of one principal did counts
// for that principal: nothing that an upstream says reaches it.
//
// What is kept are stems of words, ids and digests of tools, and numbers: no query,
// argument or result. It outlives the process by way of a [Keeper], of which
// [Files] is one.
package feedback
