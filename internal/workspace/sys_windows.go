package workspace

// noFollow is not available here, but no sandbox writes files here either.
const noFollow = 0
