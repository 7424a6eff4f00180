// Package feedback learns from calls which tools match which words. A [Store] records
// searches and the calls that follow; it associates a tool that is called after a
// search with the search's words, and [Store.Boost] returns how much a new query
// boosts it. Principals are separate: only a principal's own searches and calls count
// for it, and text of upstreams has no influence.
//
// It stores stems of words, ids and digests of tools, and numbers: no query, argument
// or result. A [Storage], such as [Files], makes them persistent.
package feedback
