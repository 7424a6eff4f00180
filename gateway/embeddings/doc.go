// Package embeddings ranks tools by semantic similarity, with vectors of an
// OpenAI-compatible endpoint. A [Ranker] embeds the texts of tools in the background,
// stores their vectors on disk, and returns the tools that are nearest to a query. A
// search waits for the endpoint up to the timeout of the settings, and not at all while
// it is down: then there is no ranking, which is not an error.
//
// client.go speaks to the endpoint, which is not trusted; ranker.go answers
// queries, embed.go works in the background, files.go stores vectors, backoff.go
// pauses requests after failures.
package embeddings
