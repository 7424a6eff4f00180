// Package embeddings ranks tools by what they mean, with vectors of an
// OpenAI-compatible endpoint. A [Ranker] has the texts of tools embedded in the
// background, keeps their vectors on disk, and is asked for the tools that are
// nearest to a query. No search waits for the endpoint longer than the settings say,
// nor at all while it is down: then there is no ranking, and that is no error.
//
// client.go speaks to the endpoint, which is not trusted; ranker.go answers
// queries, embed.go works in the background, files.go keeps vectors, rest.go says
// when the endpoint is left alone.
package embeddings
